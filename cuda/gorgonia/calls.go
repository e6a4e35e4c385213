//go:build gorgonia_cu && cgo

package gorgonia

/*
#cgo linux CFLAGS: -I/usr/local/cuda/include
#cgo linux LDFLAGS: -L/usr/local/cuda/lib64/stubs -lcuda
#include <cuda.h>

static CUresult load(CUmodule *m, const char *image, char *log, size_t n) {
	CUjit_option option[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	void *value[] = {log, (void *)n};
	return cuModuleLoadDataEx(m, image, 2, option, value);
}

static CUresult set_shared(uintptr_t f, int n) {
	return cuFuncSetAttribute((CUfunction)f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, n);
}

// launch: argument i is at value + 2*i.
static CUresult launch(uintptr_t f, const unsigned *shape, unsigned shared, uintptr_t stream, unsigned long long *value, int n) {
	void *at[64];
	if (n > 64) return CUDA_ERROR_INVALID_VALUE;
	for (int i = 0; i < n; i++) at[i] = value + 2 * i;
	return cuLaunchKernel((CUfunction)f, shape[0], shape[1], shape[2], shape[3], shape[4], shape[5], shared, (CUstream)stream, at, 0);
}
*/
import "C"

import (
	"fmt"
	"unsafe"

	"github.com/rubicon-rl/rubicon/cuda/driver"
	"github.com/rubicon-rl/rubicon/cuda/native"
)

// sharedLimit is the attribute of a device that gorgonia.org/cu has no name for.
const sharedLimit = C.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN

// result is the error of a call.
func result(call string, code C.CUresult) error {
	if code == C.CUDA_SUCCESS {
		return nil
	}
	return native.DriverError(call, int(code))
}

// HostAlloc implements driver.Memory.
func (d *Driver) HostAlloc(n int) ([]byte, error) {
	var p unsafe.Pointer
	if err := result("cuMemHostAlloc", C.cuMemHostAlloc(&p, C.size_t(n), 0)); err != nil {
		return nil, err
	}
	return unsafe.Slice((*byte)(p), n), nil
}

// Load implements driver.Code. Code that the driver refuses gives an error with its compiler's messages.
func (d *Driver) Load(ptx []byte) (driver.Module, error) {
	image, log := append(ptx[:len(ptx):len(ptx)], 0), make([]byte, 16<<10)
	var m C.CUmodule
	err := result("cuModuleLoadDataEx", C.load(&m, (*C.char)(unsafe.Pointer(&image[0])), (*C.char)(unsafe.Pointer(&log[0])), C.size_t(len(log)-1)))
	if err != nil {
		if text := C.GoString((*C.char)(unsafe.Pointer(&log[0]))); text != "" {
			err = fmt.Errorf("%w\n%s", err, text)
		}
		return 0, err
	}
	return driver.Module(uintptr(unsafe.Pointer(m))), nil
}

// SetShared implements driver.Code.
func (d *Driver) SetShared(f driver.Func, n int) error {
	return result("cuFuncSetAttribute", C.set_shared(C.uintptr_t(f), C.int(n)))
}

// Launch implements driver.Code.
func (d *Driver) Launch(f driver.Func, l driver.Launch, a *driver.Args) error {
	shape := [6]C.uint{C.uint(l.Grid[0]), C.uint(l.Grid[1]), C.uint(l.Grid[2]), C.uint(l.Block[0]), C.uint(l.Block[1]), C.uint(l.Block[2])}
	values := (*C.ulonglong)(unsafe.Pointer(unsafe.SliceData(a.Bytes(0)))) // all of them, each 16 bytes
	return result("cuLaunchKernel", C.launch(C.uintptr_t(f), &shape[0], C.uint(l.Shared), C.uintptr_t(l.Stream), values, C.int(a.Len())))
}
