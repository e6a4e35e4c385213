package cuda

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/cuda/driver"
	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/internal/device/reference"
)

// stem is a run of n tokens below another (parent, -1: none) in a forest; the last `asks` of them are queries.
type stem struct{ parent, n, asks int }

// grove lays a forest out, keys of each stem in rows one after the other with an unused row after it, queries without a gap
// but for one row before all that is in no task.
func grove(a device.Attention, stems []stem) (call device.Attention, queries, keys int) {
	paths, depth := make([][]device.Span, len(stems)), make([]int, len(stems))
	queries = 1
	for i, s := range stems {
		if s.parent >= 0 {
			paths[i], depth[i] = slices.Clone(paths[s.parent]), depth[s.parent]
		}
		paths[i] = append(paths[i], device.Span{Row: keys, N: s.n})
		depth[i] += s.n
		keys += s.n + 1
		if s.asks > 0 {
			a.Tasks = append(a.Tasks, device.AttentionTask{Q: device.Span{Row: queries, N: s.asks}, Pos: depth[i] - s.asks, Keys: paths[i]})
			queries += s.asks
		}
	}
	return a, queries, keys
}

// bench is what Attention and AttentionGrad take and give, on one device.
type bench struct {
	dev                 device.Device
	o, lse, q, k, v, do device.Mat
	dq, dk, dv          device.Mat
}

func newBench(t *testing.T, dev device.Device, a device.Attention, queries, keys int) *bench {
	p := &bench{dev: dev}
	mat := func(kind device.Kind, rows, cols int) device.Mat {
		m, err := dev.Alloc(kind, rows*cols)
		if err != nil {
			t.Fatal(err)
		}
		return device.View(m, rows, cols)
	}
	wide, narrow := a.Heads*a.HeadDim, a.KVHeads*a.HeadDim
	for _, m := range []*device.Mat{&p.o, &p.q, &p.do, &p.dq} {
		*m = mat(device.Act, queries, wide)
	}
	for _, m := range []*device.Mat{&p.k, &p.v, &p.dk, &p.dv} {
		*m = mat(device.Act, keys, narrow)
	}
	p.lse = mat(device.F32, queries, a.Heads)
	return p
}

func (p *bench) read(t *testing.T, m device.Mat) []float32 {
	values := make([]float32, m.Rows*m.Cols)
	if err := p.dev.Download(values, m.Mem, 0); err != nil {
		t.Fatal(err)
	}
	return values
}

// run computes forward and, with gradients, backward, of fresh outputs, and returns all results.
func (p *bench) run(t *testing.T, a device.Attention, gradients bool) map[string][]float32 {
	results := map[string]device.Mat{"o": p.o, "lse": p.lse}
	if gradients {
		results["dq"], results["dk"], results["dv"] = p.dq, p.dk, p.dv
	}
	for _, m := range results {
		p.dev.Upload(m.Mem, 0, slices.Repeat([]float32{7}, m.Rows*m.Cols))
	}
	p.dev.Attention(p.o, p.lse, p.q, p.k, p.v, a)
	if gradients {
		p.dev.AttentionGrad(p.dq, p.dk, p.dv, p.do, p.o, p.lse, p.q, p.k, p.v, a)
	}
	values := map[string][]float32{}
	for name, m := range results {
		values[name] = p.read(t, m)
	}
	return values
}

// farther is the distance of got from want relative to want, in the Euclidean norm.
func farther(got, want []float32) float64 {
	diff, size := 0.0, 0.0
	for i := range want {
		d := float64(got[i]) - float64(want[i])
		diff, size = diff+d*d, size+float64(want[i])*float64(want[i])
	}
	return math.Sqrt(diff / max(size, 1e-30))
}

// against compares a bfloat16 device with the reference and with itself, and returns the kernels of attention it launched.
// Inputs have 8 bits, and so have probabilities and results: each rounds by 2^-9 at most, by half of it on average.
func against(t *testing.T, a device.Attention, stems []stem, gradients bool) []string {
	t.Helper()
	dev := simulated(driver.BF16)(t)
	defer dev.Close()
	a.Scale = float32(1 / math.Sqrt(float64(a.HeadDim)))
	a, queries, keys := grove(a, stems)
	got, want := newBench(t, dev, a, queries, keys), newBench(t, reference.New(), a, queries, keys)
	rng := rand.New(rand.NewPCG(uint64(a.HeadDim), uint64(len(stems))))
	for i, m := range []device.Mat{got.q, got.k, got.v, got.do} {
		values := make([]float32, m.Rows*m.Cols)
		for j := range values {
			values[j] = float32(rng.NormFloat64())
		}
		dev.Upload(m.Mem, 0, values)
		other := []device.Mat{want.q, want.k, want.v, want.do}[i]
		want.dev.Upload(other.Mem, 0, got.read(t, m)) // as the device rounds them
	}
	first, again, truth := got.run(t, a, gradients), got.run(t, a, gradients), want.run(t, a, gradients)
	for name := range truth {
		limit := 6e-3
		if name == "lse" {
			limit = 1e-5
		}
		if d := farther(first[name], truth[name]); !(d < limit) {
			t.Errorf("%s differs from the reference by %.2g, more than %.2g", name, d, limit)
		}
		if !slices.Equal(first[name], again[name]) {
			t.Errorf("%s has other bits in a second run", name)
		}
	}
	return launched(dev)
}

