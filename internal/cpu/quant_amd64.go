//go:build amd64 && !purego

package cpu

import "github.com/rubicon-rl/rubicon/internal/device"

// unpackersAVX512 round with the CPU's own instruction if it has one. That takes subnormal numbers for zero, of which
// there are none: all numbers here are multiples of 2⁻²⁴.
func unpackersAVX512(native bool) unpackers {
	if native {
		return unpackers{
			device.Int8: unpackInt8NativeAVX512, device.Int4: unpackInt4NativeAVX512, device.Int4Sym: unpackInt4SymNativeAVX512,
			device.Int8K: unpackInt8KNativeAVX512, device.Int4K: unpackInt4KNativeAVX512,
		}
	}
	return unpackers{
		device.Int8: unpackInt8AVX512, device.Int4: unpackInt4AVX512, device.Int4Sym: unpackInt4SymAVX512,
		device.Int8K: unpackInt8KAVX512, device.Int4K: unpackInt4KAVX512,
	}
}

// unpackersAVX2 use F16C too, which no processor with AVX2 lacks.
func unpackersAVX2() unpackers {
	return unpackers{
		device.Int8: unpackInt8AVX2, device.Int4: unpackInt4AVX2, device.Int4Sym: unpackInt4SymAVX2,
		device.Int8K: unpackInt8KAVX2, device.Int4K: unpackInt4KAVX2,
	}
}
