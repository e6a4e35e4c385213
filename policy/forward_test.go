package policy

import (
	"fmt"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/internal/golden"
)

var tinyModels = []string{"qwen2", "qwen2-untied", "qwen3", "llama3", "smollm"}

// Logits, hidden states, log-probabilities and entropies are those of transformers, for batches that it pads on the left
// or on the right and that have no padding here.
func TestForwardGolden(t *testing.T) {
	for _, name := range tinyModels {
		t.Run(name, func(t *testing.T) {
			onDevices(t, func(t *testing.T, dev device.Device) { checkForwardGolden(t, dev, name) })
		})
	}
}

func checkForwardGolden(t *testing.T, dev device.Device, name string) {
	m, g := loadTiny(t, dev, name, LoadOptions{}), tensors(t, "forward", name)
	left, leftCols := unpad(g["left.input_ids"], g["left.attention_mask"])
	right, rightCols := unpad(g["right.input_ids"], g["right.attention_mask"])

	golden.Close(t, "logits, left", m.testLogits(t, roots(left), ""), pickRows(g["left.logits"], leftCols), 5e-5)
	worst := golden.Close(t, "logits, float64", m.testLogits(t, roots(right), ""), g["packed.logits_f64compute"].Float, 3e-5)
	t.Logf("logits against float64: %.2g", worst)

	states, err := m.states(roots(right), "")
	must(t, err)
	for i, got := range states {
		golden.Close(t, fmt.Sprintf("hidden %d", i), got, pickRows(g[fmt.Sprintf("right.hidden.%d", i)], rightCols), 2e-5)
	}
	for _, temp := range []float32{1, 0.7} {
		p, err := m.Forward(roots(left), ForwardOptions{Temperature: temp, Entropy: true})
		must(t, err)
		logp := g[fmt.Sprintf("left.logps_T%.1f", temp)]
		entropy := g[fmt.Sprintf("left.entropy_T%.1f", temp)]
		var targets [][]int // the golden column of a token is that of its context
		for _, cols := range leftCols {
			targets = append(targets, cols[:len(cols)-1])
		}
		golden.Close(t, fmt.Sprintf("logp at %g", temp), p.Output.LogP, pickRows(logp, targets), 2e-5)
		golden.Close(t, fmt.Sprintf("entropy at %g", temp), p.Output.Entropy, pickRows(entropy, targets), 2e-5)
		p.Release()
	}
}

// pickRows takes the given columns of each row of a [B,T] or [B,T,N] tensor.
func pickRows(g golden.Tensor, cols [][]int) []float32 {
	n := 1
	for _, d := range g.Shape[2:] {
		n *= d
	}
	var out []float32
	for r, at := range cols {
		for _, c := range at {
			i := (r*g.Shape[1] + c) * n
			out = append(out, g.Float[i:i+n]...)
		}
	}
	return out
}
