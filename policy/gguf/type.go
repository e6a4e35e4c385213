package gguf

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/rubicon-rl/rubicon/internal/half"
)

// Type is how a tensor is stored, by ggml's number.
type Type uint32

// The types that can be read; quant.go has the layout of the quantised ones.
const (
	F32  Type = 0
	F16  Type = 1
	Q4_0 Type = 2
	Q4_1 Type = 3
	Q8_0 Type = 8
	Q4_K Type = 12
	Q6_K Type = 14
	BF16 Type = 30
)

const supportedTypes = "F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q4_K, Q6_K"

// String is ggml's name of the type.
func (t Type) String() string {
	names := map[Type]string{
		F32: "F32", F16: "F16", Q4_0: "Q4_0", Q4_1: "Q4_1", 6: "Q5_0", 7: "Q5_1", Q8_0: "Q8_0", 9: "Q8_1", 10: "Q2_K", 11: "Q3_K",
		Q4_K: "Q4_K", 13: "Q5_K", Q6_K: "Q6_K", 15: "Q8_K", 16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S", 20: "IQ4_NL",
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
	case Q4_0:
		return 32, 2 + 16
	case Q4_1:
		return 32, 2 + 2 + 16
	case Q4_K:
		return 256, 2 + 2 + 12 + 128
	case Q6_K:
		return 256, 128 + 64 + 16 + 2
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
	default:
		t.dequantise(dst)
	}
	return nil
}
