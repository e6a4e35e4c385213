package cuda

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"github.com/rubicon-rl/rubicon/cuda/driver"
	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/internal/half"
)

// weight is the device.Weight: row-major [n,k], without gaps, of what its dtype rounds to. It lies as bfloat16 on a device
// with such activations, unless it is Float32, and as float32 else. Quantised rows are unpacked when they are loaded, so
// that a quantised weight takes the memory of a BFloat16 one.
type weight struct {
	owner *gpu
	dtype device.DType
	n, k  int
	mat   driver.Matrix
}

func (w *weight) Shape() (n, k int)   { return w.n, w.k }
func (w *weight) DType() device.DType { return w.dtype }
func (w *weight) Bytes() int64        { return int64(w.n) * int64(w.k) * int64(w.mat.Type.Size()) }

// NewWeight implements device.Memory. The weight is zero until it is loaded.
func (d *gpu) NewWeight(t device.DType, n, k int) (device.Weight, error) {
	if d.err != nil {
		return nil, d.err
	}
	if err := device.CheckNewWeight(t, n, k); err != nil {
		return nil, fmt.Errorf("cuda: %w", err)
	}
	w := &weight{owner: d, dtype: t, n: n, k: k, mat: driver.Matrix{Stride: k}}
	if t != device.Float32 {
		w.mat.Type = d.act
	}
	var err error
	if w.mat.At, err = d.take(w, w.Bytes()); err != nil {
		return nil, err
	}
	d.ok(d.Fill(w.mat.At, 0, w.Bytes(), d.stream))
	return w, d.err
}

// FreeWeight implements device.Memory.
func (d *gpu) FreeWeight(w device.Weight) {
	own, ok := w.(*weight)
	if !ok || own.owner != d {
		d.ok(errors.New("free weight: the weight was freed before, or belongs to another device"))
		return
	}
	d.drop(own, own.mat.At)
	*own = weight{dtype: own.dtype, n: own.n, k: own.k}
}

// weight resolves w. A foreign one becomes the device's error.
func (d *gpu) weight(w device.Weight) *weight {
	own, ok := w.(*weight)
	if !ok || own.owner != d {
		d.ok(errForeign)
		return &weight{}
	}
	return own
}

// LoadWeight implements device.Memory.
func (d *gpu) LoadWeight(w device.Weight, row int, src []float32) error {
	if !d.ok(device.CheckLoadWeight(w, row, len(src))) {
		return d.err
	}
	own := d.weight(w)
	if d.err != nil {
		return d.err
	}
	if _, quantised := own.dtype.Form(); quantised {
		q := device.NewQuant(own.dtype, len(src)/own.k, own.k)
		if d.ok(q.Quantise(src)) {
			d.loadQuant(own, row, q)
		}
		return d.err
	}
	d.load(own, row, len(src), func(b []byte, i, j int) {
		if own.dtype == device.Float32 {
			copy(b, bytesOf(src[i:j]))
			return
		}
		for q, x := range src[i:j] {
			put(b, q, own.mat.Type, half.ToBF16(x))
		}
	})
	return d.err
}

// LoadWeightBF16 implements device.Memory.
func (d *gpu) LoadWeightBF16(w device.Weight, row int, src []uint16) error {
	if !d.ok(device.CheckLoadWeight(w, row, len(src))) {
		return d.err
	}
	own := d.weight(w)
	if d.err != nil {
		return d.err
	}
	if _, quantised := own.dtype.Form(); quantised {
		values := make([]float32, len(src))
		for i, b := range src {
			values[i] = half.FromBF16(b)
		}
		return d.LoadWeight(w, row, values)
	}
	d.load(own, row, len(src), func(b []byte, i, j int) {
		if own.mat.Type == driver.BF16 {
			copy(b, bytesOf(src[i:j]))
			return
		}
		for q, x := range src[i:j] {
			put(b, q, driver.F32, x)
		}
	})
	return d.err
}

// LoadWeightQuant implements device.Memory.
func (d *gpu) LoadWeightQuant(w device.Weight, row int, src device.Quant) error {
	if d.ok(device.CheckLoadWeightQuant(w, row, src)) {
		if own := d.weight(w); d.err == nil {
			d.loadQuant(own, row, src)
		}
	}
	return d.err
}

func (d *gpu) loadQuant(w *weight, row int, src device.Quant) {
	shared := newUnpacker(src)
	d.load(w, row, len(src.Codes), func(b []byte, i, j int) {
		u := shared
		u.each(i, j, func(q int, x uint16) { put(b, q, w.mat.Type, x) })
	})
}

