//go:build !unix

package main

import (
	"os"
	"os/exec"
	"syscall"
)

// stopSignals ask a run to save and end.
func stopSignals() []os.Signal { return []os.Signal{os.Interrupt, syscall.SIGTERM} }

// The system tells every process of an interrupt from the keyboard, and one process cannot tell another.

func detach(*exec.Cmd) {}

func forward(*os.Process, os.Signal) error { return nil }
