package gguf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/rubicon-rl/rubicon/internal/half"
)

// appendValues appends values as t: F32, F16, BF16 (rounded to nearest even) or Q8_0, for which they are whole blocks. A
// value that is not finite, or not in the type, is an error.
func (t Type) appendValues(dst []byte, values []float32) ([]byte, error) {
	for i, v := range values {
		if v-v != 0 {
			return nil, fmt.Errorf("value %d is %v: the weights are damaged", i, v)
		}
	}
	if t == Q8_0 {
		for ; len(values) > 0; values = values[blockQ8:] {
			var ok bool
			if dst, ok = appendQ8(dst, values[:blockQ8]); !ok {
				return nil, tooLarge(t)
			}
		}
		return dst, nil
	}
	for _, v := range values {
		switch t {
		case F32:
			dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(v))
		case F16:
			h := half.ToF16(v)
			if !finiteF16(h) {
				return nil, tooLarge(t)
			}
			dst = binary.LittleEndian.AppendUint16(dst, h)
		case BF16:
			dst = binary.LittleEndian.AppendUint16(dst, half.ToBF16(v))
		default:
			return nil, errors.New("cannot write values as " + t.String())
		}
	}
	return dst, nil
}

func tooLarge(t Type) error {
	return fmt.Errorf("a value is too large for %v: choose bf16 or f32", t)
}

func finiteF16(h uint16) bool { return h&0x7C00 != 0x7C00 }

// blockQ8 is how many values of Q8_0 share a scale.
const blockQ8 = 32

// appendQ8 appends a block of Q8_0, the bytes that llama.cpp's reference quantiser (quantize_row_q8_0_ref) gives: with d
// the largest magnitude / 127, the codes are the values times 1/d, halves away from zero, and the scale stored is d in
// float16. ok is false if that is not finite.
func appendQ8(dst []byte, x []float32) (out []byte, ok bool) {
	most := float32(0)
	for _, v := range x {
		most = max(most, float32(math.Abs(float64(v))))
	}
	d := most / 127
	inverse := float32(0)
	if d != 0 {
		inverse = 1 / d
	}
	scale := half.ToF16(d)
	dst = binary.LittleEndian.AppendUint16(dst, scale)
	for _, v := range x {
		code := math.Round(float64(float32(v * inverse)))
		if !(math.Abs(code) <= 127) { // 1/d exceeds float32: the scale is 0, whatever the code
			code = 0
		}
		dst = append(dst, byte(int8(code)))
	}
	return dst, finiteF16(scale)
}
