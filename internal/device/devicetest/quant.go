package devicetest

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/internal/half"
)

// quantised are the quantised types.
func quantised() []device.DType {
	return []device.DType{device.Int8, device.Int4, device.Int4Sym, device.Int8K, device.Int4K}
}

// quant are random rows of type t whose elements have about the standard deviation std.
func (s *scene) quant(t device.DType, rows, k int, std float64) device.Quant {
	f, _ := t.Form()
	q := device.NewQuant(t, rows, k)
	levels, lowest, factor := 1<<f.Bits, 0, 1.0
	if f.Signed {
		lowest = -levels / 2
	}
	if f.Super > 0 {
		factor = 1.0 / 16
	}
	whole := func(n, low, count int) { // numbers in [low, low+count)
		s.fillQuant(&q, n, func() float32 { return float32(low + s.rng.IntN(count)) })
	}
	halves := func(n int, std float64) {
		s.fillQuant(&q, n, func() float32 { return float32(half.ToF16(float32(std * s.rng.NormFloat64()))) })
	}
	whole(0, lowest, levels)
	halves(1, std*factor*math.Sqrt(12)/float64(levels))
	halves(2, std*factor)
	whole(3, 0, 64)
	whole(4, 0, 64)
	return q
}

// fillQuant fills list n of q with recorded values.
func (s *scene) fillQuant(q *device.Quant, n int, draw func() float32) {
	small := map[int][]int8{0: q.Codes, 3: q.SubScale, 4: q.SubMin}[n]
	halves := map[int][]uint16{1: q.Scale, 2: q.Min}[n]
	values := s.record(func() []float32 {
		list := make([]float32, len(small)+len(halves))
		for i := range list {
			list[i] = draw()
		}
		return list
	})
	for i := range small {
		small[i] = int8(values[i])
	}
	for i := range halves {
		halves[i] = uint16(values[i])
	}
}

// testQuant: quantised weights are read back as the reference dequantises them, in pieces that overwrite each other; and
// their products have the bits of a BFloat16 weight with their elements.
func testQuant(s *suite) {
	for _, t := range quantised() {
		for _, k := range []int{1, 31, 32, 45, 97, 256, 720, 1024} {
			if f, _ := t.Form(); f.Super > 0 && k%f.Super != 0 {
				continue
			}
			name := fmt.Sprintf("%v-k%d", t, k)
			s.compare("values/"+name, true, func(sc *scene) {
				w := sc.newWeight(t, 67, k)
				for _, rows := range [][2]int{{0, 67}, {5, 40}, {31, 33}, {66, 67}} {
					if err := sc.LoadWeightQuant(w, rows[0], sc.quant(t, rows[1]-rows[0], k, 1)); err != nil {
						sc.t.Fatal(err)
					}
				}
				sc.Embed(sc.out("rows", 67, k), w, sc.ints(upTo(67)))
			})
			if s.dev.Info().Invariant {
				s.Run("products/"+name, func(t2 *testing.T) { testQuantProducts(t2, s.dev, t, k) })
			}
		}
	}
	if w, err := s.dev.NewWeight(device.Int8K, 8, 300); err == nil {
		s.Errorf("a weight of part of a super-block: %v", w)
	}
	for _, t := range []device.DType{device.Int8, device.Int4} {
		s.Run(fmt.Sprintf("quantise-%v", t), func(t2 *testing.T) { testQuantise(t2, s.dev, t) })
	}
}

func testQuantProducts(t *testing.T, dev device.Device, dtype device.DType, k int) {
	const n = 77
	sc := newScene(t, dev)
	defer sc.free()
	w := sc.weight(dtype, n, k, 1)
	same := sc.newWeight(device.BFloat16, n, k)
	if err := dev.LoadWeight(same, 0, slices.Concat(sc.weightRows(w)...)); err != nil {
		t.Fatal(err)
	}
	for _, rows := range []int{1, 8, 70} {
		x, dy := sc.in("x", rows, k), sc.in("dy", rows, n)
		var got [2][][]float32
		for i, w := range []device.Weight{same, w} {
			y, dx := sc.out("y", rows, n), device.View(sc.alloc(device.Act, rows*k), rows, k)
			sc.Linear(y, x, device.Linear{W: w})
			sc.LinearGrad(dx, dy, x, device.Linear{W: w})
			got[i] = append(sc.rows(y), sc.rows(dx)...)
		}
		for r := range got[0] {
			if !equalBits(t, fmt.Sprintf("row %d of %d, forward then input gradient", r, rows), got[1][r], got[0][r]) {
				return
			}
		}
	}
}

