package cuda

import (
	"github.com/rubicon-rl/rubicon/cuda/driver"
	"github.com/rubicon-rl/rubicon/internal/device"
)

// Low-rank parts are products of two thin matrices. Those of all parts lie side by side, each part's ranks filled up with
// zeros to whole rankSteps, so that one product makes all of x·Aᵀ; a kernel spreads it over the output, with the bias, and
// the product with W adds to that: the output is written once more than without parts, and read once.
const (
	rankStep  = 16  // of the matrix unit
	partsOnce = 4   // parts in a launch
	mostRanks = 256 // ranks in a launch of spread, for which its shared memory has room
	fewRows   = 64  // up to which x·Aᵀ is no product of blas
)

// linear is a device.Linear resolved, with the input that it is applied to.
type linear struct {
	rows, n, k int
	w          *weight
	x, bias    driver.Matrix
	parts      []part
	ranks      int // of all parts, filled up
}

// part is a device.LoRA. Its ranks begin at column, or row, at of what lies side by side.
type part struct {
	col, n, r, at int
	a, b, dA, dB  driver.Matrix
	scale         float32
	drop          *device.Dropout
}

func filled(r int) int { return (r + rankStep - 1) / rankStep * rankStep }

// bind resolves l on x; room is memory for its parts.
func (d *gpu) bind(l device.Linear, x device.Mat, room []part) linear {
	t := linear{rows: x.Rows, w: d.weight(l.W), x: d.mat(x), bias: d.mat(l.Bias), parts: room}
	t.n, t.k = t.w.n, t.w.k
	for _, p := range l.LoRA {
		q := part{
			col: p.Col, n: p.B.Rows, r: p.A.Rows, at: t.ranks, scale: p.Scale,
			a: d.mat(p.A), b: d.mat(p.B), dA: d.mat(p.DA), dB: d.mat(p.DB),
		}
		if p.Drop != nil && p.Drop.P > 0 {
			q.drop = p.Drop
		}
		t.parts = append(t.parts, q)
		t.ranks += filled(q.r)
	}
	return t
}

// group is the end of the run of parts from i on that share an input: all that have no dropout, or one that has.
func (t *linear) group(i int) int {
	j := i + 1
	for t.parts[i].drop == nil && j < len(t.parts) && t.parts[j].drop == nil {
		j++
	}
	return j
}

// ranksOf are the filled up ranks of the parts [i, j).
func (t *linear) ranksOf(i, j int) int {
	if j == len(t.parts) {
		return t.ranks - t.parts[i].at
	}
	return t.parts[j].at - t.parts[i].at
}

// Linear implements device.Ops.
func (d *gpu) Linear(y, x device.Mat, l device.Linear) {
	if !d.ok(device.CheckLinear(y, x, l)) {
		return
	}
	var room [partsOnce]part
	t, to := d.bind(l, x, room[:0]), d.mat(y)
	if d.err != nil || t.rows == 0 {
		return
	}
	beta := float32(0)
	if len(t.parts) > 0 || t.bias.At != 0 {
		u := d.lowRanks(&t)
		var strips [partsOnce]strip
		s := spreading{y: to, bias: t.bias, u: u, rows: t.rows, cols: t.n, exact: t.x.Type == driver.F32, strips: strips[:0]}
		for i := range t.parts {
			p := &t.parts[i]
			s.strips = strip{v: p.b, col: p.col, n: p.n, r: p.r, scale: p.scale}.pieces(s.strips, s.turned)
		}
		d.spread(s)
		d.give(u)
		beta = 1
	}
	d.gemm(driver.Gemm{TransB: true, M: t.rows, N: t.n, K: t.k, Alpha: 1, Beta: beta, A: t.x, B: t.w.mat, C: to})
}

// lowRanks is drop(x)·Aᵀ of all parts [T, ranks], float32, in scratch memory.
func (d *gpu) lowRanks(t *linear) driver.Matrix {
	if len(t.parts) == 0 {
		return driver.Matrix{}
	}
	u := d.dense(t.rows, t.ranks, driver.F32)
	if t.rows <= fewRows && t.group(0) == len(t.parts) && t.parts[0].drop == nil {
		d.narrow(t, u)
		return u
	}
	a := d.stacked(t)
	for i, j := 0, 0; i < len(t.parts); i = j {
		j = t.group(i)
		in := d.input(t, i)
		d.lowRank(t, i, j, in, a, columns(u, t.parts[i].at))
		d.giveInput(t, in)
	}
	d.give(a)
	return u
}

// lowRank sets u to in·Aᵀ of the parts [i, j); a are all parts' A stacked.
func (d *gpu) lowRank(t *linear, i, j int, in, a, u driver.Matrix) {
	d.gemm(driver.Gemm{
		TransB: true, M: t.rows, N: t.ranksOf(i, j), K: t.k, Alpha: 1, A: in, B: at(a, t.parts[i].at), C: u,
	})
}

// input is what part i is applied to: x, or drop(x) in scratch memory. giveInput gives it back.
func (d *gpu) input(t *linear, i int) driver.Matrix {
	drop := t.parts[i].drop
	if drop == nil {
		return t.x
	}
	in := d.dense(t.rows, t.k, t.x.Type)
	run := runOf(t.k, in, t.x)
	a := d.args().Matrix(in).Matrix(t.x).Int(t.rows).Int(t.k)
	d.launch(kernel{"lora", "drop"}, runs(t.rows, t.k, run), d.dropArgs(a, drop).Int(run))
	return in
}

func (d *gpu) giveInput(t *linear, in driver.Matrix) {
	if in != t.x {
		d.give(in)
	}
}

// dropArgs appends a struct Drop of kernels/dropout.cuh, of which there is none if drop is nil.
func (d *gpu) dropArgs(a *driver.Args, drop *device.Dropout) *driver.Args {
	if drop == nil {
		return a.Ptr(0).Ptr(0).Uint(0).Uint(0).Float(0)
	}
	return a.Ptr(d.memory(drop.Seg).at).Ptr(d.memory(drop.Pos).at).Uint(drop.Key[0]).Uint(drop.Key[1]).Float(drop.P)
}
