package native

import "github.com/rubicon-rl/rubicon/cuda/driver"

// Codes of the driver that are told apart.
const (
	codeOutOfMemory    = 2
	codeUnsupportedPTX = 222
	codeNotReady       = 600
)

// known is the name of a code, and what to do.
type known struct{ name, hint string }

const broken = "the device cannot be used in this process any more: start it again; RUBICON_CUDA_SYNC=1 shows which kernel it was"

// driverErrors are the results of the driver's functions that have a known cause (CUresult of cuda.h).
func driverErrors() map[int]known {
	return map[int]known{
		1:   {"CUDA_ERROR_INVALID_VALUE", ""},
		2:   {"CUDA_ERROR_OUT_OF_MEMORY", "the device's memory is full: lower optim.per_device_train_batch_size (and raise optim.gradient_accumulation_steps as much), rollout.max_batch or rollout.max_completion_length, set model.dtype and model.compute_dtype to bfloat16, or end what else runs on the device (nvidia-smi lists it)"},
		3:   {"CUDA_ERROR_NOT_INITIALIZED", ""},
		4:   {"CUDA_ERROR_DEINITIALIZED", "the driver is shutting down"},
		46:  {"CUDA_ERROR_DEVICE_UNAVAILABLE", "another process has the device for itself: wait for it, or choose another device by CUDA_VISIBLE_DEVICES"},
		100: {"CUDA_ERROR_NO_DEVICE", "the driver sees no device: look at nvidia-smi and CUDA_VISIBLE_DEVICES, and in a container start it with its GPUs (docker run --gpus all)"},
		101: {"CUDA_ERROR_INVALID_DEVICE", "there is no device of this number: look at LOCAL_RANK and CUDA_VISIBLE_DEVICES"},
		200: {"CUDA_ERROR_INVALID_IMAGE", ""},
		201: {"CUDA_ERROR_INVALID_CONTEXT", "the call came from a thread that the device is not bound to"},
		209: {"CUDA_ERROR_NO_BINARY_FOR_GPU", "the kernels need compute capability 8.0 or later"},
		214: {"CUDA_ERROR_ECC_UNCORRECTABLE", "the device's memory is faulty: reset the device, or have it replaced"},
		218: {"CUDA_ERROR_INVALID_PTX", ""},
		221: {"CUDA_ERROR_JIT_COMPILER_NOT_FOUND", "libnvidia-ptxjitcompiler is missing, a part of the driver: install the driver's compute package (libnvidia-compute), or give the container the capability compute"},
		222: {"CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "the driver is too old for the kernels, which need CUDA 11.8 (driver 520) or later: update the driver"},
		500: {"CUDA_ERROR_NOT_FOUND", ""},
		600: {"CUDA_ERROR_NOT_READY", ""},
		700: {"CUDA_ERROR_ILLEGAL_ADDRESS", "a kernel read or wrote outside of memory; " + broken},
		701: {"CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "the kernel wants more threads, registers or shared memory than the device has"},
		702: {"CUDA_ERROR_LAUNCH_TIMEOUT", "a kernel ran longer than the system lets it, as on a device that also drives a screen; " + broken},
		715: {"CUDA_ERROR_ILLEGAL_INSTRUCTION", broken},
		716: {"CUDA_ERROR_MISALIGNED_ADDRESS", broken},
		719: {"CUDA_ERROR_LAUNCH_FAILED", broken},
		802: {"CUDA_ERROR_SYSTEM_NOT_READY", "the machine's devices are not ready yet: on one with NVSwitch start the service nvidia-fabricmanager"},
		803: {"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "libcuda and the kernel's driver are of different versions: restart the machine, or do not bring a libcuda of your own into the container"},
		804: {"CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", "the compatibility libcuda is for data-centre devices only: remove cuda/compat from LD_LIBRARY_PATH"},
		999: {"CUDA_ERROR_UNKNOWN", "look at the system's log (dmesg) for messages of the driver, marked NVRM or Xid"},
	}
}

// DriverError is a call to the driver that failed with a code (CUresult of cuda.h).
func DriverError(call string, code int) *driver.Error {
	e := &driver.Error{Call: call, Code: code, Name: "CUDA error"}
	if k, ok := driverErrors()[code]; ok {
		e.Name, e.Hint = k.name, k.hint
	}
	return e
}

// blasError is a failed call to cuBLAS (cublasStatus_t of cublas_api.h).
func blasError(call string, code int) *driver.Error {
	k, ok := map[int]known{
		1:  {"CUBLAS_STATUS_NOT_INITIALIZED", "cuBLAS cannot use the device: it may be too new for the driver (rubicon doctor prints both versions), or the device's memory is full"},
		3:  {"CUBLAS_STATUS_ALLOC_FAILED", driverErrors()[codeOutOfMemory].hint},
		7:  {"CUBLAS_STATUS_INVALID_VALUE", ""},
		8:  {"CUBLAS_STATUS_ARCH_MISMATCH", "this cuBLAS does not know the device: install the one of the driver's version"},
		11: {"CUBLAS_STATUS_MAPPING_ERROR", ""},
		13: {"CUBLAS_STATUS_EXECUTION_FAILED", broken},
		14: {"CUBLAS_STATUS_INTERNAL_ERROR", broken},
		15: {"CUBLAS_STATUS_NOT_SUPPORTED", ""},
		16: {"CUBLAS_STATUS_LICENSE_ERROR", ""},
	}[code]
	if !ok {
		k.name = "cuBLAS status"
	}
	return &driver.Error{Call: call, Code: code, Name: k.name, Hint: k.hint}
}

// collError is a failed call to NCCL (ncclResult_t of nccl.h).
func collError(call string, code int) *driver.Error {
	k, ok := map[int]known{
		1: {"ncclUnhandledCudaError", "NCCL_DEBUG=WARN prints its cause"},
		2: {"ncclSystemError", "NCCL_DEBUG=WARN prints its cause; in a container raise the size of /dev/shm"},
		3: {"ncclInternalError", "NCCL_DEBUG=WARN prints its cause"},
		4: {"ncclInvalidArgument", ""},
		5: {"ncclInvalidUsage", "every rank needs a device of its own: look at LOCAL_RANK and CUDA_VISIBLE_DEVICES"},
		6: {"ncclRemoteError", "another rank has ended or lost its connection: look at its output"},
	}[code]
	if !ok {
		k.name = "NCCL result"
	}
	return &driver.Error{Call: call, Code: code, Name: k.name, Hint: k.hint}
}
