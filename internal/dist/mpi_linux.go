//go:build linux && (amd64 || arm64) && !nocuda && !nodl

package dist

import (
	"errors"
	"fmt"
	"syscall"
	"unsafe"

	"github.com/ebitengine/purego"
)

// openMPI opens the MPI library that belongs to the launcher, or the one that RUBICON_LIBMPI names.
func openMPI(getenv func(string) string) (*abi, string, error) {
	paths := []string{"libmpi.so.40", "libmpi.so.12", "libmpich.so.12", "libmpi.so"} // Open MPI, MPICH and Intel MPI, Debian's MPICH
	if getenv("OMPI_COMM_WORLD_SIZE") == "" && getenv("PMI_SIZE") != "" {
		paths = []string{"libmpi.so.12", "libmpich.so.12", "libmpi.so", "libmpi.so.40"}
	}
	if own := getenv("RUBICON_LIBMPI"); own != "" {
		paths = []string{own}
	}
	var missing error
	for _, path := range paths {
		lib, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_GLOBAL)
		if err != nil {
			missing = errors.Join(missing, err)
			continue
		}
		a, err := bindMPI(lib)
		if err != nil {
			return nil, "", fmt.Errorf("%s: %w", path, err)
		}
		return a, path, nil
	}
	return nil, "", fmt.Errorf("there is no MPI library: install one (apt's openmpi-bin), name it in RUBICON_LIBMPI, or set dist.backend to tcp: %w", missing)
}

func bindMPI(lib uintptr) (*abi, error) {
	a := &abi{}
	for name, to := range a.names() {
		fn, err := purego.Dlsym(lib, name)
		if err != nil {
			return nil, fmt.Errorf("it is no MPI library: %w", err)
		}
		*to = fn
	}
	world, err := purego.Dlsym(lib, "ompi_mpi_comm_world")
	if err != nil { // mpi.h of MPICH, whose binary interface Intel MPI and MVAPICH share
		a.world, a.bytes, a.errorsReturn, a.ignoreStatus = 0x44000000, 0x4c00010d, 0x54000001, 1
		return a, nil
	}
	a.world = world // mpi.h of Open MPI
	var err1, err2 error
	a.bytes, err1 = purego.Dlsym(lib, "ompi_mpi_byte")
	a.errorsReturn, err2 = purego.Dlsym(lib, "ompi_mpi_errors_return")
	return a, errors.Join(err1, err2)
}

// invoke calls a C function. What the arguments point to is on the heap, where it does not move.
//
//go:uintptrescapes
func invoke(fn uintptr, a ...uintptr) uintptr {
	r, _, _ := purego.SyscallN(fn, a...)
	return r
}

// keepSignals notes how signals are handled; restore makes it so again. MPI's libraries take over faults, for a report of their
// own, and end the process with it; Go's runtime needs them. It asks the system, because some replace the C library's functions.
func keepSignals() (restore func()) {
	const last = 31
	var kept [last + 1][8]uint64 // the system's struct sigaction has at most four words
	action := func(signal int, set, get uintptr) {
		syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(signal), set, get, 8, 0, 0)
	}
	for s := 1; s <= last; s++ {
		action(s, 0, uintptr(unsafe.Pointer(&kept[s])))
	}
	return func() {
		for s := 1; s <= last; s++ {
			action(s, uintptr(unsafe.Pointer(&kept[s])), 0) // refused for SIGKILL and SIGSTOP, which nobody handles
		}
	}
}
