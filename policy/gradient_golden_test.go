package policy

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/internal/golden"
)

// trainBatch is a batch in TRL's layout: prompts and completions, as a forest of one root and one child per row in which
// the completions are scored.
func trainBatch(g map[string]golden.Tensor) *Forest {
	prompts, _ := unpad(g["prompt_ids"], g["prompt_mask"])
	completions, _ := unpad(g["completion_ids"], g["completion_mask"])
	f := &Forest{}
	for i := range prompts {
		f.Segments = append(f.Segments,
			Segment{Parent: Root, Tokens: prompts[i]},
			Segment{Parent: 2 * i, Tokens: completions[i], Score: scoreFrom(len(completions[i]), 0)})
	}
	return f
}

// valid takes the values of a [B,C] tensor at the completions' tokens.
func valid(g map[string]golden.Tensor, name string) []float32 {
	_, cols := unpad(g["completion_ids"], g["completion_mask"])
	return pickRows(g[name], cols)
}

// meanLoss is the gradient of the mean negative log-probability in n of them, and its value.
func meanLoss(logp []float32) (loss float64, grad []float32) {
	for _, x := range logp {
		loss -= float64(x) / float64(len(logp))
		grad = append(grad, -1/float32(len(logp)))
	}
	return loss, grad
}

// checkGradients compares a set's gradients with the golden ones, tensor by tensor, in relative L2.
func checkGradients(t *testing.T, m *Model, p *Params, want func(name string) []float32, tol float64) {
	t.Helper()
	grad := make([]float32, p.Len)
	must(t, m.dev.Download(grad, p.Grad, 0))
	worst := 0.0
	for i, name := range p.Names {
		w := want(name)
		got := grad[p.Offsets[i]:][:elements(p.Shapes[i])]
		if len(w) != len(got) {
			t.Fatalf("%s: golden gradient of %d elements, want %d", name, len(w), len(got))
		}
		d := relativeL2(got, w)
		worst = max(worst, d)
		if !(d <= tol) {
			t.Errorf("gradient of %s: relative error %.3g, allowed %.3g", name, d, tol)
		}
	}
	t.Logf("%d gradients: worst relative L2 error %.2g", len(p.Names), worst)
}

// relativeL2 is |got-want| / |want|.
func relativeL2(got, want []float32) float64 {
	var diff, norm float64
	for i := range want {
		d := float64(got[i]) - float64(want[i])
		diff += d * d
		norm += float64(want[i]) * float64(want[i])
	}
	if norm == 0 {
		return math.Sqrt(diff)
	}
	return math.Sqrt(diff / norm)
}

// PEFT's adapters give its logits, switched on and off, its log-probabilities and its gradients.
func TestLoRAGolden(t *testing.T) {
	for _, v := range []struct{ variant, model string }{
		{"qwen2-all-plain", "qwen2"}, {"qwen2-qv-rslora", "qwen2"}, {"qwen2-untied-all-plain", "qwen2-untied"},
		{"llama3-qv-plain", "llama3"}, {"smollm-all-rslora", "smollm"},
	} {
		t.Run(v.variant, func(t *testing.T) {
			onDevices(t, func(t *testing.T, dev device.Device) {
				m, g := loadTiny(t, dev, v.model, LoadOptions{}), tensors(t, "lora", v.variant)
				adapter := golden.Path("lora", v.variant, "adapter")
				must(t, m.LoadAdapter("policy", adapter))
				merged := filepath.Join(t.TempDir(), "merged")
				must(t, ExportMerged(golden.Path("models", v.model), adapter, merged, ExportOptions{}))
				checkLoRALogits(t, m, load(t, dev, merged, LoadOptions{}), g)
				checkLoRAGradients(t, m, g)
			})
		})
	}
}

func checkLoRALogits(t *testing.T, m, merged *Model, g map[string]golden.Tensor) {
	t.Helper()
	ids, mask := joined(g["prompt_ids"], g["completion_ids"]), joined(g["prompt_mask"], g["completion_mask"])
	rows, cols := unpad(ids, mask)
	golden.Close(t, "logits, adapter on", m.testLogits(t, roots(rows), "policy"), pickRows(g["logits_on"], cols), 5e-5)
	golden.Close(t, "logits, merged", merged.testLogits(t, roots(rows), ""), pickRows(g["logits_merged"], cols), 5e-5)
	golden.Close(t, "logits, adapter off", m.testLogits(t, roots(rows), ""), pickRows(g["logits_off"], cols), 5e-5)
}

func checkLoRAGradients(t *testing.T, m *Model, g map[string]golden.Tensor) {
	t.Helper()
	off, err := m.Forward(trainBatch(g), ForwardOptions{Temperature: 1, Entropy: true})
	must(t, err)
	golden.Close(t, "reference logp", off.Output.LogP, valid(g, "ref_per_token_logps"), 2e-5)
	golden.Close(t, "reference entropy", off.Output.Entropy, valid(g, "ref_entropy"), 2e-5)
	off.Release()

	p, err := m.Forward(trainBatch(g), ForwardOptions{Adapter: "policy", Temperature: 1, Grad: true})
	must(t, err)
	golden.Close(t, "logp", p.Output.LogP, valid(g, "per_token_logps_on"), 2e-5)
	loss, grad := meanLoss(p.Output.LogP)
	golden.Close(t, "loss", []float32{float32(loss)}, g["ce.loss"].Float, 1e-5)
	must(t, p.Backward(Gradients{LogP: grad}))
	set, err := m.Params("policy")
	must(t, err)
	checkGradients(t, m, set, func(name string) []float32 {
		return g["ce.grad."+strings.TrimPrefix(name, "base_model.model.")].Float
	}, 1e-4)
}

// joined puts two [B,*] integer tensors side by side.
func joined(a, b golden.Tensor) golden.Tensor {
	rows, na, nb := a.Shape[0], a.Shape[1], b.Shape[1]
	out := golden.Tensor{Shape: []int{rows, na + nb}}
	for r := range rows {
		out.Int = append(out.Int, a.Int[r*na:(r+1)*na]...)
		out.Int = append(out.Int, b.Int[r*nb:(r+1)*nb]...)
	}
	return out
}

// The gradients of all weights are torch's.
func TestFullGradientGolden(t *testing.T) {
	for _, name := range []string{"qwen2", "qwen3", "llama3", "smollm"} {
		t.Run(name, func(t *testing.T) {
			onDevices(t, func(t *testing.T, dev device.Device) {
				m, g := loadTiny(t, dev, name, LoadOptions{Train: "full"}), tensors(t, "fullgrad", name)
				p, err := m.Forward(trainBatch(g), ForwardOptions{Temperature: 1, Entropy: true, Grad: true})
				must(t, err)
				golden.Close(t, "logp", p.Output.LogP, valid(g, "per_token_logps"), 2e-5)
				golden.Close(t, "entropy", p.Output.Entropy, valid(g, "entropy"), 2e-5)
				loss, grad := meanLoss(p.Output.LogP)
				golden.Close(t, "loss", []float32{float32(loss)}, g["ce.loss"].Float, 1e-5)
				must(t, p.Backward(Gradients{LogP: grad}))
				set, err := m.Params(FullSet)
				must(t, err)
				checkGradients(t, m, set, func(name string) []float32 { return g["ce.grad."+name].Float }, 1e-4)
			})
		})
	}
}
