package device

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/half"
)

// Bits a weight, in rows of whole blocks, from the forms' description.
func TestBytes(t *testing.T) {
	for dtype, bits := range map[DType]float64{
		Float32: 32, BFloat16: 16, Int8: 8 + 16./32, Int4: 4 + 32./32, Int4Sym: 4 + 16./32,
		Int8K: 8 + 8./16 + 16./256, Int4K: 4 + 16./32 + 32./256,
	} {
		if got := float64(8*dtype.Bytes(3, 768)) / (3 * 768); got != bits {
			t.Errorf("%v: %v bits a weight, want %v", dtype, got, bits)
		}
	}
	if got := Int4.Bytes(2, 33); got != 2*(17+2*2*2) { // two groups
		t.Errorf("int4 rows of 33: %d bytes", got)
	}
}

// quantised returns codes, scales and minima of one row.
func quantised(t *testing.T, dtype DType, row []float32) Quant {
	t.Helper()
	q := NewQuant(dtype, 1, len(row))
	if err := q.Quantise(row); err != nil {
		t.Fatal(err)
	}
	return q
}

func TestQuantise8(t *testing.T) {
	row := make([]float32, 70) // two groups and a part of one
	row[0], row[1], row[2], row[3], row[31] = 0.5, 2.4, -127, 1.5, -2.5
	row[40], row[41] = 0.25*127, -0.25
	row[64], row[69] = 1e-9, -2e-9 // below float16
	q := quantised(t, Int8, row)
	if want := []uint16{half.ToF16(1), half.ToF16(0.25), 0}; !slices.Equal(q.Scale, want) {
		t.Errorf("scales %x, want %x", q.Scale, want)
	}
	want := make([]int8, 70)
	want[0], want[1], want[2], want[3], want[31] = 0, 2, -127, 2, -2 // halves go to even codes
	want[40], want[41] = 127, -1
	if !slices.Equal(q.Codes, want) {
		t.Errorf("codes %v, want %v", q.Codes, want)
	}
}

// What an Int4 weight holds is quantised to itself, and fitting brings other values nearer than least and largest do.
func TestQuantise4(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		row, codes := make([]float32, 32), make([]int8, 32)
		scale, minimum := half.ToF16(float32(rng.Float64())/16), half.ToF16(-float32(rng.Float64()))
		for i := range row {
			codes[i] = int8(i % 16)
			row[i] = half.FromF16(scale)*float32(codes[i]) + half.FromF16(minimum)
		}
		if q := quantised(t, Int4, row); q.Scale[0] != scale || q.Min[0] != minimum || !slices.Equal(q.Codes, codes) {
			t.Fatalf("scale %x, minimum %x, codes %v\nwant %x, %x, %v", q.Scale[0], q.Min[0], q.Codes, scale, minimum, codes)
		}
	}
	fitted, plain := 0.0, 0.0
	for range 200 {
		row := make([]float32, 32)
		for i := range row {
			row[i] = float32(rng.NormFloat64())
		}
		q := quantised(t, Int4, row)
		fitted += squares(row, q.Codes, q.Scale[0], q.Min[0])
		least, most := slices.Min(row), slices.Max(row)
		scale, minimum := half.ToF16((most-least)/15), half.ToF16(least)
		for i, x := range row {
			q.Codes[i] = int8(math.Round(float64(x-least) / float64(most-least) * 15))
		}
		plain += squares(row, q.Codes, scale, minimum)
	}
	if !(fitted < 0.9*plain) {
		t.Errorf("squared differences %v with fitting, %v without", fitted, plain)
	}
}

func squares(row []float32, codes []int8, scale, minimum uint16) float64 {
	sum := 0.0
	for i, x := range row {
		d := float64(half.FromF16(scale)*float32(codes[i])+half.FromF16(minimum)) - float64(x)
		sum += d * d
	}
	return sum
}

// What cannot be quantised is an error that says where.
func TestQuantiseRefuses(t *testing.T) {
	for _, dtype := range []DType{Int8, Int4} {
		for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 3e38, -1e30} {
			for _, at := range []int{32, 50} {
				row := make([]float32, 2*70)
				row[70+at] = bad
				err := NewQuant(dtype, 2, 70).Quantise(row)
				if err == nil || !strings.Contains(err.Error(), "row 1, columns 32 to 63: a weight is not finite, or too large") {
					t.Errorf("%v, %v: error %v", dtype, bad, err)
				}
			}
		}
	}
	if err := NewQuant(Int4K, 1, 256).Quantise(make([]float32, 256)); err == nil {
		t.Error("int4k takes floats")
	}
}
