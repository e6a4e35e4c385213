#!/bin/sh
# Regenerates the amd64 kernels of internal/cpu from their generator (a module of its own).
set -e
cd "$(dirname "$0")/../internal/cpu/asmgen"
GOFLAGS=-mod=mod go run . -pkg cpu -out ../kern_amd64.s -stubs ../kern_amd64.go
gofmt -l ..
