package native

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"unsafe"
)

// Functions of the driver's library, and their names in it.
const (
	fInit = iota
	fDriverGetVersion
	fDeviceGetCount
	fDeviceGet
	fDeviceGetName
	fDeviceTotalMem
	fDeviceGetAttribute
	fDeviceCanAccessPeer
	fPrimaryCtxRetain
	fPrimaryCtxRelease
	fCtxSetCurrent
	fMemGetInfo
	fMemAlloc
	fMemFree
	fMemHostAlloc
	fMemFreeHost
	fMemcpyHtoDAsync
	fMemcpyDtoHAsync
	fMemcpyDtoDAsync
	fMemsetD8Async
	fStreamCreate
	fStreamDestroy
	fStreamSynchronize
	fStreamQuery
	fStreamWaitEvent
	fEventCreate
	fEventDestroy
	fEventRecord
	fEventSynchronize
	fEventElapsedTime
	fModuleLoadDataEx
	fModuleUnload
	fModuleGetFunction
	fFuncSetAttribute
	fLaunchKernel
)

func driverNames() []string {
	return []string{
		fInit: "cuInit", fDriverGetVersion: "cuDriverGetVersion",
		fDeviceGetCount: "cuDeviceGetCount", fDeviceGet: "cuDeviceGet", fDeviceGetName: "cuDeviceGetName",
		fDeviceTotalMem: "cuDeviceTotalMem_v2", fDeviceGetAttribute: "cuDeviceGetAttribute", fDeviceCanAccessPeer: "cuDeviceCanAccessPeer",
		fPrimaryCtxRetain: "cuDevicePrimaryCtxRetain", fPrimaryCtxRelease: "cuDevicePrimaryCtxRelease_v2", fCtxSetCurrent: "cuCtxSetCurrent",
		fMemGetInfo: "cuMemGetInfo_v2", fMemAlloc: "cuMemAlloc_v2", fMemFree: "cuMemFree_v2",
		fMemHostAlloc: "cuMemHostAlloc", fMemFreeHost: "cuMemFreeHost",
		fMemcpyHtoDAsync: "cuMemcpyHtoDAsync_v2", fMemcpyDtoHAsync: "cuMemcpyDtoHAsync_v2", fMemcpyDtoDAsync: "cuMemcpyDtoDAsync_v2",
		fMemsetD8Async: "cuMemsetD8Async",
		fStreamCreate:  "cuStreamCreate", fStreamDestroy: "cuStreamDestroy_v2", fStreamSynchronize: "cuStreamSynchronize",
		fStreamQuery: "cuStreamQuery", fStreamWaitEvent: "cuStreamWaitEvent",
		fEventCreate: "cuEventCreate", fEventDestroy: "cuEventDestroy_v2", fEventRecord: "cuEventRecord",
		fEventSynchronize: "cuEventSynchronize", fEventElapsedTime: "cuEventElapsedTime",
		fModuleLoadDataEx: "cuModuleLoadDataEx", fModuleUnload: "cuModuleUnload", fModuleGetFunction: "cuModuleGetFunction",
		fFuncSetAttribute: "cuFuncSetAttribute", fLaunchKernel: "cuLaunchKernel",
	}
}

// CUDA is NVIDIA's driver.
type CUDA struct {
	*library
	version int
	sync    bool // wait after each launch, so that an error is that kernel's
}

// DriverName is What of the NotFound of a machine without NVIDIA's driver.
const DriverName = "NVIDIA's driver (libcuda)"

// Load opens the driver and starts it.
func Load(e Env) (*CUDA, error) {
	w := wanted{
		what: DriverName, override: "RUBICON_LIBCUDA", sonames: []string{"libcuda.so.1"},
		system: []string{"/usr/lib/wsl/lib", "/usr/local/nvidia/lib64", "/run/opengl-driver/lib"},
		hint:   "install NVIDIA's driver 520 or later, in a container start it with its GPUs (docker run --gpus all), or set RUBICON_LIBCUDA to the file",
	}
	l, err := w.load(e, driverNames(), DriverError)
	if err != nil {
		return nil, err
	}
	c := &CUDA{library: l, sync: e.Getenv("RUBICON_CUDA_SYNC") == "1"}
	if err := c.call(fInit, 0); err != nil {
		return nil, fmt.Errorf("%s: %w", c.path, err)
	}
	version := new(int32)
	if err := c.call(fDriverGetVersion, uintptr(unsafe.Pointer(version))); err != nil {
		return nil, err
	}
	c.version = int(*version)
	return c, nil
}

