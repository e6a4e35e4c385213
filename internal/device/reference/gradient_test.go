package reference_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/internal/device/reference"
)

// bench is a reference device with the arguments of one operation, and the loss Σ upstream·output over its outputs.
// Every gradient that the operation writes or adds to is compared with central differences of that loss.
type bench struct {
	device.Device
	t         *testing.T
	rng       *rand.Rand
	outputs   []output
	variables []variable
}

// output is an output with the loss's gradient in it.
type output struct{ y, dy device.Mat }

// variable is something the loss depends on, and where its gradient goes.
type variable struct {
	name       string
	x          []float64
	grad       device.Mat
	activation bool // the gradient is overwritten, not added to
}

func newBench(t *testing.T) *bench {
	return &bench{Device: reference.New(), t: t, rng: rand.New(rand.NewPCG(1, 2))}
}

// mat is a strided matrix of normal values.
func (b *bench) mat(rows, cols int) device.Mat {
	m, err := b.Alloc(device.F32, 2+rows*(cols+1))
	if err != nil {
		b.t.Fatal(err)
	}
	for i := range reference.Float64s(m) {
		reference.Float64s(m)[i] = b.rng.NormFloat64()
	}
	return device.Mat{Mem: m, Off: 2, Rows: rows, Cols: cols, Stride: cols + 1}
}

func (b *bench) ints(values ...int32) device.Mem {
	m, err := b.Alloc(device.I32, len(values))
	if err != nil {
		b.t.Fatal(err)
	}
	b.UploadInts(m, 0, values)
	return m
}

func (b *bench) weight(n, k int) device.Weight {
	w, err := b.NewWeight(device.Float32, n, k)
	if err != nil {
		b.t.Fatal(err)
	}
	for i := range reference.WeightFloat64s(w) {
		reference.WeightFloat64s(w)[i] = b.rng.NormFloat64()
	}
	return w
}

// out is an output of the operation with its upstream gradient.
func (b *bench) out(rows, cols int) (y, dy device.Mat) {
	y, dy = b.mat(rows, cols), b.mat(rows, cols)
	b.outputs = append(b.outputs, output{y, dy})
	return y, dy
}

// in is a variable with its gradient.
func (b *bench) in(name string, rows, cols int) (x, dx device.Mat) {
	x, dx = b.mat(rows, cols), b.mat(rows, cols)
	b.variables = append(b.variables, variable{name, reference.Float64s(x.Mem), dx, false})
	return x, dx
}

// activation is a variable whose gradient the operation overwrites.
func (b *bench) activation(name string, rows, cols int) (x, dx device.Mat) {
	x, dx = b.in(name, rows, cols)
	b.variables[len(b.variables)-1].activation = true
	return x, dx
}

// weightIn is a weight as a variable.
func (b *bench) weightIn(name string, n, k int) (w device.Weight, dw device.Mat) {
	w, dw = b.weight(n, k), b.mat(n, k)
	b.variables = append(b.variables, variable{name, reference.WeightFloat64s(w), dw, false})
	return w, dw
}

// element is where element i of a variable's [rows, cols] values lies in x.
func (v variable) element(i int) int {
	if len(v.x) == v.grad.Rows*v.grad.Cols { // a weight is dense
		return i
	}
	return v.gradient(i)
}

// gradient is where element i of a variable's gradient lies in grad's memory.
func (v variable) gradient(i int) int {
	return v.grad.Off + i/v.grad.Cols*v.grad.Stride + i%v.grad.Cols
}

func (b *bench) loss() float64 {
	sum := 0.0
	for _, o := range b.outputs {
		y, dy := reference.Float64s(o.y.Mem), reference.Float64s(o.dy.Mem)
		for r := range o.y.Rows {
			for c := range o.y.Cols {
				sum += y[o.y.Off+r*o.y.Stride+c] * dy[o.dy.Off+r*o.dy.Stride+c]
			}
		}
	}
	return sum
}

// check compares what backward makes of each gradient with central differences of forward's loss.
func (b *bench) check(forward, backward func()) {
	b.checkLoss(func() float64 { forward(); return b.loss() }, backward)
}