// load sends n elements of w from row on; fill, which is called by several goroutines at once, writes the elements [i, j) of
// them to b.
func (d *gpu) load(w *weight, row, n int, fill func(b []byte, i, j int)) {
	const least = 1 << 14 // elements that are worth a goroutine
	size := w.mat.Type.Size()
	d.send(at(w.mat, row).At, n, size, func(b []byte, i, j int) {
		share := max(least, (j-i)/runtime.GOMAXPROCS(0)+1)
		var work sync.WaitGroup
		for p := i; p < j; p += share {
			q := min(j, p+share)
			work.Go(func() { fill(b[(p-i)*size:(q-i)*size], p, q) })
		}
		work.Wait()
	})
}

// put writes bfloat16 bits as element q of b.
func put(b []byte, q int, t driver.Type, bits uint16) {
	if t == driver.BF16 {
		binary.LittleEndian.PutUint16(b[2*q:], bits)
	} else {
		binary.LittleEndian.PutUint32(b[4*q:], uint32(bits)<<16)
	}
}

// bytesOf are the bytes of s as they lie in memory: little-endian on every machine that has such a device.
func bytesOf[T float32 | uint16](s []T) []byte {
	if len(s) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&s[0])), len(s)*int(unsafe.Sizeof(s[0])))
}

// Repack implements device.Memory. Quantised types are quantised on the host.
func (d *gpu) Repack(w device.Weight, row int, src device.Mat) {
	if !d.ok(device.CheckRepack(w, row, src)) {
		return
	}
	own, from := d.weight(w), d.mat(src)
	if d.err != nil || src.Rows == 0 {
		return
	}
	if _, quantised := own.dtype.Form(); !quantised {
		d.pack(at(own.mat, row), from, src.Rows, src.Cols, own.dtype == device.BFloat16)
		return
	}
	values := make([]float32, src.Rows*src.Cols)
	dense := driver.Matrix{At: d.scratch(4 * len(values)), Stride: src.Cols}
	d.pack(dense, from, src.Rows, src.Cols, false)
	d.receiveFloats(values, dense.At, driver.F32)
	d.give(dense)
	if d.err == nil {
		_ = d.LoadWeight(w, row, values) // sticky
	}
}

// pack copies x to y, [rows, cols] matrices of any types, rounded to bfloat16 if y should hold such values in any case.
func (d *gpu) pack(y, x driver.Matrix, rows, cols int, round bool) {
	run, rounding := runOf(cols, y, x), 0
	if round {
		rounding = 1
	}
	d.launch(kernel{"linear", "pack"}, runs(rows, cols, run), d.args().Matrix(y).Matrix(x).Int(rows).Int(cols).Int(rounding).Int(run))
}

// unpacker makes the elements of quantised rows as device.Form defines them: products of scale and code are exact.
type unpacker struct {
	q            device.Quant
	f            device.Form
	groups       int // of a row
	scales       int // float16 numbers of a row
	levels       [256]float32
	scale, least float32 // of the group at hand
}

func newUnpacker(q device.Quant) unpacker {
	f, _ := q.DType.Form()
	u := unpacker{q: q, f: f, groups: (q.K + f.Group - 1) / f.Group}
	u.scales = u.groups
	if f.Super > 0 {
		u.scales = q.K / f.Super
	}
	for c := range u.levels {
		code := c & (1<<f.Bits - 1)
		if f.Signed && code >= 1<<(f.Bits-1) {
			code -= 1 << f.Bits
		}
		u.levels[c] = float32(code)
	}
	return u
}

// each calls put with the bfloat16 bits of the elements [i, j), counted from i.
func (u *unpacker) each(i, j int, put func(q int, bits uint16)) {
	for at := i; at < j; {
		row, col := at/u.q.K, at%u.q.K
		end := min(j, row*u.q.K+min(u.q.K, (col/u.f.Group+1)*u.f.Group))
		u.group(row, col)
		for ; at < end; at++ {
			put(at-i, half.ToBF16(float32(u.levels[uint8(u.q.Codes[at])]*u.scale)+u.least))
		}
	}
}

// group reads the numbers of the group of an element.
func (u *unpacker) group(row, col int) {
	number := func(halves []uint16, factors []int8) float32 {
		if u.f.Super == 0 {
			return half.FromF16(halves[row*u.scales+col/u.f.Group])
		}
		return half.FromF16(halves[row*u.scales+col/u.f.Super]) * float32(factors[row*u.groups+col/u.f.Group])
	}
	u.scale, u.least = number(u.q.Scale, u.q.SubScale), 0
	if u.f.Min {
		u.least = number(u.q.Min, u.q.SubMin)
	}
}
