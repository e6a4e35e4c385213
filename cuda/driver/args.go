package driver

import "unsafe"

// maxArgs is how many arguments a kernel may have, maxArg the bytes of the largest.
const (
	maxArgs = 48
	maxArg  = 16
)

// Args are the arguments of a launch, in the order of the kernel's parameters. They are copied by the launch, so that an
// Args is used again and again; it has to be on the heap, where it does not move.
type Args struct {
	value [maxArgs][maxArg / 8]uint64
	at    [maxArgs]unsafe.Pointer
	n     int
}

// Reset empties a.
func (a *Args) Reset() *Args {
	a.n = 0
	return a
}

func (a *Args) slot() unsafe.Pointer {
	p := unsafe.Pointer(&a.value[a.n])
	a.value[a.n] = [maxArg / 8]uint64{}
	a.at[a.n] = p
	a.n++
	return p
}

// Ptr appends an address.
func (a *Args) Ptr(p Ptr) *Args {
	*(*Ptr)(a.slot()) = p
	return a
}

// Int appends an int32.
func (a *Args) Int(v int) *Args {
	*(*int32)(a.slot()) = int32(v)
	return a
}

// Uint appends a uint32.
func (a *Args) Uint(v uint32) *Args {
	*(*uint32)(a.slot()) = v
	return a
}

// Float appends a float32.
func (a *Args) Float(v float32) *Args {
	*(*float32)(a.slot()) = v
	return a
}

// Double appends a float64.
func (a *Args) Double(v float64) *Args {
	*(*float64)(a.slot()) = v
	return a
}

// Matrix appends a struct View of kernels/rt.cuh: address, stride and type.
func (a *Args) Matrix(m Matrix) *Args {
	v := (*struct {
		at           Ptr
		stride, kind int32
	})(a.slot())
	v.at, v.stride, v.kind = m.At, int32(m.Stride), int32(m.Type)
	return a
}

// Len is the number of arguments.
func (a *Args) Len() int { return a.n }

// Bytes are the memory of argument i, of which the kernel's parameter takes as many as it has.
func (a *Args) Bytes(i int) []byte { return unsafe.Slice((*byte)(a.at[i]), maxArg) }

// Params is the array of pointers that the driver's launch call wants.
func (a *Args) Params() unsafe.Pointer { return unsafe.Pointer(&a.at[0]) }
