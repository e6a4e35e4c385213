#!/usr/bin/env bash
# build.sh OUT: compiles the fake libraries with the kernels of cuda/kernels (KERNELS: these files only) to the shared library
# OUT by g++. LINK is what else goes in.
set -euo pipefail
out=$(realpath -m "$1")
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck disable=SC2086 # KERNELS is a list
python3 emulate.py ../../kernels ../../ptx "$work" ${KERNELS:-}
flags="-std=c++17 -O1 -ffp-contract=off -Wall -Wno-unknown-pragmas -Wno-sign-compare -Wno-maybe-uninitialized -fPIC -fvisibility=hidden -pthread -I$PWD"
printf '%s\n' ./*.cpp "$work"/*.cpp | xargs -P "$(nproc)" -I{} sh -c 'g++ '"$flags"' -include instructions.h -c "$1" -o "$2/$(basename "$1").o"' - {} "$work"
g++ -shared -pthread "$work"/*.o ${LINK:-} -lrt -o "$out"
