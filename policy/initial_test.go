package policy

import (
	"math"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/golden"
)

func TestInitial(t *testing.T) {
	for _, model := range []string{"qwen2", "qwen3", "llama3"} {
		c := goldenConfig(model)
		c.InitStd = 0.05
		tensors := map[string]golden.Tensor{}
		for i, p := range c.Parameters() {
			tensors[p.Name] = golden.Tensor{Shape: p.Shape, Float: c.initial(i, p, 7)}
		}
		checkInitial(t, model, tensors)
	}
}

func checkInitial(t *testing.T, model string, tensors map[string]golden.Tensor) {
	t.Helper()
	var all []float32
	for name, x := range tensors {
		switch {
		case len(x.Shape) == 2:
			all = append(all, x.Float...)
		case strings.HasSuffix(name, ".bias"):
			golden.Close(t, name, x.Float, make([]float32, len(x.Float)), 0)
		default:
			for i, v := range x.Float {
				if v != 1 {
					t.Fatalf("%s: %s[%d] is %v", model, name, i, v)
				}
			}
		}
	}
	// Mean, variance and fourth moment of N(0, 0.05²): 0, 0.0025, 3. With n values their standard errors are
	// 0.05/sqrt(n), 0.0025·sqrt(2/n) and sqrt(96/n); five of them are allowed.
	n, sum, squares, fourth := float64(len(all)), 0.0, 0.0, 0.0
	for _, v := range all {
		z := float64(v) / 0.05
		sum, squares, fourth = sum+z, squares+z*z, fourth+z*z*z*z
	}
	for _, m := range []struct {
		name                   string
		got, want, oneStandard float64
	}{{"mean", sum / n, 0, 1 / math.Sqrt(n)}, {"variance", squares / n, 1, math.Sqrt(2 / n)}, {"fourth moment", fourth / n, 3, math.Sqrt(96 / n)}} {
		if math.Abs(m.got-m.want) > 5*m.oneStandard {
			t.Errorf("%s: %s of %v values is %v, want %v", model, m.name, n, m.got, m.want)
		}
	}
}

// Values from an independent implementation (Python) of splitmix64, Philox4x32-10 and Box and Muller's transform.
func TestInitialValues(t *testing.T) {
	c := goldenConfig("qwen2")
	c.InitStd = 0.05
	list := c.Parameters()
	golden.Close(t, list[0].Name, c.initial(0, list[0], 7)[:4], []float32{-0.01732778549194336, 0.0290204007178545, -0.06817062199115753, -0.012802254408597946}, 1e-6)
	golden.Close(t, list[1].Name, c.initial(1, list[1], 7)[:2], []float32{-0.12177225202322006, 0.014042725786566734}, 1e-6)
}
