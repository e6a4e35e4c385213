package devicetest

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/internal/half"
)

func testMemory(s *suite) {
	s.Run("alloc", s.testAlloc)
	s.Run("transfer", s.testTransfer)
	s.Run("weight", func(t *testing.T) {
		for _, dtype := range []device.DType{device.Float32, device.BFloat16} {
			testWeight(t, s.dev, dtype)
		}
	})
	s.Run("rounding", s.testRounding)
	for _, dtype := range []device.DType{device.Float32, device.BFloat16, device.Int8, device.Int4} {
		testRepack(s, dtype)
	}
}

func (s *suite) testAlloc(t *testing.T) {
	sc := newScene(t, s.dev)
	before := s.dev.Allocated()
	for _, k := range []device.Kind{device.F32, device.Act} {
		for _, n := range []int{0, 1, 1025} {
			m := sc.alloc(k, n)
			if m.Kind() != k || m.Len() != n {
				t.Errorf("alloc(%d, %d) is of kind %d and length %d", k, n, m.Kind(), m.Len())
			}
			if !slices.Equal(sc.contents(m), make([]float32, n)) {
				t.Errorf("alloc(%d, %d) is not zeroed", k, n)
			}
		}
	}
	ints := sc.alloc(device.I32, 33)
	got := make([]int32, 33)
	if err := s.dev.DownloadInts(got, ints, 0); err != nil || !slices.Equal(got, make([]int32, 33)) {
		t.Errorf("int32 memory is not zeroed: %v %v", got, err)
	}
	if held := s.dev.Allocated() - before; held < 2*2*(1+1025)+4*33 {
		t.Errorf("%d bytes are counted as allocated, fewer than there are", held)
	}
	sc.free()
	if now := s.dev.Allocated(); now != before {
		t.Errorf("%d bytes are allocated after free, %d before", now, before)
	}
	if err := s.dev.Sync(); err != nil {
		t.Error(err)
	}
}

// testTransfer writes at offsets and reads at others. The values are exact in every activation type.
func (s *suite) testTransfer(t *testing.T) {
	sc := newScene(t, s.dev)
	defer sc.free()
	for _, k := range []device.Kind{device.F32, device.Act} {
		m := sc.alloc(k, 100)
		s.dev.Upload(m, 33, []float32{1.5, -2, 0.25})
		s.dev.Upload(m, 97, []float32{8, 9, 10})
		got := make([]float32, 5)
		if err := s.dev.Download(got, m, 32); err != nil || !slices.Equal(got, []float32{0, 1.5, -2, 0.25, 0}) {
			t.Errorf("kind %d: %v %v", k, got, err)
		}
		if err := s.dev.Download(got[:3], m, 97); err != nil || !slices.Equal(got[:3], []float32{8, 9, 10}) {
			t.Errorf("kind %d: the end is %v %v", k, got[:3], err)
		}
	}
	exact := sc.alloc(device.F32, 1)
	s.dev.Upload(exact, 0, []float32{1 + 1.0/(1<<23)})
	if got := sc.contents(exact)[0]; got != 1+1.0/(1<<23) {
		t.Errorf("F32 memory rounded 1+2^-23 to %v", got)
	}
	m := sc.alloc(device.I32, 10)
	s.dev.UploadInts(m, 7, []int32{-1, math.MaxInt32, math.MinInt32})
	got := make([]int32, 4)
	if err := s.dev.DownloadInts(got, m, 6); err != nil || !slices.Equal(got, []int32{0, -1, math.MaxInt32, math.MinInt32}) {
		t.Errorf("ints: %v %v", got, err)
	}
}

// testWeight loads a weight in pieces, from both host types, and reads it back through Embed. Small whole numbers
// survive every type.
func testWeight(t *testing.T, dev device.Device, dtype device.DType) {
	const n, k = 67, 45
	sc := newScene(t, dev)
	defer sc.free()
	w := sc.weight(dtype, n, k, 1)
	if gn, gk := w.Shape(); gn != n || gk != k || w.DType() != dtype {
		t.Errorf("weight is [%d,%d] of dtype %d", gn, gk, w.DType())
	}
	least := int64(n * k * 4)
	if dtype == device.BFloat16 {
		least /= 2
	}
	if w.Bytes() < least {
		t.Errorf("weight has %d bytes, want at least %d", w.Bytes(), least)
	}
	want := make([]float32, n*k)
	bits := make([]uint16, n*k)
	for i := range want {
		want[i] = float32(i%251 - 125)
		bits[i] = half.ToBF16(want[i])
	}
	// Later pieces overwrite part of earlier ones; rows 30 to 33 are loaded wrong first.
	for _, err := range []error{
		dev.LoadWeight(w, 30, make([]float32, 4*k)),
		dev.LoadWeight(w, 0, want[:33*k]),
		dev.LoadWeightBF16(w, 33, bits[33*k:66*k]),
		dev.LoadWeight(w, 66, want[66*k:]),
		dev.LoadWeight(w, n, nil),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for r, got := range sc.weightRows(w) {
		equalBits(t, "weight row", got, want[r*k:(r+1)*k])
	}
}

// weightRows reads a weight back through Embed.
func (s *scene) weightRows(w device.Weight) [][]float32 {
	n, k := w.Shape()
	y := device.View(s.alloc(device.F32, n*k), n, k)
	s.Embed(y, w, s.ints(upTo(n)))
	return s.rows(y)
}

// testRounding: a BFloat16 weight rounds to nearest even, a Float32 weight not at all.
func (s *suite) testRounding(t *testing.T) {
	given := []float32{1, 1 + 1.0/256, 1 + 3.0/256, 1 + 1.0/256 + 1.0/(1<<20), -1 - 3.0/256, 3.3895314e38, 1e-40, 0.1}
	want := []float32{1, 1, 1 + 4.0/256, 1 + 2.0/256, -1 - 4.0/256, 3.3895314e38, math.Float32frombits(0x10000), 0.10009765625}
	sc := newScene(t, s.dev)
	defer sc.free()
	for dtype, want := range map[device.DType][]float32{device.Float32: given, device.BFloat16: want} {
		w := sc.weight(dtype, 1, len(given), 1)
		if err := s.dev.LoadWeight(w, 0, given); err != nil {
			t.Fatal(err)
		}
		equalBits(t, "rounded weight", sc.weightRows(w)[0], want)
	}
}

// testRepack packs rows of a weight from device memory; the others stay.
func testRepack(s *suite, dtype device.DType) {
	for _, rows := range []struct{ row, n int }{{0, 67}, {0, 1}, {31, 33}, {66, 1}} {
		s.compare(fmt.Sprintf("repack/%v", dtype), true, func(sc *scene) {
			w := sc.weight(dtype, 67, 45, 1)
			sc.Repack(w, rows.row, sc.param("src", rows.n, 45, 1))
			sc.Embed(sc.out("packed", 67, 45), w, sc.ints(upTo(67)))
		})
	}
}

// upTo is 0, 1, ..., n-1.
func upTo(n int) []int32 {
	list := make([]int32, n)
	for i := range list {
		list[i] = int32(i)
	}
	return list
}