// testQuantise: a weight that is loaded from floats holds what Quantise makes of them.
func testQuantise(t *testing.T, dev device.Device, dtype device.DType) {
	const n, k = 67, 75
	sc := newScene(t, dev)
	defer sc.free()
	values, bits := make([]float32, n*k), make([]uint16, n*k)
	for i := range values {
		bits[i] = half.ToBF16(float32(sc.rng.NormFloat64()))
		values[i] = half.FromBF16(bits[i])
	}
	q := device.NewQuant(dtype, n, k)
	want, got := sc.newWeight(dtype, n, k), sc.newWeight(dtype, n, k)
	for _, err := range []error{
		q.Quantise(values), dev.LoadWeightQuant(want, 0, q),
		dev.LoadWeight(got, 0, values[:37*k]), dev.LoadWeightBF16(got, 37, bits[37*k:]),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	wanted := sc.weightRows(want)
	for r, row := range sc.weightRows(got) {
		equalBits(t, fmt.Sprintf("row %d", r), row, wanted[r])
	}
}

func quantMisuses() []misuse {
	load := func(t device.DType, change func(q *device.Quant)) func(*scene) {
		return func(sc *scene) {
			q := sc.quant(t, 2, 256, 1)
			change(&q)
			_ = sc.LoadWeightQuant(sc.newWeight(t, 8, 256), 0, q)
		}
	}
	return []misuse{
		{"quantised rows for floats", "rows of type int8 for a weight of type float32", func(sc *scene) {
			_ = sc.LoadWeightQuant(sc.w84(), 0, sc.quant(device.Int8, 1, 4, 1))
		}},
		{"quantised rows of another type", "rows of type int4 for", load(device.Int8, func(q *device.Quant) { q.DType = device.Int4 })},
		{"quantised rows of other width", "want [8,255]", load(device.Int4K, func(q *device.Quant) { q.K = 255 })},
		{"too many quantised rows", "rows [7,9) of 8", func(sc *scene) {
			_ = sc.LoadWeightQuant(sc.newWeight(device.Int4, 8, 45), 7, sc.quant(device.Int4, 2, 45, 1))
		}},
		{"few codes", "want [512 2 0 32 0]", load(device.Int8K, func(q *device.Quant) { q.Codes = q.Codes[1:] })},
		{"few minima", "want [512 16 16 0 0]", load(device.Int4, func(q *device.Quant) { q.Min = nil })},
		{"few factors", "want [512 2 2 16 16]", load(device.Int4K, func(q *device.Quant) { q.SubMin = q.SubMin[1:] })},
		{"infinite scale", "not finite", load(device.Int4Sym, func(q *device.Quant) { q.Scale[3] = 0x7C00 })},
		{"minimum no number", "not finite", load(device.Int4K, func(q *device.Quant) { q.Min[1] = 0xFE00 })},
		{"floats for a type of files", "quantised rows only", func(sc *scene) {
			_ = sc.LoadWeight(sc.newWeight(device.Int4K, 8, 256), 0, make([]float32, 256))
		}},
		{"quantise infinity", "not finite", func(sc *scene) {
			_ = sc.LoadWeight(sc.newWeight(device.Int8, 8, 2), 3, []float32{1, float32(math.Inf(-1))})
		}},
		{"quantise no number", "not finite", func(sc *scene) {
			_ = sc.LoadWeight(sc.newWeight(device.Int4, 8, 2), 3, []float32{1, float32(math.NaN())})
		}},
		{"quantise what is too large", "too large for int8", func(sc *scene) {
			sc.Repack(sc.newWeight(device.Int8, 8, 4), 0, sc.mat("", device.F32, input, 1, 4, data([]float32{1, 1e8, 2, 3}, 4)))
		}},
		{"load quantised rows into nothing", "absent", func(sc *scene) { _ = sc.LoadWeightQuant(nil, 0, sc.quant(device.Int8, 1, 4, 1)) }},
	}
}
