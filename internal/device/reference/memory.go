package reference

import (
	"errors"

	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/internal/half"
)

func (d *reference) Alloc(k device.Kind, n int) (device.Mem, error) {
	if d.err != nil {
		return nil, d.err
	}
	if err := device.CheckAlloc(k, n); err != nil {
		return nil, err
	}
	m := &memory{owner: d, kind: k}
	if k == device.I32 {
		m.i = make([]int32, n)
	} else {
		m.f = make([]float64, n)
	}
	d.allocated += m.bytes()
	return m, nil
}

func (d *reference) Free(m device.Mem) {
	own, ok := m.(*memory)
	if !ok || own.owner != d {
		d.fail(errors.New("free: the memory was freed before, or belongs to another device"))
		return
	}
	d.allocated -= own.bytes()
	own.owner = nil
}

func (d *reference) Upload(dst device.Mem, off int, src []float32) {
	if !d.begin("upload", device.CheckTransfer("upload", dst, off, len(src), false), dst) {
		return
	}
	f := dst.(*memory).f[off:]
	for i, x := range src {
		f[i] = float64(x)
	}
}

func (d *reference) UploadInts(dst device.Mem, off int, src []int32) {
	if d.begin("upload ints", device.CheckTransfer("upload ints", dst, off, len(src), true), dst) {
		copy(dst.(*memory).i[off:], src)
	}
}

func (d *reference) Download(dst []float32, src device.Mem, off int) error {
	if !d.begin("download", device.CheckTransfer("download", src, off, len(dst), false), src) {
		return d.err
	}
	f := src.(*memory).f[off:]
	for i := range dst {
		dst[i] = float32(f[i])
	}
	return nil
}

func (d *reference) DownloadInts(dst []int32, src device.Mem, off int) error {
	if !d.begin("download ints", device.CheckTransfer("download ints", src, off, len(dst), true), src) {
		return d.err
	}
	copy(dst, src.(*memory).i[off:])
	return nil
}

func (d *reference) NewWeight(t device.DType, n, k int) (device.Weight, error) {
	if d.err != nil {
		return nil, d.err
	}
	if err := device.CheckNewWeight(t, n, k); err != nil {
		return nil, err
	}
	w := &weight{owner: d, dtype: t, n: n, k: k, w: make([]float64, n*k)}
	d.allocated += w.Bytes()
	return w, nil
}

func (d *reference) FreeWeight(w device.Weight) {
	own, ok := w.(*weight)
	if !ok || own.owner != d {
		d.fail(errors.New("free weight: the weight was freed before, or belongs to another device"))
		return
	}
	d.allocated -= own.Bytes()
	own.owner = nil
}

func (d *reference) LoadWeight(w device.Weight, row int, src []float32) error {
	if !d.begin("load weight", device.CheckLoadWeight(w, row, len(src)), w) {
		return d.err
	}
	own := w.(*weight)
	if _, ok := own.dtype.Form(); ok {
		q := device.NewQuant(own.dtype, len(src)/own.k, own.k)
		if d.fail(q.Quantise(src)); d.err == nil {
			own.dequantise(row, q)
		}
		return d.err
	}
	for i, x := range src {
		own.w[row*own.k+i] = own.round(float64(x))
	}
	return nil
}

func (d *reference) LoadWeightBF16(w device.Weight, row int, src []uint16) error {
	values := make([]float32, len(src))
	for i, b := range src {
		values[i] = half.FromBF16(b)
	}
	return d.LoadWeight(w, row, values)
}

func (d *reference) LoadWeightQuant(w device.Weight, row int, q device.Quant) error {
	if d.begin("load quantised weight", device.CheckLoadWeightQuant(w, row, q), w) {
		w.(*weight).dequantise(row, q)
	}
	return d.err
}

// dequantise sets rows from row0 on to the elements that device.Form defines. All products and sums are exact in float64.
func (w *weight) dequantise(row0 int, q device.Quant) {
	f, _ := q.DType.Form()
	for r := range q.Rows {
		row, q := w.row(row0+r), q.RowsOf(r, r+1)
		for k := range row {
			code := int(q.Codes[k])
			if f.Bits == 4 {
				code &= 15
				if f.Signed && code >= 8 {
					code -= 16
				}
			}
			x := float64(code) * number(f, q.Scale, q.SubScale, k)
			if f.Min {
				x += number(f, q.Min, q.SubMin, k)
			}
			row[k] = float64(half.FromBF16(half.ToBF16(float32(x))))
		}
	}
}

// number is the scale or the minimum of column k.
func number(f device.Form, halves []uint16, factors []int8, k int) float64 {
	if f.Super == 0 {
		return float64(half.FromF16(halves[k/f.Group]))
	}
	return float64(half.FromF16(halves[k/f.Super])) * float64(factors[k/f.Group])
}

func (d *reference) Repack(w device.Weight, row0 int, src device.Mat) {
	if !d.begin("repack", device.CheckRepack(w, row0, src), w, src) {
		return
	}
	own := w.(*weight)
	if _, ok := own.dtype.Form(); ok {
		values := make([]float32, 0, src.Rows*own.k)
		for r := range src.Rows {
			for _, x := range row(src, r) {
				values = append(values, float32(x))
			}
		}
		_ = d.LoadWeight(w, row0, values) // sticky
		return
	}
	for r := range src.Rows {
		for c, x := range row(src, r) {
			own.row(row0 + r)[c] = own.round(x)
		}
	}
}

// round is x as the weight's type keeps it; a Float32 weight keeps all of a float64.
func (w *weight) round(x float64) float64 {
	if w.dtype == device.BFloat16 {
		return float64(half.FromBF16(half.ToBF16(float32(x))))
	}
	return x
}
