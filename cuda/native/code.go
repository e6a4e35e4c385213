package native

import (
	"fmt"
	"runtime"
	"unsafe"

	"github.com/rubicon-rl/rubicon/cuda/driver"
)

// jit is what the driver's compiler is given and writes to: options with their values, each of the size of a pointer.
type jit struct {
	option [2]int32
	value  [2]uintptr
	log    [16 << 10]byte
}

// Options of cuModuleLoadDataEx.
const (
	jitErrorLog     = 5
	jitErrorLogSize = 6
)

// Load implements driver.Code. Code that the driver refuses gives an error with its compiler's messages.
func (d *Driver) Load(ptx []byte) (driver.Module, error) {
	j := new(jit)
	j.option = [2]int32{jitErrorLog, jitErrorLogSize}
	j.value = [2]uintptr{uintptr(unsafe.Pointer(&j.log)), uintptr(len(j.log) - 1)}
	image := append(ptx[:len(ptx):len(ptx)], 0)
	m := new(driver.Module)
	err := d.cuda.call(fModuleLoadDataEx, uintptr(unsafe.Pointer(m)), uintptr(unsafe.Pointer(&image[0])), uintptr(len(j.option)),
		uintptr(unsafe.Pointer(&j.option)), uintptr(unsafe.Pointer(&j.value)))
	runtime.KeepAlive(j)
	if err != nil {
		if log := goText(&j.log[0]); log != "" {
			err = fmt.Errorf("%w\n%s", err, log)
		}
		return 0, err
	}
	d.modules = append(d.modules, *m)
	return *m, nil
}

// Func implements driver.Code.
func (d *Driver) Func(m driver.Module, name string) (driver.Func, error) {
	f, s := new(driver.Func), text(name)
	err := d.cuda.call(fModuleGetFunction, uintptr(unsafe.Pointer(f)), uintptr(m), uintptr(unsafe.Pointer(&s[0])))
	return *f, err
}

const maxDynamicShared = 8 // attribute of a function

// SetShared implements driver.Code.
func (d *Driver) SetShared(f driver.Func, n int) error {
	return d.cuda.call(fFuncSetAttribute, uintptr(f), maxDynamicShared, uintptr(n))
}

// Launch implements driver.Code. With RUBICON_CUDA_SYNC=1 it waits for the kernel.
func (d *Driver) Launch(f driver.Func, l driver.Launch, a *driver.Args) error {
	err := d.cuda.call(fLaunchKernel, uintptr(f),
		uintptr(l.Grid[0]), uintptr(l.Grid[1]), uintptr(l.Grid[2]), uintptr(l.Block[0]), uintptr(l.Block[1]), uintptr(l.Block[2]),
		uintptr(l.Shared), uintptr(l.Stream), uintptr(a.Params()), 0)
	runtime.KeepAlive(a)
	if err == nil && d.cuda.sync {
		err = d.SyncStream(l.Stream)
	}
	return err
}
