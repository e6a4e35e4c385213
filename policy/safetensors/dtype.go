package safetensors

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/rubicon-rl/rubicon/internal/half"
)

// DType is an element type by its name in the file.
type DType string

// The element types that can be converted to numbers here; files may hold others (their bytes can be read).
const (
	F64  DType = "F64"
	F32  DType = "F32"
	F16  DType = "F16"
	BF16 DType = "BF16"
	I64  DType = "I64"
	I32  DType = "I32"
	I16  DType = "I16"
	I8   DType = "I8"
	U32  DType = "U32"
	U16  DType = "U16"
	U8   DType = "U8"
	Bool DType = "BOOL"
)

// Size is the number of bytes of one element, 0 for a type that is not known.
func (d DType) Size() int {
	switch d {
	case Bool, U8, I8, "F8_E4M3", "F8_E5M2", "F8_E8M0":
		return 1
	case I16, U16, F16, BF16:
		return 2
	case I32, U32, F32:
		return 4
	case I64, "U64", F64, "C64":
		return 8
	}
	return 0
}

// rank orders tensors in a file as the reference implementation does: types of larger alignment first.
func (d DType) rank() int {
	for i, t := range []DType{"U64", I64, F64, "C64", F32, U32, I32, BF16, F16, U16, I16, "F8_E8M0", "F8_E4M3", "F8_E5M2", I8, U8, Bool} {
		if t == d {
			return i
		}
	}
	return -1
}

// Tensor is a named array; Data is its raw little-endian content, row-major, and lies in the mapping of the file:
// it must not be written to, nor used after the file is closed.
type Tensor struct {
	Name  string
	DType DType
	Shape []int
	Data  []byte
	File  string // where it was read, for messages
}

// Len is the number of elements.
func (t Tensor) Len() int { return len(t.Data) / t.DType.Size() }

// Rows is the slice [r0, r1) along the first axis, sharing the data. It panics if the range is not within the tensor,
// as slicing does.
func (t Tensor) Rows(r0, r1 int) Tensor {
	if r0 < 0 || r1 < r0 || r1 > t.Shape[0] {
		panic(fmt.Sprintf("safetensors: rows [%d,%d) of %q, which has %v", r0, r1, t.Name, t.Shape))
	}
	row := 0
	if t.Shape[0] > 0 {
		row = len(t.Data) / t.Shape[0]
	}
	t.Shape = append([]int{r1 - r0}, t.Shape[1:]...)
	t.Data = t.Data[r0*row : r1*row]
	return t
}

// Float32s converts F32, BF16 or F16 to float32, exactly. dst has Len elements.
func (t Tensor) Float32s(dst []float32) error {
	if err := t.fits(len(dst)); err != nil {
		return err
	}
	switch b := t.Data; t.DType {
	case F32:
		for i := range dst {
			dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		}
	case BF16:
		for i := range dst {
			dst[i] = half.FromBF16(binary.LittleEndian.Uint16(b[2*i:]))
		}
	case F16:
		for i := range dst {
			dst[i] = half.FromF16(binary.LittleEndian.Uint16(b[2*i:]))
		}
	default:
		return t.unsupported("F32, BF16, F16")
	}
	return nil
}

// Bits copies the bit patterns of BF16 or F16. dst has Len elements.
func (t Tensor) Bits(dst []uint16) error {
	if err := t.fits(len(dst)); err != nil {
		return err
	}
	if t.DType != BF16 && t.DType != F16 {
		return t.unsupported("BF16, F16")
	}
	for i := range dst {
		dst[i] = binary.LittleEndian.Uint16(t.Data[2*i:])
	}
	return nil
}

// Int64s converts any integer type but U64, or BOOL, to int64. dst has Len elements.
func (t Tensor) Int64s(dst []int64) error {
	if err := t.fits(len(dst)); err != nil {
		return err
	}
	b := t.Data
	for i := range dst {
		switch t.DType {
		case I64:
			dst[i] = int64(binary.LittleEndian.Uint64(b[8*i:]))
		case I32:
			dst[i] = int64(int32(binary.LittleEndian.Uint32(b[4*i:])))
		case U32:
			dst[i] = int64(binary.LittleEndian.Uint32(b[4*i:]))
		case I16:
			dst[i] = int64(int16(binary.LittleEndian.Uint16(b[2*i:])))
		case U16:
			dst[i] = int64(binary.LittleEndian.Uint16(b[2*i:]))
		case I8:
			dst[i] = int64(int8(b[i]))
		case U8, Bool:
			dst[i] = int64(b[i])
		default:
			return t.unsupported("I64, I32, I16, I8, U32, U16, U8, BOOL")
		}
	}
	return nil
}

func (t Tensor) fits(n int) error {
	if t.DType.Size() == 0 {
		return fmt.Errorf("read tensor %q of %s: unknown type %q", t.Name, t.File, t.DType)
	}
	if n != t.Len() {
		return fmt.Errorf("read tensor %q of %s: it has %d elements, the destination %d", t.Name, t.File, t.Len(), n)
	}
	return nil
}

func (t Tensor) unsupported(known string) error {
	return fmt.Errorf("read tensor %q of %s: type %s is not supported here; supported: %s", t.Name, t.File, t.DType, known)
}