// Path is the driver's file.
func (c *CUDA) Path() string { return c.path }

// Version is the newest CUDA that the driver can do, as "12.4".
func (c *CUDA) Version() string { return fmt.Sprintf("%d.%d", c.version/1000, c.version%1000/10) }

// Major is the first number of Version.
func (c *CUDA) Major() int { return c.version / 1000 }

// Device is a device that the driver sees.
type Device struct {
	Ordinal      int
	Name         string
	Major, Minor int // compute capability
	Memory       int64
	Processors   int // streaming multiprocessors
	SharedLimit  int // bytes of dynamic shared memory a block may have at most
	Peers        []int
	handle       int32
}

// Attributes of a device (CUdevice_attribute).
const (
	attrProcessors = 16
	attrMajor      = 75
	attrMinor      = 76
	attrShared     = 97
)

// Devices lists the devices, with the ones whose memory each reaches directly.
func (c *CUDA) Devices() ([]Device, error) {
	count := new(int32)
	if err := c.call(fDeviceGetCount, uintptr(unsafe.Pointer(count))); err != nil {
		return nil, err
	}
	list := make([]Device, *count)
	for i := range list {
		if err := c.describe(i, &list[i]); err != nil {
			return nil, fmt.Errorf("device %d: %w", i, err)
		}
	}
	if len(list) == 0 {
		return nil, DriverError("cuDeviceGetCount", 100)
	}
	for i := range list {
		for j := range list {
			reach := new(int32)
			if err := c.call(fDeviceCanAccessPeer, uintptr(unsafe.Pointer(reach)), uintptr(list[i].handle), uintptr(list[j].handle)); err != nil {
				return nil, err
			}
			if *reach != 0 && i != j {
				list[i].Peers = append(list[i].Peers, j)
			}
		}
	}
	return list, nil
}

func (c *CUDA) describe(i int, d *Device) error {
	got := new(struct {
		handle int32
		value  [4]int32
		memory uint64
		name   [256]byte
	})
	err := c.call(fDeviceGet, uintptr(unsafe.Pointer(&got.handle)), uintptr(i))
	if err != nil {
		return err
	}
	device := uintptr(got.handle)
	err = errors.Join(
		c.call(fDeviceGetName, uintptr(unsafe.Pointer(&got.name)), uintptr(len(got.name)), device),
		c.call(fDeviceTotalMem, uintptr(unsafe.Pointer(&got.memory)), device))
	for j, attribute := range []uintptr{attrMajor, attrMinor, attrProcessors, attrShared} {
		err = errors.Join(err, c.call(fDeviceGetAttribute, uintptr(unsafe.Pointer(&got.value[j])), attribute, device))
	}
	*d = Device{
		Ordinal: i, Name: goText(&got.name[0]), Memory: int64(got.memory), handle: got.handle,
		Major: int(got.value[0]), Minor: int(got.value[1]), Processors: int(got.value[2]), SharedLimit: int(got.value[3]),
	}
	runtime.KeepAlive(got)
	return err
}

// Refusal says why the device cannot be used; nil if it can.
func (d Device) Refusal() error {
	if d.Major >= 8 {
		return nil
	}
	return fmt.Errorf("device %d (%s) has compute capability %d.%d, but bfloat16 needs 8.0 or later (A100, RTX 30 and newer): choose another device by LOCAL_RANK or CUDA_VISIBLE_DEVICES, or set device to cpu",
		d.Ordinal, d.Name, d.Major, d.Minor)
}

// Choose returns the device of a process whose number on its machine is rank; "" is the first.
func Choose(list []Device, rank string) (Device, error) {
	if rank == "" {
		rank = "0"
	}
	i, err := strconv.Atoi(rank)
	if err == nil && i >= 0 && i < len(list) {
		return list[i], nil
	}
	var names []string
	for _, d := range list {
		names = append(names, fmt.Sprintf("%d: %s", d.Ordinal, d.Name))
	}
	return Device{}, fmt.Errorf("LOCAL_RANK is %s, but the devices are %s: start one process for each device, or look at CUDA_VISIBLE_DEVICES",
		rank, strings.Join(names, ", "))
}
