package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// on is a device with ways to fill it, for tests and benchmarks.
type on struct {
	*cpu
	t   testing.TB
	rng *rand.Rand
}

func onDevice(t testing.TB, o Options) on {
	return on{open(t, o), t, rand.New(rand.NewPCG(1, 1))}
}

// values are n normal numbers of standard deviation 0.1.
func (d on) values(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = 0.1 * float32(d.rng.NormFloat64())
	}
	return x
}

func (d on) mat(rows, cols int) device.Mat {
	m, err := d.Alloc(device.F32, rows*cols)
	if err != nil {
		d.t.Fatal(err)
	}
	d.Upload(m, 0, d.values(rows*cols))
	return device.View(m, rows, cols)
}

func (d on) ints(n int, f func(i int) int32) device.Mem {
	m, err := d.Alloc(device.I32, n)
	if err != nil {
		d.t.Fatal(err)
	}
	x := make([]int32, n)
	for i := range x {
		x[i] = f(i)
	}
	d.UploadInts(m, 0, x)
	return m
}

func (d on) weight(t device.DType, n, k int) device.Weight {
	w, err := d.NewWeight(t, n, k)
	if err != nil {
		d.t.Fatal(err)
	}
	if err := d.LoadWeight(w, 0, d.values(n*k)); err != nil {
		d.t.Fatal(err)
	}
	return w
}

// lora is a part on the columns [col, col+n), with gradients.
func (d on) lora(col, n, k, r int) device.LoRA {
	return device.LoRA{Col: col, A: d.mat(r, k), B: d.mat(n, r), DA: d.mat(r, k), DB: d.mat(n, r), Scale: 2}
}

func (d on) read(m device.Mat) []float32 {
	x := make([]float32, m.Mem.Len())
	if err := d.Download(x, m.Mem, 0); err != nil {
		d.t.Fatal(err)
	}
	return x
}

func sameBits(t *testing.T, what string, got, want []float32) {
	t.Helper()
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Fatalf("%s: element %d is %g, want %g", what, i, got[i], want[i])
		}
	}
}

// pass is every operation whose work is split up, on shapes large enough to be. It returns all that they wrote.
func (d on) pass() [][]float32 {
	const t, n, k, r = 300, 330, 301, 20 // with one thread its tasks cut the rows themselves, with two they do not
	x, y, dx, dW := d.mat(t, k), d.mat(t, n), d.mat(t, k), d.mat(n, k)
	l := device.Linear{W: d.weight(device.BFloat16, n, k), Bias: d.mat(1, n), DW: dW, DBias: d.mat(1, n),
		LoRA: []device.LoRA{d.lora(0, 100, k, r), d.lora(100, 230, k, r+19)}}
	d.Linear(y, x, l)
	d.LinearGrad(dx, y, x, l)
	norm, dNorm, h := d.mat(1, k), d.mat(1, k), d.mat(t, k)
	d.RMSNorm(h, x, dx, norm, 1e-6)
	d.RMSNormGrad(dx, dNorm, h, x, norm, 1e-6)
	head := device.Head{W: d.weight(device.Float32, 999, k), Temp: 0.8, Targets: d.ints(t, func(i int) int32 { return int32(i) })}
	out := device.HeadOut{LogP: d.mat(t, 1), LSE: d.mat(t, 1), Entropy: d.mat(t, 1)}
	d.Head(out, h, head)
	d.HeadGrad(dx, device.HeadGrad{LogP: d.mat(t, 1), Entropy: d.mat(t, 1)}, out, h, head)
	results := [][]float32{d.read(y), d.read(dx), d.read(dW), d.read(l.DBias), d.read(dNorm), d.read(out.LogP), d.read(out.Entropy)}
	for _, p := range l.LoRA {
		results = append(results, d.read(p.DA), d.read(p.DB))
	}
	return append(results, d.attend()...)
}

// attend is a prompt with two completions, forward and backward.
func (d on) attend() [][]float32 {
	const heads, kv, dim, t = 6, 2, 40, 300
	q, k, v, o, do := d.mat(t, heads*dim), d.mat(t, kv*dim), d.mat(t, kv*dim), d.mat(t, heads*dim), d.mat(t, heads*dim)
	root := device.Span{Row: 0, N: 150}
	a := device.Attention{Heads: heads, KVHeads: kv, HeadDim: dim, Scale: 3, Tasks: []device.AttentionTask{{Q: root, Keys: []device.Span{root}}}}
	for _, own := range []device.Span{{Row: 150, N: 50}, {Row: 200, N: 100}} {
		a.Tasks = append(a.Tasks, device.AttentionTask{Q: own, Pos: root.N, Keys: []device.Span{root, own}})
	}
	lse, dq, dk, dv := d.mat(t, heads), d.mat(t, heads*dim), d.mat(t, kv*dim), d.mat(t, kv*dim)
	d.Attention(o, lse, q, k, v, a)
	d.AttentionGrad(dq, dk, dv, do, o, lse, q, k, v, a)
	return [][]float32{d.read(o), d.read(lse), d.read(dq), d.read(dk), d.read(dv)}
}

// The number of threads changes no bit of any output or gradient.
func TestThreadsChangeNoBits(t *testing.T) {
	arithmetics(t, func(t *testing.T, o Options) {
		got := onDevice(t, o).pass()
		o.Threads = 1
		for i, want := range onDevice(t, o).pass() {
			sameBits(t, fmt.Sprintf("result %d", i), got[i], want)
		}
	})
}

