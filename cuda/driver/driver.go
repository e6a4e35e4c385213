// Package driver declares what the CUDA device needs of the machine: memory, streams, kernels (Driver), matrix products
// (Blas) and collectives (Coll). Package cuda/native opens NVIDIA's libraries at run time; package cuda/ptxsim runs the
// same kernels on the processor, for tests.
package driver

import "context"

// Handles of the driver. The zero value of each is none, or the driver's default.
type (
	Ptr    uint64 // address in device memory
	Stream uintptr
	Event  uintptr
	Module uintptr
	Func   uintptr
)

// Type is the type of the elements of a matrix.
type Type int32

const (
	F32 Type = iota
	BF16
)

// Size is the number of bytes of an element.
func (t Type) Size() int {
	if t == BF16 {
		return 2
	}
	return 4
}

// Info describes the device of a Driver.
type Info struct {
	Name        string // "NVIDIA A100-SXM4-80GB"
	Driver      string // "CUDA 12.4"
	Major       int    // compute capability
	Minor       int
	Processors  int   // streaming multiprocessors
	SharedLimit int   // bytes of dynamic shared memory a block may have at most
	Memory      int64 // bytes, all
}

// Driver is one device. What it makes current (Bind) belongs to the operating system's thread, so one goroutine, locked to
// its thread, makes all calls.
type Driver interface {
	Info() Info
	Bind() error // makes the device current on the calling thread
	Memory
	Streams
	Code
	Close() error
}

// Memory allocates and moves. Copies are asynchronous: they are ordered in their stream, and the host slice must stay
// untouched until the stream has passed them, and is best taken from HostAlloc.
type Memory interface {
	MemInfo() (free, total int64, err error)
	Alloc(n int64) (Ptr, error) // what is in it is undefined
	Free(p Ptr) error
	HostAlloc(n int) ([]byte, error) // pinned
	HostFree(b []byte) error
	CopyIn(dst Ptr, src []byte, s Stream) error
	CopyOut(dst []byte, src Ptr, s Stream) error
	Copy(dst, src Ptr, n int64, s Stream) error
	Fill(dst Ptr, v byte, n int64, s Stream) error
}

// Streams order work.
type Streams interface {
	NewStream() (Stream, error) // does not wait for the default stream
	CloseStream(s Stream) error
	SyncStream(s Stream) error
	NewEvent() (Event, error)
	CloseEvent(e Event) error
	Record(e Event, s Stream) error
	Wait(s Stream, e Event) error // what is put in s from now on waits for e
	SyncEvent(e Event) error
	Elapsed(from, to Event) (ms float32, err error)
}

// Code loads and launches kernels.
type Code interface {
	Load(ptx []byte) (Module, error)
	Func(m Module, name string) (Func, error)
	SetShared(f Func, n int) error // dynamic shared memory that launches of f may have, above 48 KiB
	Launch(f Func, l Launch, a *Args) error
}

// Launch is the shape of a kernel launch.
type Launch struct {
	Grid, Block [3]int
	Shared      int // bytes of dynamic shared memory
	Stream      Stream
}

// Matrix is a row-major matrix in device memory: element (r, c) is at At + (r*Stride + c) * Type.Size().
type Matrix struct {
	At     Ptr
	Stride int
	Type   Type
}

// Gemm is C = Alpha·op(A)·op(B) + Beta·C with op(A) [M,K], op(B) [K,N] and C [M,N], where op transposes if its flag is set.
// A and B are of one type, C is of that type or F32. Sums are float32, and no product of float32 is rounded to fewer bits.
// C is not read if Beta is 0.
type Gemm struct {
	TransA, TransB bool
	M, N, K        int
	Alpha, Beta    float32
	A, B, C        Matrix
}

// Blas multiplies matrices.
type Blas interface {
	Name() string // with the version
	Gemm(g Gemm, s Stream) error
	Close() error
}

// Coll is one rank of a group of processes, each with its own device. All ranks make the same calls in the same order.
type Coll interface {
	Rank() int
	World() int
	AllReduce(p Ptr, n int, t Type, s Stream) error // sum, in place
	Broadcast(p Ptr, n int, t Type, root int, s Stream) error
	AllGather(dst, src Ptr, n int, t Type, s Stream) error     // n elements of each rank
	ReduceScatter(dst, src Ptr, n int, t Type, s Stream) error // sum; n elements for each rank
	// Wait waits for what is in s. A rank that died, or does not come, is an error when ctx ends, or as soon as that shows.
	Wait(ctx context.Context, s Stream) error
	Abort() error // makes calls that hang on a dead rank return
	Close() error
}
