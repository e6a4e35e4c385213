//go:build unix

package main

import (
	"os"
	"syscall"
)

// stopSignals ask a run to save and end. SIGUSR1 is the one that MPI's launchers pass on.
func stopSignals() []os.Signal { return []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGUSR1} }

func forward(p *os.Process, s os.Signal) error { return p.Signal(s) }
