package ptxsim

import (
	"encoding/binary"
	"math"
	"strconv"
	"strings"
)

// class is how the bits of a type are read.
type class int

const (
	untyped class = iota
	unsigned
	signed
	float
	predicate
)

// dtype is a type of an instruction.
type dtype struct {
	name  string
	size  int // bytes; 0 for a predicate
	class class
	half  *codec // the encoding of a 16-bit float
	pair  bool   // two 16-bit floats
}

var types = map[string]dtype{
	"pred": {"pred", 0, predicate, nil, false},
	"b8":   {"b8", 1, untyped, nil, false}, "u8": {"u8", 1, unsigned, nil, false}, "s8": {"s8", 1, signed, nil, false},
	"b16": {"b16", 2, untyped, nil, false}, "u16": {"u16", 2, unsigned, nil, false}, "s16": {"s16", 2, signed, nil, false},
	"b32": {"b32", 4, untyped, nil, false}, "u32": {"u32", 4, unsigned, nil, false}, "s32": {"s32", 4, signed, nil, false},
	"b64": {"b64", 8, untyped, nil, false}, "u64": {"u64", 8, unsigned, nil, false}, "s64": {"s64", 8, signed, nil, false},
	"f32": {"f32", 4, float, nil, false}, "f64": {"f64", 8, float, nil, false}, "tf32": {"tf32", 4, float, nil, false},
	"f16": {"f16", 2, float, &binary16, false}, "f16x2": {"f16x2", 4, float, &binary16, true},
	"bf16": {"bf16", 2, float, &bfloat16, false}, "bf16x2": {"bf16x2", 4, float, &bfloat16, true},
}

// space is where an address lies.
type space int

const (
	generic space = iota
	global
	shared
	local
	parameter
	constant
)

func (s space) String() string {
	return [...]string{"generic", "global", "shared", "local", "parameter", "constant"}[s]
}

var spaces = map[string]space{"global": global, "shared": shared, "shared::cta": shared, "local": local, "param": parameter, "const": constant}

// Generic addresses of shared and local memory are offsets with one of these bits.
const (
	sharedWindow = uint64(1) << 60
	localWindow  = uint64(1) << 61
)

// immediate reads a number: an integer, or the bits of a float (0f, 0d).
func immediate(t string) (uint64, bool) {
	for _, f := range []struct {
		prefix string
		bits   int
	}{{"0f", 32}, {"0F", 32}, {"0d", 64}, {"0D", 64}} {
		if rest, ok := strings.CutPrefix(t, f.prefix); ok {
			v, err := strconv.ParseUint(rest, 16, f.bits)
			return v, err == nil && len(rest) == f.bits/4
		}
	}
	t = strings.TrimSuffix(t, "U")
	if v, err := strconv.ParseInt(t, 0, 64); err == nil {
		return uint64(v), true
	}
	v, err := strconv.ParseUint(t, 0, 64)
	return v, err == nil
}

// low is v without the bits beyond so many bytes.
func low(v uint64, size int) uint64 { return v & (math.MaxUint64 >> (64 - 8*size)) }

// extend is v, of so many bytes, with its sign.
func extend(v uint64, size int) int64 {
	n := 64 - 8*size
	return int64(v<<n) >> n
}

// store writes the low bytes of v.
func store(b []byte, v uint64, size int) {
	switch size {
	case 1:
		b[0] = byte(v)
	case 2:
		binary.LittleEndian.PutUint16(b, uint16(v))
	case 4:
		binary.LittleEndian.PutUint32(b, uint32(v))
	default:
		binary.LittleEndian.PutUint64(b, v)
	}
}

// fetch reads so many bytes.
func fetch(b []byte, size int) uint64 {
	switch size {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.LittleEndian.Uint16(b))
	case 4:
		return uint64(binary.LittleEndian.Uint32(b))
	}
	return binary.LittleEndian.Uint64(b)
}
