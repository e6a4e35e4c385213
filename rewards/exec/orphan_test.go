//go:build linux

package exec

import (
	"os"
	osexec "os/exec"
	"testing"
)

// A run that is killed cannot close its commands.
func TestTheCommandDiesWithTheRun(t *testing.T) {
	seen := watch(t)
	c := osexec.Command(os.Args[0])
	c.Env = append(os.Environ(), childVar+"=run")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	conn := next(t, seen)
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	c.Wait()
	gone(t, conn)
}