func (b *bench) checkLoss(loss func() float64, backward func()) {
	b.t.Helper()
	loss() // backward may need outputs
	added := make([][]float64, len(b.variables))
	for i, v := range b.variables {
		added[i] = append([]float64(nil), reference.Float64s(v.grad.Mem)...)
		for j := range v.grad.Rows * v.grad.Cols {
			if v.activation {
				added[i][v.gradient(j)] = 0 // it is overwritten
			}
		}
	}
	backward()
	for i, v := range b.variables {
		after := reference.Float64s(v.grad.Mem)
		for j := range after {
			added[i][j] = after[j] - added[i][j]
		}
	}
	for i, v := range b.variables {
		b.compare(v, added[i], loss)
	}
	if err := b.Err(); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) compare(v variable, grad []float64, loss func() float64) {
	b.t.Helper()
	const h = 1e-5
	largest, worst := 0.0, 0.0
	for i := range v.grad.Rows * v.grad.Cols {
		x := &v.x[v.element(i)]
		old := *x
		*x = old + h
		up := loss()
		*x = old - h
		down := loss()
		*x = old
		at := v.gradient(i)
		numeric := (up - down) / (2 * h)
		largest = max(largest, math.Abs(numeric))
		worst = max(worst, math.Abs(numeric-grad[at]))
		grad[at] = 0
	}
	if !(worst <= 1e-6*largest) || largest == 0 {
		b.t.Errorf("d%s differs from central differences by %.2g of its largest element", v.name, worst/largest)
	}
	b.t.Logf("d%s: %.1e", v.name, worst/largest)
	for at, g := range grad {
		if g != 0 {
			b.t.Errorf("d%s: element %d outside of the view was changed by %g", v.name, at, g)
		}
	}
}

func TestEmbedGrad(t *testing.T) {
	b := newBench(t)
	w, dW := b.weightIn("W", 5, 3)
	y, dy := b.out(4, 3)
	ids := b.ints(2, 0, 2, 4)
	b.check(func() { b.Embed(y, w, ids) }, func() { b.EmbedGrad(dW, dy, ids) })
}

func TestRMSNormGrad(t *testing.T) {
	for _, eps := range []float32{0, 0.1} {
		b := newBench(t)
		x, dx := b.in("x", 4, 7)
		w, dW := b.in("w", 1, 7)
		y, dy := b.out(4, 7)
		res, sum := b.mat(4, 7), b.mat(4, 7)
		b.check(func() {
			b.Copy(sum, x)
			b.RMSNorm(y, sum, res, w, eps)
		}, func() { b.RMSNormGrad(dx, dW, dy, sum, w, eps) })
	}
}

func TestLinearGrad(t *testing.T) {
	b := newBench(t)
	x, dx := b.activation("x", 5, 6)
	y, dy := b.out(5, 9)
	l := device.Linear{}
	l.W, l.DW = b.weightIn("W", 9, 6)
	l.Bias, l.DBias = b.in("bias", 1, 9)
	seg, pos := b.ints(0, 0, 1, 1, 2), b.ints(0, 1, 1, 2, 7)
	for i, p := range []device.LoRA{
		{Col: 0, Scale: 0.5},
		{Col: 2, Scale: 2, Drop: &device.Dropout{P: 0.4, Key: device.NewKey(5), Seg: seg, Pos: pos}},
	} {
		p.A, p.DA = b.in("A", 2+i, 6)
		p.B, p.DB = b.in("B", 4+3*i, 2+i)
		l.LoRA = append(l.LoRA, p)
	}
	b.check(func() { b.Linear(y, x, l) }, func() { b.LinearGrad(dx, dy, x, l) })
}

func TestRotaryGrad(t *testing.T) {
	for _, norm := range []bool{false, true} {
		b := newBench(t)
		x, dx := b.activation("x", 3, 12)
		y, dy := b.out(3, 12)
		r := device.Rotary{HeadDim: 6, Cos: b.mat(8, 3), Sin: b.mat(8, 3), Pos: b.ints(7, 0, 3), Eps: 0.01}
		if norm {
			r.Norm, r.DNorm = b.in("norm", 1, 6)
		}
		b.check(func() { b.Rotary(y, x, r) }, func() { b.RotaryGrad(dx, dy, x, r) })
	}
}

