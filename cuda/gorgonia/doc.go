// Package gorgonia is the NVIDIA driver through gorgonia.org/cu, in place of package native's: for programs that use cgo and
// gorgonia.org/cu anyway. It is built with the tag gorgonia_cu, and needs cgo, CUDA's headers up to 12.9 and libcuda to link
// with (scripts/cuda-gorgonia.sh shows how, without a GPU). What gorgonia.org/cu lacks is in calls.go: pinned memory, the
// limit of dynamic shared memory, the messages of the driver's compiler, and launches of kernels whose arguments have more than
// eight bytes.
//
// A program with this driver does not start on a machine without NVIDIA's: gorgonia.org/cu ends it.
package gorgonia
