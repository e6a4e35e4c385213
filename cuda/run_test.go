package cuda

import (
	"slices"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/cuda/driver"
	"github.com/rubicon-rl/rubicon/internal/device"
)

// Every row is in one part, and the parts of a sum do not grow in number with the rows: else rows would be lost from a
// gradient, or memory from a large batch.
func TestParted(t *testing.T) {
	for _, c := range []struct{ rows, parts, each int }{
		{1, 1, 32}, {32, 1, 32}, {33, 2, 32}, {4096, 128, 32}, {4097, 125, 33}, {16384, 128, 128}, {1 << 30, 128, 1 << 23},
	} {
		if parts, each := parted(c.rows); parts != c.parts || each != c.each {
			t.Errorf("%d rows: %d parts of %d, want %d of %d", c.rows, parts, each, c.parts, c.each)
		}
	}
}

// Runs of 8 are for rows that begin at multiples of 16 bytes, which 8 elements of bfloat16 and 4 of float32 are.
func TestRunOf(t *testing.T) {
	for _, c := range []struct {
		cols int
		m    driver.Matrix
		want int
	}{
		{16, driver.Matrix{At: 512, Stride: 16, Type: driver.BF16}, 8},
		{16, driver.Matrix{At: 512, Stride: 20, Type: driver.BF16}, 1},
		{16, driver.Matrix{At: 512, Stride: 20, Type: driver.F32}, 8},
		{16, driver.Matrix{At: 520, Stride: 16, Type: driver.F32}, 1},
		{12, driver.Matrix{At: 512, Stride: 16, Type: driver.BF16}, 1},
		{16, driver.Matrix{}, 8},
	} {
		if got := runOf(c.cols, driver.Matrix{At: 1024, Stride: 8}, c.m); got != c.want {
			t.Errorf("%d columns of %+v: runs of %d, want %d", c.cols, c.m, got, c.want)
		}
	}
}

// Rows that meet in one are added in the order that package device wants: ascending.
func TestMeetings(t *testing.T) {
	groups, packed := meetings([]int32{7, 2, 7, 0, 2, 7})
	want := []int32{0, 2, 7 /* ends */, 1, 3, 6 /* lists */, 3, 1, 4, 0, 2, 5}
	if groups != 3 || !slices.Equal(packed, want) {
		t.Errorf("%d groups, %v; want 3, %v", groups, packed, want)
	}
}

// The kernels read all activations of a call as one type; another one read as that would be noise.
func TestKindsDoNotMix(t *testing.T) {
	for name, call := range map[string]func(d device.Device, x, y device.Mat){
		"rmsnorm":       func(d device.Device, x, y device.Mat) { d.RMSNorm(y, x, device.Mat{}, y.RowsOf(0, 1), 0) },
		"rmsnorm grad":  func(d device.Device, x, y device.Mat) { d.RMSNormGrad(x, device.Mat{}, y, x, y.RowsOf(0, 1), 0) },
		"swiglu":        func(d device.Device, x, y device.Mat) { d.SwiGLU(y.ColsOf(0, 2), x) },
		"swiglu grad":   func(d device.Device, x, y device.Mat) { d.SwiGLUGrad(y, x.ColsOf(0, 2), x) },
		"gather rows":   func(d device.Device, x, y device.Mat) { d.GatherRows(y, x, indices(t, d, 0, 1)) },
		"scatter rows":  func(d device.Device, x, y device.Mat) { d.ScatterRows(y, x, indices(t, d, 0, 1)) },
		"scatter added": func(d device.Device, x, y device.Mat) { d.ScatterAddRows(y, x, indices(t, d, 0, 1)) },
		"rotary":        func(d device.Device, x, y device.Mat) { d.Rotary(y, x, turned(t, d, y)) },
		"rotary grad":   func(d device.Device, x, y device.Mat) { d.RotaryGrad(y, x, device.Mat{}, turned(t, d, y)) },
	} {
		d := simulated(driver.BF16)(t)
		x, y := alloc(t, d, device.Act), alloc(t, d, device.F32)
		if call(d, x, y); d.Err() == nil || !strings.Contains(d.Err().Error(), "one kind for both") {
			t.Errorf("%s: error %v", name, d.Err())
		}
	}
}

func alloc(t *testing.T, d device.Device, k device.Kind) device.Mat {
	m, err := d.Alloc(k, 8)
	if err != nil {
		t.Fatal(err)
	}
	return device.View(m, 2, 4)
}

func indices(t *testing.T, d device.Device, values ...int32) device.Mem {
	m, err := d.Alloc(device.I32, len(values))
	if err != nil {
		t.Fatal(err)
	}
	d.UploadInts(m, 0, values)
	return m
}

// turned is a rotation whose tables are two columns of y.
func turned(t *testing.T, d device.Device, y device.Mat) device.Rotary {
	return device.Rotary{HeadDim: 4, Cos: y.ColsOf(0, 2), Sin: y.ColsOf(2, 4), Pos: indices(t, d, 0, 1)}
}

// A step makes thousands of these calls, which must leave the collector nothing to do.
func TestRowOpsAllocateNothing(t *testing.T) {
	r, d := recorded(t)
	defer d.Close()
	mat := func(k device.Kind, rows, cols int) device.Mat {
		m, err := d.Alloc(k, rows*cols)
		check(t, err)
		return device.View(m, rows, cols)
	}
	x, y, gu, w, dw := mat(device.Act, 4, 16), mat(device.Act, 4, 16), mat(device.Act, 4, 32), mat(device.F32, 1, 16), mat(device.F32, 1, 16)
	table, at := mat(device.F32, 4, 4), indices(t, d, 0, 1, 2, 3)
	turn := device.Rotary{HeadDim: 8, Cos: table, Sin: table, Pos: at, Norm: w.ColsOf(0, 8), DNorm: dw.ColsOf(0, 8)}
	call := func() {
		d.RMSNorm(y, x, x, w, 1)
		d.RMSNormGrad(y, dw, y, x, w, 1)
		d.Rotary(y, x, turn)
		d.RotaryGrad(y, x, x, turn)
		d.SwiGLU(y, gu)
		d.SwiGLUGrad(gu, y, gu)
		d.GatherRows(y, x, at)
		d.ScatterRows(y, x, at)
		d.AdamW(w, w, dw, dw, device.AdamW{Step: 1})
	}
	call()
	check(t, d.Sync())
	r.silent = true
	if n := testing.AllocsPerRun(10, call); n > 0 {
		t.Errorf("%g allocations", n)
	}
}