// A prompt of 3 in two pieces, a child of 2, and a single query below that child.
func TestAttentionGrad(t *testing.T) {
	b := newBench(t)
	a := device.Attention{Heads: 4, KVHeads: 2, HeadDim: 3, Scale: 0.6}
	prompt := []device.Span{{Row: 4, N: 2}, {Row: 0, N: 1}}
	child := append(prompt[:2:2], device.Span{Row: 2, N: 2})
	a.Tasks = []device.AttentionTask{
		{Q: device.Span{Row: 1, N: 3}, Keys: prompt},
		{Q: device.Span{Row: 4, N: 2}, Pos: 3, Keys: child},
		{Q: device.Span{Row: 0, N: 1}, Pos: 5, Keys: append(child[:3:3], device.Span{Row: 6, N: 1})},
	}
	q, dq := b.activation("q", 6, 12)
	k, dk := b.activation("k", 7, 6)
	v, dv := b.activation("v", 7, 6)
	o, do := b.out(6, 12)
	lse := b.mat(6, 4)
	b.check(func() { b.Attention(o, lse, q, k, v, a) }, func() { b.AttentionGrad(dq, dk, dv, do, o, lse, q, k, v, a) })
}

func TestSwiGLUGrad(t *testing.T) {
	b := newBench(t)
	gu, dgu := b.activation("gu", 4, 10)
	y, dy := b.out(4, 5)
	b.check(func() { b.SwiGLU(y, gu) }, func() { b.SwiGLUGrad(dgu, dy, gu) })
}

func TestMeanRowsGrad(t *testing.T) {
	b := newBench(t)
	x, dx := b.in("x", 6, 3)
	y, dy := b.out(3, 3)
	spans := []device.Span{{Row: 0, N: 4}, {Row: 2, N: 3}, {Row: 5, N: 1}}
	b.check(func() { b.MeanRows(y, x, spans) }, func() { b.MeanRowsGrad(dx, dy, spans) })
}

// head makes a Head with a variable h, and none of its outputs in the loss yet.
func (b *bench) head() (h, dh device.Mat, l device.Head, out device.HeadOut) {
	h, dh = b.activation("h", 4, 3)
	l = device.Head{Temp: 0.7, Targets: b.ints(2, 0, 5, 2), Ref: b.mat(4, 3)}
	return h, dh, l, device.HeadOut{LogP: b.mat(4, 1), LSE: b.mat(4, 1), Entropy: b.mat(4, 1), KL: b.mat(4, 1), RefLSE: b.mat(4, 1)}
}

// Each gradient alone and all together.
func TestHeadGrad(t *testing.T) {
	for which := 1; which < 8; which++ {
		b := newBench(t)
		h, dh, l, out := b.head()
		var g device.HeadGrad
		if which&1 > 0 {
			out.LogP, g.LogP = b.out(4, 1)
		}
		if which&2 > 0 {
			out.Entropy, g.Entropy = b.out(4, 1)
		}
		if which&4 > 0 {
			l.W = b.weight(6, 3) // the KL depends on W through the reference too, which is held constant
			out.KL, g.KL = b.out(4, 1)
		} else {
			l.W, l.DW = b.weightIn("W", 6, 3)
		}
		b.check(func() { b.Head(out, h, l) }, func() { b.HeadGrad(dh, g, out, h, l) })
	}
}

// The gradient of the KL in the weight, with the reference's distribution held constant, is that of the cross entropy.
func TestHeadGradOfKLInWeight(t *testing.T) {
	b := newBench(t)
	h, dh, l, out := b.head()
	l.W, l.DW = b.weightIn("W", 6, 3)
	_, dkl := b.out(4, 1)
	b.Head(out, h, l)
	ref, z := b.mat(4, 6), b.mat(4, 6)
	b.Logits(ref, l.Ref, l.W)
	logp := func(m device.Mat, r, v int) float64 {
		row := reference.Float64s(m.Mem)[m.Off+r*m.Stride:][:m.Cols]
		sum := 0.0
		for _, x := range row {
			sum += math.Exp(x / float64(l.Temp))
		}
		return row[v]/float64(l.Temp) - math.Log(sum)
	}
	b.checkLoss(func() float64 {
		b.Logits(z, h, l.W)
		sum := 0.0
		for r := range 4 {
			for v := range 6 {
				sum -= reference.Float64s(dkl.Mem)[dkl.Off+r*dkl.Stride] * math.Exp(logp(ref, r, v)) * logp(z, r, v)
			}
		}
		return sum
	}, func() { b.HeadGrad(dh, device.HeadGrad{KL: dkl}, out, h, l) })
}
