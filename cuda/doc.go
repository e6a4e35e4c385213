// Package cuda is the NVIDIA device: internal/device's operations as kernels of our own (kernels/*.cu, embedded as PTX, see
// scripts/ptx.sh) and matrix products of cuBLAS, on a driver that is found at run time (package cuda/native) or simulated
// (package cuda/ptxsim). It needs no toolkit and no cgo.
//
// Activations are bfloat16, or float32 for tests and small models; parameters, log-probabilities and sums are float32.
// Operations are put in one stream and return at once; what goes wrong shows in the first call that waits (package device).
// Integers live on the host as well, where indices are checked.
//
// Each operation has a file OP.go here, kernels/OP.cu, and a case in internal/device/devicetest.
package cuda
