//go:build unix && !linux

package main

import (
	"os/exec"
	"syscall"
)

// detach puts a process into a group of its own, so that an interrupt from the keyboard reaches it through the launcher alone:
// the second one would end it at once.
func detach(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