// launched are the kernels of attention that a device has launched.
func launched(dev device.Device) []string {
	var names []string
	for k := range dev.(*gpu).kernels.funcs {
		if strings.HasPrefix(k.file, "attention") || k.file == "decode" {
			names = append(names, k.file+"."+k.name)
		}
	}
	slices.Sort(names)
	return names
}

// Training on the tensor cores: it catches wrong masks at the diagonal and at the ends of tiles, keys of a wrong ancestor, heads
// that read another group's keys, sums whose order is left to chance, and a call that silently takes the plain kernels.
func TestAttentionTensorCores(t *testing.T) {
	for _, c := range []struct {
		heads device.Attention
		stems []stem
	}{
		{device.Attention{Heads: 7, KVHeads: 1, HeadDim: 64}, []stem{{-1, 129, 129}, {-1, 33, 33}, {-1, 9, 9}}},
		{device.Attention{Heads: 2, KVHeads: 2, HeadDim: 128}, []stem{{-1, 70, 70}, {0, 33, 33}, {0, 129, 129}, {1, 12, 12}}},
		{device.Attention{Heads: 2, KVHeads: 1, HeadDim: 128}, []stem{{-1, 33, 0}, {0, 30, 30}, {-1, 129, 20}}},
		{device.Attention{Heads: 4, KVHeads: 1, HeadDim: 64}, []stem{{-1, 200, 0}, {0, 100, 100}}},
	} {
		t.Run(fmt.Sprintf("h%d-kv%d-d%d", c.heads.Heads, c.heads.KVHeads, c.heads.HeadDim), func(t *testing.T) {
			d := c.heads.HeadDim
			want := []string{fmt.Sprintf("attention.forward_%d", d), "attentiondelta.delta", fmt.Sprintf("attentiongrad.keys_%d", d),
				fmt.Sprintf("attentiongrad.queries_%d", d)}
			if got := against(t, c.heads, c.stems, true); !slices.Equal(got, want) {
				t.Errorf("launched %v, want %v", got, want)
			}
		})
	}
}

// A prompt of many completions has its gradients summed by several blocks: it catches parts that are lost, that are
// merged into another tile's rows, or that are added in no fixed order.
func TestAttentionGradDivides(t *testing.T) {
	stems := []stem{{-1, 70, 70}, {0, 300, 300}, {0, 1, 1}, {0, 280, 280}, {0, 150, 150}}
	got := against(t, device.Attention{Heads: 2, KVHeads: 2, HeadDim: 64}, stems, true)
	if !slices.Contains(got, "attentiongrad.merge") {
		t.Errorf("launched %v, no merge", got)
	}
}

// Generation: it catches samples that get another's tail or prompt, ranges that are left out or counted twice, keys beyond the end of
// a range, and rows of a tile that belong to no sample.
func TestAttentionDecode(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	shared := []stem{{-1, 203, 0}, {-1, 90, 0}}
	for i := range 16 {
		shared = append(shared, stem{i / 8, 1 + rng.IntN(100), 1})
	}
	for _, c := range []struct {
		name    string
		heads   device.Attention
		stems   []stem
		kernels string
	}{
		{"16-samples-of-2-prompts", device.Attention{Heads: 14, KVHeads: 2, HeadDim: 128}, shared, "join narrow_128 wide_128"},
		{"no-groups", device.Attention{Heads: 2, KVHeads: 2, HeadDim: 64}, shared, "join narrow_64"},
		{"alone-300", device.Attention{Heads: 4, KVHeads: 2, HeadDim: 64}, []stem{{-1, 300, 1}}, "join narrow_64"},
		{"alone-300-d128", device.Attention{Heads: 2, KVHeads: 1, HeadDim: 128}, []stem{{-1, 300, 1}}, "join narrow_128"},
		{"few-queries", device.Attention{Heads: 8, KVHeads: 2, HeadDim: 64}, []stem{{-1, 150, 3}, {0, 5, 5}, {0, 2, 2}, {-1, 8, 8}}, "join narrow_64 wide_64"},
		{"nested-prompts", device.Attention{Heads: 4, KVHeads: 1, HeadDim: 128},
			[]stem{{-1, 100, 0}, {0, 80, 0}, {0, 66, 0}, {1, 9, 1}, {1, 70, 1}, {1, 64, 1}, {2, 10, 1}, {2, 3, 1}, {0, 1, 1}}, "join narrow_128 wide_128"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var want []string
			for name := range strings.FieldsSeq(c.kernels) {
				want = append(want, "decode."+name)
			}
			if got := against(t, c.heads, c.stems, false); !slices.Equal(got, want) {
				t.Errorf("launched %v, want %v", got, want)
			}
		})
	}
}

// A step of generation that feeds a prompt beside samples takes both ways; it catches tasks that neither takes, or both.
func TestAttentionMixed(t *testing.T) {
	stems := []stem{{-1, 70, 0}, {0, 20, 1}, {-1, 40, 40}, {0, 3, 1}}
	got := against(t, device.Attention{Heads: 2, KVHeads: 1, HeadDim: 64}, stems, false)
	if want := []string{"attention.forward_64", "decode.join", "decode.narrow_64"}; !slices.Equal(got, want) {
		t.Errorf("launched %v, want %v", got, want)
	}
}
