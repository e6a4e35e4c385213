//go:build unix

package main

import (
	"os"
	"os/exec"
	"syscall"
)

// stopSignals ask a run to save and end. SIGUSR1 is the one that MPI's launchers pass on.
func stopSignals() []os.Signal { return []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGUSR1} }

// detach puts a process into a group of its own, so that an interrupt from the keyboard reaches it through the launcher alone:
// the second one would end it at once.
func detach(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func forward(p *os.Process, s os.Signal) error { return p.Signal(s) }
