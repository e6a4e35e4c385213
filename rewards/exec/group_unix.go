//go:build unix

package exec

import (
	osexec "os/exec"
	"syscall"
)

// ownGroup makes the command the leader of a new process group, so that an interrupt at the terminal does not reach it and
// its children end with it.
func ownGroup(cmd *osexec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
}

// killGroup kills what there is of the command and its group. That nothing is left is fine.
func killGroup(cmd *osexec.Cmd) { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
