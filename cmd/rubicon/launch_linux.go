package main

import (
	"os/exec"
	"syscall"
)

// detach puts a process into a group of its own, so that an interrupt from the keyboard reaches it through the launcher alone:
// the second one would end it at once. If the launcher's thread that has started it dies, so does it.
func detach(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
