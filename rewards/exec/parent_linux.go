package exec

import "syscall"

// dieWithParent has the system kill the command when the run dies, however that happens.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }
