package policy

import (
	"fmt"
	"math"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/internal/device/reference"
)

// family3 is a forest of two roots, of children and a grandchild, in which tokens are scored here and there and the
// pooled segments lie at all depths.
func family3() (f *Forest, pool []bool) {
	f = &Forest{Segments: []Segment{
		{Parent: Root, Tokens: []int32{5, 6, 7, 8}, Score: []bool{false, false, true, false}, ID: 11},
		{Parent: 0, Tokens: []int32{9, 10, 11}, Score: []bool{true, false, true}, ID: 12},
		{Parent: 0, Tokens: []int32{12, 5}, Score: []bool{true, true}, ID: 13},
		{Parent: Root, Tokens: []int32{20}, ID: 14},
		{Parent: 1, Tokens: []int32{6, 7, 30}, Score: []bool{true, true, true}, ID: 15},
		{Parent: 3, Tokens: []int32{31, 5}, Score: []bool{true, false}, ID: 16},
	}}
	return f, []bool{false, true, false, true, true, false}
}

// loss is a weighted sum of everything that a pass gives; each weight is exact in float32.
type loss struct{ o ForwardOptions }

func weight(kind, i int) float32 { return float32((i*7+kind*5)%13-6) / 8 }

// value is the loss in float64.
func (l loss) value(t *testing.T, m *Model, f *Forest) float64 {
	t.Helper()
	o := l.o
	o.Grad = false
	p, err := m.Forward(f, o)
	must(t, err)
	defer p.Release()
	sum := 0.0
	for kind, x := range []device.Mat{p.head.out.LogP, p.head.out.Entropy, p.head.out.KL, p.pool.means} {
		if x.Absent() {
			continue
		}
		for i, v := range reference.Float64s(x.Mem)[x.Off:][:x.Rows*x.Cols] {
			sum += float64(weight(kind, i)) * v
		}
	}
	return sum
}

// gradients are those of the loss in a pass's output.
func (l loss) gradients(out Output) Gradients {
	fill := func(kind, n int) []float32 {
		var v []float32
		for i := range n {
			v = append(v, weight(kind, i))
		}
		return v
	}
	g := Gradients{LogP: fill(0, len(out.LogP)), Entropy: fill(1, len(out.Entropy)), KL: fill(2, len(out.KL))}
	for i, v := range out.Pooled {
		g.Pooled = append(g.Pooled, fill(3, (i+1)*len(v))[i*len(v):])
	}
	return g
}

// backward adds the gradient of the loss.
func (l loss) backward(t *testing.T, m *Model, f *Forest) {
	t.Helper()
	o := l.o
	o.Grad = true
	p, err := m.Forward(f, o)
	must(t, err)
	must(t, p.Backward(l.gradients(p.Output)))
}

// Every parameter's gradient is the central difference of the loss: through log-probabilities, entropy, KL and pooled
// states, with dropout, for adapters and for all weights.
func TestGradientIsCentralDifference(t *testing.T) {
	f, pool := family3()
	for _, name := range []string{"qwen2", "qwen3", "llama3"} { // biases; norms of q and k; a head of its own
		for _, o := range []ForwardOptions{
			{Temperature: 0.7, Entropy: true, HasKL: true, KL: "other", Pool: pool, Train: true, Seed: 3, Step: 4, Adapter: "policy"},
			{Temperature: 1.3, Entropy: true, Pool: pool},
		} {
			t.Run(fmt.Sprintf("%s adapter=%q", name, o.Adapter), func(t *testing.T) {
				train := "lora"
				if o.Adapter == "" {
					train = "full"
				}
				m := loadTiny(t, openReference(t), name, LoadOptions{Train: train})
				addScrambled(t, m, "policy", 0.25)
				addScrambled(t, m, "other", 0)
				must(t, m.dev.Err())
				checkDifferences(t, m, f, loss{o})
			})
		}
	}
}

// addScrambled adds an adapter with values of the size of trained ones.
func addScrambled(t *testing.T, m *Model, name string, dropout float64) {
	t.Helper()
	must(t, m.AddAdapter(name, LoRAConfig{R: 3, Alpha: 6, Dropout: dropout, TargetModules: []string{AllLinear}}, 1))
	p, err := m.Params(name)
	must(t, err)
	v := make([]float32, p.Len)
	uniform(v, 0.15, device.NewKey(uint64(len(name))))
	must(t, p.Upload(m.dev, v))
}

func checkDifferences(t *testing.T, m *Model, f *Forest, l loss) {
	t.Helper()
	l.backward(t, m, f)
	p, err := m.Params(l.o.Adapter)
	must(t, err)
	w, grad := reference.Float64s(p.W), reference.Float64s(p.Grad)
	worst := 0.0
	for i, name := range p.Names {
		n := elements(p.Shapes[i])
		for _, at := range []int{p.Offsets[i] + (i*1009+n/2)%n, p.Offsets[i] + largest(grad[p.Offsets[i]:][:n])} {
			const h = 1e-5
			was := w[at]
			difference := func(x float64) float64 {
				w[at] = x
				must(t, m.Refresh())
				return l.value(t, m, f)
			}
			want := (difference(was+h) - difference(was-h)) / (2 * h)
			w[at] = was
			d := math.Abs(grad[at]-want) / max(math.Abs(want), 1e-3)
			worst = max(worst, d)
			if !(d < 1e-5) {
				t.Errorf("%s[%d]: gradient %.9g, central difference %.9g", name, at-p.Offsets[i], grad[at], want)
			}
		}
	}
	must(t, m.Refresh())
	t.Logf("worst relative difference %.2g", worst)
}

func largest(v []float64) int {
	at := 0
	for i := range v {
		if math.Abs(v[i]) > math.Abs(v[at]) {
			at = i
		}
	}
	return at
}
