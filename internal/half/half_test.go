package half

import (
	"math"
	"testing"
)

// Expected bits: numpy's float16, and bfloat16 by hand (round to nearest even on the low 16 bits).
func TestKnownValues(t *testing.T) {
	f16 := []struct {
		f float32
		h uint16
	}{
		{0, 0}, {1, 0x3C00}, {-2, 0xC000}, {65504, 0x7BFF}, {0.1, 0x2E66}, {1.0 / 3, 0x3555},
		{65519.996, 0x7BFF}, {65520, 0x7C00}, {-1e9, 0xFC00}, // border of the overflow to infinity
		{5.9604645e-8, 1}, {2.9802322e-8, 0}, {2.9802326e-8, 1}, {8.940697e-8, 2}, // subnormals: ties to even
		{6.1035156e-05, 0x0400}, {6.097555e-05, 0x03FF}, {6.1005354e-05, 0x0400}, // border of the subnormals
		{1.00048828125, 0x3C00}, {1.00146484375, 0x3C02}, // ties to even
		{float32(math.Inf(1)), 0x7C00}, {float32(math.Inf(-1)), 0xFC00},
	}
	for _, c := range f16 {
		if h := ToF16(c.f); h != c.h {
			t.Errorf("ToF16(%v) = %#04x, want %#04x", c.f, h, c.h)
		}
	}
	bf16 := []struct {
		f float32
		h uint16
	}{
		{1, 0x3F80}, {-1, 0xBF80}, {3.14159265, 0x4049}, {math.Float32frombits(0x3F808000), 0x3F80},
		{math.Float32frombits(0x3F818000), 0x3F82}, {math.Float32frombits(0x3F808001), 0x3F81},
		{math.MaxFloat32, 0x7F80}, {float32(math.Inf(-1)), 0xFF80},
	}
	for _, c := range bf16 {
		if h := ToBF16(c.f); h != c.h {
			t.Errorf("ToBF16(%v) = %#04x, want %#04x", c.f, h, c.h)
		}
	}
	for _, f := range []float32{math.Float32frombits(0x7F800001), math.Float32frombits(0xFFC00000)} {
		if g := FromBF16(ToBF16(f)); g == g || math.Signbit(float64(g)) != math.Signbit(float64(f)) {
			t.Errorf("bfloat16 of NaN %#x is %v", math.Float32bits(f), g)
		}
		if g := FromF16(ToF16(f)); g == g || math.Signbit(float64(g)) != math.Signbit(float64(f)) {
			t.Errorf("float16 of NaN %#x is %v", math.Float32bits(f), g)
		}
	}
}

// Every 16-bit value widens to the number its fields spell out and comes back.
func TestAllBits(t *testing.T) {
	for i := range 1 << 16 {
		h := uint16(i)
		f := FromF16(h)
		if f != f {
			if ToF16(f)&0x7C00 != 0x7C00 {
				t.Fatalf("float16 NaN %#04x is lost", h)
			}
		} else if ToF16(f) != h {
			t.Fatalf("float16 %#04x -> %v -> %#04x", h, f, ToF16(f))
		} else if exp, man := int(h>>10&31), float64(h&1023); exp < 31 {
			want := math.Ldexp(man+1024, exp-25)
			if exp == 0 {
				want = math.Ldexp(man, -24)
			}
			if math.Abs(float64(f)) != want {
				t.Fatalf("float16 %#04x = %v, want %v", h, f, want)
			}
		}
		if g := FromBF16(h); g == g && ToBF16(g) != h {
			t.Fatalf("bfloat16 %#04x -> %v -> %#04x", h, g, ToBF16(g))
		}
	}
}
