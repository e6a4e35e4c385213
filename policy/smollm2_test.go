//go:build slow

package policy

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/golden"
)

// openSmolLM2 loads SmolLM2-135M-Instruct, as float32, from the folder that RUBICON_TEST_SMOLLM2 names.
func openSmolLM2(t *testing.T) *Model {
	t.Helper()
	dir := os.Getenv("RUBICON_TEST_SMOLLM2")
	if dir == "" {
		t.Fatal("set RUBICON_TEST_SMOLLM2 to a folder with SmolLM2-135M-Instruct as float32")
	}
	return load(t, openCPU(t), dir, LoadOptions{})
}

func readReal(t *testing.T, name string, to any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "golden", "real", name))
	must(t, err)
	must(t, json.Unmarshal(text, to))
}

// SmolLM2's log-probabilities, logits, hidden states and greedy tokens are transformers'.
func TestSmolLM2Forward(t *testing.T) {
	m := openSmolLM2(t)
	var file struct {
		Float32 []struct {
			IDs         []int32   `json:"ids"`
			LogP        []float32 `json:"token_logprobs"`
			Top         []int     `json:"last_top20_ids"`
			TopLogits   []float32 `json:"last_top20_logits"`
			Sum         float64   `json:"last_logits_sum"`
			Entropy     []float32 `json:"entropy"`
			Hidden0     []float32 `json:"hidden0_last8"`
			Hidden1     []float32 `json:"hidden1_last8"`
			HiddenFinal []float32 `json:"final_hidden_last8"`
			Greedy      []int32   `json:"greedy40"`
		}
	}
	readReal(t, "smollm2_forward.json", &file)
	for i, g := range file.Float32 {
		f := roots([][]int32{g.IDs})
		out := forward(t, m, f, ForwardOptions{Temperature: 1, Entropy: true})
		d := golden.Close(t, "logp", out.LogP, g.LogP, 1e-4)
		golden.Close(t, "entropy", out.Entropy, g.Entropy[:len(out.Entropy)], 1e-4)

		logits := m.testLogits(t, f, "")
		last := logits[len(logits)-m.cfg.Vocab:]
		var top []float32
		sum := 0.0
		for _, id := range g.Top {
			top = append(top, last[id])
		}
		for _, x := range last {
			sum += float64(x)
		}
		dTop := golden.Close(t, "top 20 logits", top, g.TopLogits, 5e-4)
		if math.Abs(sum-g.Sum) > 5e-4*float64(m.cfg.Vocab) {
			t.Errorf("sum of logits %v, want %v", sum, g.Sum)
		}
		states, err := m.states(f, "")
		must(t, err)
		for at, want := range map[int][]float32{0: g.Hidden0, 1: g.Hidden1, len(states) - 1: g.HiddenFinal} {
			x := states[at]
			golden.Close(t, fmt.Sprintf("hidden %d", at), x[len(x)-m.cfg.Width:][:8], want, 5e-4)
		}
		got := generate(t, m, once([][]int32{g.IDs}), GenerateOptions{SamplingParams: greedy(40)})[0][0].Tokens
		checkTokens(t, fmt.Sprintf("greedy, prompt %d", i), got[:len(g.Greedy)], g.Greedy)
		t.Logf("prompt %d: logp within %.2g, top logits within %.2g", i, d, dTop)
	}
}

// SmolLM2's gradients in an adapter on q and v of three layers are torch's.
func TestSmolLM2LoRAGradients(t *testing.T) {
	m := openSmolLM2(t)
	var file struct {
		Layers     []int     `json:"layers"`
		Prompt     []int32   `json:"prompt_ids"`
		Completion []int32   `json:"completion_ids"`
		LogP       []float32 `json:"completion_logprobs"`
		Loss       float64   `json:"loss"`
		Grads      map[string]struct {
			Norm, Sum float64
			First6    []float64
		}
	}
	readReal(t, "smollm2_lora_grad.json", &file)
	must(t, m.AddAdapter("policy", LoRAConfig{
		R: 8, Alpha: 16, TargetModules: []string{"q_proj", "v_proj"}, LayersToTransform: file.Layers,
	}, 0))
	set, err := m.Params("policy")
	must(t, err)
	v := make([]float32, set.Len)
	for i, name := range set.Names {
		var layer int
		_, err := fmt.Sscanf(name, "base_model.model.model.layers.%d.", &layer)
		must(t, err)
		seed, wave, rate := float64(layer), math.Sin, 0.37
		if strings.Contains(name, "v_proj") {
			seed += 0.5
		}
		if strings.Contains(name, "lora_B") {
			wave, rate = math.Cos, 0.53
		}
		for k := range elements(set.Shapes[i]) {
			v[set.Offsets[i]+k] = float32(0.02 * wave(rate*float64(k)+seed))
		}
	}
	must(t, set.Upload(m.dev, v))
	n := len(file.Completion)
	f := &Forest{Segments: []Segment{{Parent: Root, Tokens: file.Prompt}, {Parent: 0, Tokens: file.Completion, Score: scoreFrom(n, 0)}}}
	p, err := m.Forward(f, ForwardOptions{Adapter: "policy", Temperature: 1, Grad: true})
	must(t, err)
	golden.Close(t, "logp", p.Output.LogP, file.LogP, 1e-4)
	loss, grad := meanLoss(p.Output.LogP)
	if math.Abs(loss-file.Loss) > 1e-4 {
		t.Errorf("loss %v, want %v", loss, file.Loss)
	}
	must(t, p.Backward(Gradients{LogP: grad}))
	all := make([]float32, set.Len)
	must(t, m.dev.Download(all, set.Grad, 0))
	worst := 0.0
	for i, name := range set.Names {
		short := strings.TrimSuffix(strings.TrimPrefix(name, "base_model.model.model."), ".weight")
		want, ok := file.Grads[strings.NewReplacer("self_attn.", "", "lora_", "").Replace(short)]
		if !ok {
			t.Fatalf("no golden gradient of %s", name)
		}
		got := all[set.Offsets[i]:][:elements(set.Shapes[i])]
		var norm, sum float64
		for _, x := range got {
			norm += float64(x) * float64(x)
			sum += float64(x)
		}
		norm = math.Sqrt(norm)
		for _, c := range append([][2]float64{{norm, want.Norm}, {sum, want.Sum}}, pairs(got, want.First6)...) {
			d := math.Abs(c[0]-c[1]) / want.Norm
			worst = max(worst, d)
			if !(d < 1e-3) {
				t.Errorf("%s: %v, want %v (norm %v)", name, c[0], c[1], want.Norm)
			}
		}
	}
	t.Logf("worst difference relative to the norm %.2g", worst)
}

func pairs(got []float32, want []float64) [][2]float64 {
	var list [][2]float64
	for i := range want {
		list = append(list, [2]float64{float64(got[i]), want[i]})
	}
	return list
}
