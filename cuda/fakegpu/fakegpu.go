// Package fakegpu builds a driver, a cuBLAS and an NCCL that run on the processor, for tests of what calls them through
// their own interface: the order and size of arguments, threads, streams that run late, several processes. lib/fake.h says
// what it checks. It needs g++ and Python.
package fakegpu

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// Build compiles the libraries, all in one file in the folder dir, with these files of kernels (none: all that can be compiled for the processor), and
// returns its path.
func Build(dir string, kernels ...string) (string, error) {
	out := filepath.Join(dir, "libfakegpu.so")
	_, here, _, _ := runtime.Caller(0)
	c := exec.Command("bash", filepath.Join(filepath.Dir(here), "lib", "build.sh"), out)
	if len(kernels) > 0 {
		c.Env = append(c.Environ(), "KERNELS="+strings.Join(kernels, " "))
	}
	if text, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the fake libraries: %w\n%s", err, text)
	}
	return out, nil
}

// Env is the environment in which package native finds the libraries in the file that Build made.
func Env(lib string) []string {
	return []string{"RUBICON_LIBCUDA=" + lib, "RUBICON_CUBLAS=" + lib, "RUBICON_NCCL=" + lib}
}
