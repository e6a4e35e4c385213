package gguf

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/rubicon-rl/rubicon/internal/half"
)

// Type is how a tensor is stored, by ggml's number.
type Type uint32

// The types that can be read. Blocks of 32 values: Q8_0 is a float16 scale d and 32 int8 q, value d·q; Q4_1 is float16
// d and m and 16 bytes of two 4-bit q, the first 16 values in the low halves, value d·q + m.
const (
	F32  Type = 0
	F16  Type = 1
	Q4_1 Type = 3
	Q8_0 Type = 8
	BF16 Type = 30
)

const supportedTypes = "F32, F16, BF16, Q8_0, Q4_1"

// String is ggml's name of the type.
func (t Type) String() string {
	names := map[Type]string{
		F32: "F32", F16: "F16", 2: "Q4_0", Q4_1: "Q4_1", 6: "Q5_0", 7: "Q5_1", Q8_0: "Q8_0", 9: "Q8_1", 10: "Q2_K", 11: "Q3_K",
		12: "Q4_K", 13: "Q5_K", 14: "Q6_K", 15: "Q8_K", 16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S", 20: "IQ4_NL",
		21: "IQ3_S", 22: "IQ2_S", 23: "IQ4_XS", 24: "I8", 25: "I16", 26: "I32", 27: "I64", 28: "F64", 29: "IQ1_M", BF16: "BF16",
		34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4",
	}
	if name, ok := names[t]; ok {
		return name
	}
	return fmt.Sprintf("number %d", uint32(t))
}

// block is how many values are stored together, and in how many bytes; 0 bytes if the type cannot be read.
func (t Type) block() (values, bytes int) {
	switch t {
	case F32:
		return 1, 4
	case F16, BF16:
		return 1, 2
	case Q8_0:
		return 32, 2 + 32
	case Q4_1:
		return 32, 2 + 2 + 16
	}
	return 1, 0
}

// Len is the number of values.
func (t Tensor) Len() int {
	values, bytes := t.Type.block()
	return len(t.Data) / bytes * values
}

// Row is row r of a tensor seen as a matrix whose rows are its last axis.
func (t Tensor) Row(r int) Tensor {
	values, bytes := t.Type.block()
	n := t.Shape[len(t.Shape)-1]
	size := n / values * bytes
	return Tensor{t.Name, t.Type, []int{n}, t.Data[r*size : (r+1)*size]}
}

// Float32s dequantises, in float32 arithmetic as ggml does. dst has Len values.
func (t Tensor) Float32s(dst []float32) error {
	if len(dst) != t.Len() {
		return fmt.Errorf("read tensor %q: it has %d values, the destination %d", t.Name, t.Len(), len(dst))
	}
	b := t.Data
	switch t.Type {
	case F32:
		for i := range dst {
			dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		}
	case F16:
		for i := range dst {
			dst[i] = half.FromF16(binary.LittleEndian.Uint16(b[2*i:]))
		}
	case BF16:
		for i := range dst {
			dst[i] = half.FromBF16(binary.LittleEndian.Uint16(b[2*i:]))
		}
	case Q8_0:
		for ; len(b) > 0; b, dst = b[34:], dst[32:] {
			d := half.FromF16(binary.LittleEndian.Uint16(b))
			for i, q := range b[2:34] {
				dst[i] = d * float32(int8(q))
			}
		}
	case Q4_1:
		for ; len(b) > 0; b, dst = b[20:], dst[32:] {
			d, m := half.FromF16(binary.LittleEndian.Uint16(b)), half.FromF16(binary.LittleEndian.Uint16(b[2:]))
			for i, q := range b[4:20] { // the products are rounded before the sum on every machine
				dst[i] = float32(d*float32(q&15)) + m
				dst[i+16] = float32(d*float32(q>>4)) + m
			}
		}
	}
	return nil
}
