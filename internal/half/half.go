// Package half converts between float32 and the two 16-bit floating-point formats that weights are stored in.
package half

import "math"

// FromBF16 widens a bfloat16; exact.
func FromBF16(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// ToBF16 rounds to the nearest bfloat16, ties to even. A NaN stays a (quiet) NaN of the same sign.
func ToBF16(f float32) uint16 {
	b := math.Float32bits(f)
	if f != f {
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7FFF + b>>16&1) >> 16)
}

// FromF16 widens an IEEE 754 binary16; exact, subnormals included.
func FromF16(h uint16) float32 {
	sign := uint32(h>>15) << 31
	exp, man := uint32(h>>10)&0x1F, uint32(h)&0x3FF
	switch exp {
	case 0x1F: // infinity, NaN
		return math.Float32frombits(sign | 0x7F800000 | man<<13)
	case 0: // zero, subnormal: man · 2⁻²⁴
		f := float32(man) * (1.0 / (1 << 24))
		return math.Float32frombits(math.Float32bits(f) | sign)
	}
	return math.Float32frombits(sign | (exp+112)<<23 | man<<13)
}

// ToF16 rounds to the nearest IEEE 754 binary16, ties to even; what is too large becomes an infinity.
// A NaN stays a (quiet) NaN of the same sign.
func ToF16(f float32) uint16 {
	b := math.Float32bits(f)
	sign := uint16(b>>16) & 0x8000
	b &= 0x7FFFFFFF
	switch {
	case b > 0x7F800000:
		return sign | 0x7E00
	case b >= 0x477FF000: // 65520 and above round to infinity
		return sign | 0x7C00
	case b < 0x38800000: // below 2⁻¹⁴: subnormal. Adding 0.5 leaves the rounded multiple of 2⁻²⁴ in the low bits.
		return sign | uint16(math.Float32bits(math.Float32frombits(b)+0.5)-0x3F000000)
	}
	b += 0xFFF + b>>13&1
	return sign | uint16((b-0x38000000)>>13)
}