// Products of the vector tiers have the same bits, since both cut and order their sums alike.
func TestVectorTiersAgreeOnProducts(t *testing.T) {
	var first [][]float32
	for _, tier := range testedTiers() {
		if tier.name == "portable" || tier.name == "amx" {
			continue
		}
		d := onDevice(t, Options{Threads: 1, Tier: tier.name})
		x, y, dx := d.mat(37, 601), d.mat(37, 211), d.mat(37, 601)
		var got [][]float32
		for _, dtype := range []device.DType{device.Float32, device.BFloat16} {
			l := device.Linear{W: d.weight(dtype, 211, 601), LoRA: []device.LoRA{d.lora(3, 200, 601, 40)}}
			d.Linear(y, x, l)
			d.LinearGrad(dx, y, x, l)
			got = append(got, d.read(y), d.read(dx), d.read(l.LoRA[0].DA), d.read(l.LoRA[0].DB))
		}
		if first == nil {
			first = got
		}
		for i := range got {
			sameBits(t, tier.name, got[i], first[i])
		}
	}
	if first == nil {
		t.Skip("this machine has no assembly tier")
	}
}

// A product with many blocks of rows, columns and k agrees with a plain float64 sum.
func TestLargeProduct(t *testing.T) {
	everyTierDevice(t, func(t *testing.T, d on) {
		const m, n, k = 1201, 77, 1111
		x, y, w := d.values(m*k), d.mat(m, n), d.values(n*k)
		xm := d.mat(m, k)
		d.Upload(xm.Mem, 0, x)
		wm, err := d.NewWeight(device.Float32, n, k)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.LoadWeight(wm, 0, w); err != nil {
			t.Fatal(err)
		}
		d.Linear(y, xm, device.Linear{W: wm})
		got := d.read(y)
		for i := 0; i < m; i += 13 {
			for j := range n {
				want := 0.0
				for p := range k {
					want += float64(x[i*k+p]) * float64(w[j*k+p])
				}
				if math.Abs(float64(got[i*n+j])-want) > 2e-6 {
					t.Fatalf("(%d,%d) is %g, want %g", i, j, got[i*n+j], want)
				}
			}
		}
	})
}

func everyTierDevice(t *testing.T, f func(t *testing.T, d on)) {
	for _, tier := range testedTiers() {
		t.Run(tier.name, func(t *testing.T) { f(t, onDevice(t, Options{Tier: tier.name})) })
	}
}

// Blocks of k are whole vectors, none is longer than a panel may be, and the last one is not empty.
func TestKBlock(t *testing.T) {
	for k := 1; k < 5000; k++ {
		step := kBlock(k)
		blocks := (k + step - 1) / step
		if step%16 != 0 || step > maxK || blocks != (k+maxK-1)/maxK && blocks != (k+maxK-1)/maxK-1 {
			t.Fatalf("%d is cut into %d blocks of %d", k, blocks, step)
		}
	}
}

// Operations allocate nothing once their scratch memory has grown. With one thread: a worker's grows when it first
// gets a task of the kind.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	d := onDevice(t, Options{Threads: 1})
	x, y, dx := d.mat(200, 96), d.mat(200, 128), d.mat(200, 96)
	l := device.Linear{W: d.weight(device.BFloat16, 128, 96), LoRA: []device.LoRA{d.lora(0, 64, 96, 8), d.lora(64, 64, 96, 8)}}
	norm := d.mat(1, 96)
	q, k, o, lse := d.mat(200, 96), d.mat(200, 48), d.mat(200, 96), d.mat(200, 2)
	own := device.Span{Row: 0, N: 200}
	a := device.Attention{Heads: 2, KVHeads: 1, HeadDim: 48, Scale: 1, Tasks: []device.AttentionTask{{Q: own, Keys: []device.Span{own}}}}
	head := device.Head{W: l.W, Temp: 1, Targets: d.ints(200, func(i int) int32 { return int32(i % 128) })}
	out := device.HeadOut{LogP: d.mat(200, 1), LSE: d.mat(200, 1)}
	rows := slices.Repeat([]device.SampleRow{{Temp: 0.5, TopK: 20, TopP: 0.9, MinP: 0.1, Penalty: 1.1, Seen: []int32{1, 2}}}, 200)
	drawn := device.SampleOut{IDs: make([]int32, 200), LogP: make([]float32, 200), Filtered: make([]float32, 200)}
	allocations := testing.AllocsPerRun(5, func() {
		d.Linear(y, x, l)
		d.LinearGrad(dx, y, x, l)
		d.RMSNorm(x, x, device.Mat{}, norm, 1e-6)
		d.Attention(o, lse, q, k, k, a)
		d.AttentionGrad(q, k, k, o, o, lse, q, k, k, a)
		d.Head(out, x, head)
		d.HeadGrad(dx, device.HeadGrad{LogP: out.LogP}, out, x, head)
		d.Logits(y, x, l.W)
		d.Sample(drawn, y, rows)
		d.Add(dx, x, 1)
	})
	if err := d.Sync(); err != nil {
		t.Fatal(err)
	}
	if allocations > 0 {
		t.Errorf("%g allocations", allocations)
	}
}
