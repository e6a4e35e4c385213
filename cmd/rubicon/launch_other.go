//go:build !unix

package main

import (
	"os"
	"os/exec"
)

// The system tells every process of an interrupt from the keyboard, and one process cannot tell another.

func detach(*exec.Cmd) {}

func forward(*os.Process, os.Signal) error { return nil }
