package gguf

import (
	"encoding/binary"

	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/internal/half"
)

// DType is the type of a weight that keeps such a tensor as it is; a Float32 one holds F16 too.
func (t Type) DType() device.DType {
	switch t {
	case BF16:
		return device.BFloat16
	case Q8_0:
		return device.Int8
	case Q4_0:
		return device.Int4Sym
	case Q4_1:
		return device.Int4
	case Q4_K:
		return device.Int4K
	case Q6_K:
		return device.Int8K
	}
	return device.Float32
}

// quantised reads the blocks of a quantised tensor, of one row, as a weight keeps them. dst has the type's form.
func (t Tensor) quantised(dst device.Quant) {
	values, size := t.Type.block()
	for b := t.Data; len(b) > 0; b = b[size:] {
		t.Type.readBlock(dst, b)
		dst.Codes = dst.Codes[values:]
		dst.Scale, dst.Min = dst.Scale[1:], dst.Min[min(1, len(dst.Min)):]
		if len(dst.SubScale) > 0 {
			n := values / t.Type.group()
			dst.SubScale, dst.SubMin = dst.SubScale[n:], dst.SubMin[min(n, len(dst.SubMin)):]
		}
	}
}

// group is the number of values that share a scale.
func (t Type) group() int {
	f, _ := t.DType().Form()
	return f.Group
}

// readBlock reads one block. Little-endian, and in this order, they hold, with q the codes:
//
//	Q8_0  float16 d, int8 [32] q: value d·q
//	Q4_0  float16 d, [16] two codes, value i in the low half of byte i, value i+16 in the high one: d·(q-8)
//	Q4_1  float16 d, float16 m, codes as in Q4_0: d·q + m
//	Q4_K  float16 d, float16 e, 12 bytes of eight 6-bit s and m, [128] two codes, value i of 64 in the low half of byte
//	      i, value i+32 in the high one: d·s·q - e·m, s and m of each 32 values
//	Q6_K  [128] low four bits of the codes, [64] high two, int8 [16] s, float16 d: d·s·(q-32), s of each 16 values
func (t Type) readBlock(dst device.Quant, b []byte) {
	halfAt := func(i int) uint16 { return binary.LittleEndian.Uint16(b[i:]) }
	switch t {
	case Q8_0:
		dst.Scale[0] = halfAt(0)
		for i, q := range b[2:34] {
			dst.Codes[i] = int8(q)
		}
	case Q4_0:
		dst.Scale[0] = halfAt(0)
		nibbles(dst.Codes, b[2:18], 8)
	case Q4_1:
		dst.Scale[0], dst.Min[0] = halfAt(0), halfAt(2)
		nibbles(dst.Codes, b[4:20], 0)
	case Q4_K:
		dst.Scale[0], dst.Min[0] = halfAt(0), halfAt(2)^0x8000
		sixBits(dst.SubScale, dst.SubMin, b[4:16])
		for i := 0; i < 128; i += 32 {
			nibbles(dst.Codes[2*i:], b[16+i:48+i], 0)
		}
	case Q6_K:
		dst.Scale[0] = halfAt(208)
		for i, s := range b[192:208] {
			dst.SubScale[i] = int8(s)
		}
		for i := range 256 {
			h, j := i/128, i%128 // two halves of 128: four times 32 values
			low, high := b[64*h+j%64]>>(j/64*4)&15, b[128+32*h+j%32]>>(j/32*2)&3
			dst.Codes[i] = int8(low|high<<4) - 32
		}
	}
}

// nibbles reads codes two to a byte, first all low halves, less zero.
func nibbles(codes []int8, b []byte, zero int8) {
	for i, q := range b {
		codes[i], codes[i+len(b)] = int8(q&15)-zero, int8(q>>4)-zero
	}
}

// sixBits reads eight scales and eight minima of 6 bits: the first four of each have bytes of their own, in whose two
// high bits the high ones of the others are.
func sixBits(scales, minima []int8, b []byte) {
	for i := range 4 {
		scales[i], minima[i] = int8(b[i]&63), int8(b[4+i]&63)
		scales[4+i] = int8(b[8+i]&15 | b[i]>>6<<4)
		minima[4+i] = int8(b[8+i]>>4 | b[4+i]>>6<<4)
	}
}

// dequantise is Float32s of a quantised tensor.
func (t Tensor) dequantise(dst []float32) {
	values, size := t.Type.block()
	q := device.NewQuant(t.Type.DType(), 1, values)
	for b := t.Data; len(b) > 0; b, dst = b[size:], dst[values:] {
		t.Type.readBlock(q, b)
		scale, minimum := half.FromF16(q.Scale[0]), float32(0)
		if len(q.Min) > 0 {
			minimum = half.FromF16(q.Min[0])
		}
		for i, code := range q.Codes {
			s, m, g := scale, minimum, i/t.Type.group()
			if len(q.SubScale) > 0 {
				s *= float32(q.SubScale[g])
			}
			if len(q.SubMin) > 0 {
				m *= float32(q.SubMin[g])
			}
			dst[i] = s * float32(code) // exact, so that it makes no difference whether the machine rounds it
			if len(q.Min) > 0 {
				dst[i] += m
			}
		}
	}
}
