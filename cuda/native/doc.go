// Package native opens NVIDIA's libraries at run time, with neither cgo nor a toolkit: the driver (libcuda), cuBLAS and NCCL,
// as package driver wants them. It looks for each where its error says (search.go), and works on linux with glibc, on
// amd64 and arm64; elsewhere, and in programs built with the tag nocuda or nodl, opening is an error.
//
// What the driver makes current belongs to a thread of the operating system, so a Driver, with what was made on it, is
// used by one goroutine that is locked to its thread (runtime.LockOSThread) and has called Bind.
package native
