package arco

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/rubicon-rl/rubicon/grpo"
)

// The loss of the rubric model and all its gradients are those of PyTorch and transformers in float64 (scripts/golden/arco_update.py).
// float32 through two layers and sums over some hundred products leaves 1e-4 of the largest.
func TestUpdateIsTorchs(t *testing.T) {
	var want struct {
		Loss, KL float64
		Scores   [][]float64
		Grad     map[string][]float64
		Norm     float64 `json:"grad_norm"`
		HeadNorm float64 `json:"head_grad_norm"`
	}
	b, err := os.ReadFile("testdata/update.json")
	check(t, err)
	check(t, json.Unmarshal(b, &want))
	p := bound(t, map[string]any{"kl": 0.3, "r": 2, "alpha": 32, "target_modules": []any{"q_proj", "v_proj"}})
	m, dev := p.model, p.model.lm.Device()
	params := make([]float32, m.params.Len)
	names := slices.Sorted(slices.Values(m.params.Names))
	for i, name := range m.params.Names {
		at, n := m.params.Offsets[i], 1
		for _, d := range m.params.Shapes[i] {
			n *= d
		}
		for j := range n {
			params[at+j] = float32(0.2 * number(j+1000*slices.Index(names, name)))
		}
	}
	check(t, m.params.Upload(dev, params))
	fillHead(m.head)
	judged, rewards := recorded()
	m.zeroGrad()
	var sum totals
	check(t, m.accumulate(judged, rewards, m.weights(rewards), 3, &sum))
	closeTo(t, "loss", float32(sum.loss/3+0.3*sum.kl/3), want.Loss, 10)
	closeTo(t, "divergence", float32(sum.kl/3), want.KL, 10)
	at := 0
	for _, steps := range judged {
		for _, s := range steps {
			for k, x := range s.Scores {
				closeTo(t, "score", float32(x), want.Scores[at][k], 1)
			}
			at++
		}
	}
	grad := make([]float32, m.params.Len)
	check(t, dev.Download(grad, m.params.Grad, 0))
	squares := 0.0
	for _, g := range grad {
		squares += float64(g) * float64(g)
	}
	if math.Abs(math.Sqrt(squares)-want.Norm) > 1e-4*want.Norm {
		t.Errorf("norm of the adapter's gradient is %v, want %v", math.Sqrt(squares), want.Norm)
	}
	for i, name := range m.params.Names {
		values, there := want.Grad[name]
		if !there {
			t.Fatalf("there is no gradient of %s", name)
		}
		for j, w := range values {
			closeTo(t, name, grad[m.params.Offsets[i]+7*j], w, 10*want.Norm)
		}
	}
	squares = 0
	for _, g := range m.headGrad {
		squares += float64(g) * float64(g)
	}
	if math.Abs(math.Sqrt(squares)-want.HeadNorm) > 1e-4*want.HeadNorm {
		t.Errorf("norm of the head's gradient is %v, want %v", math.Sqrt(squares), want.HeadNorm)
	}
}

// recorded are the script's episodes.
func recorded() (judged [][]Judged, rewards []float64) {
	ids := func(n int, f func(i int) int) []int32 {
		out := make([]int32, n)
		for i := range out {
			out[i] = int32(f(i) % 990)
		}
		return out
	}
	for e, steps := range []int{2, 1, 3} {
		shared := ids(6, func(i int) int { return 37*e + 5*i + 11 })
		judged = append(judged, nil)
		for s := range steps {
			prompt := slices.Concat(shared, ids(3+s, func(i int) int { return 91*e + 17*s + 3*i + 7 }))
			written := ids(4+e, func(i int) int { return 53*e + 29*s + 13*i + 2 })
			judged[e] = append(judged[e], Judged{tokens: slices.Concat(prompt, written), from: len(prompt)})
		}
	}
	return judged, []float64{1, 0, 0}
}

// A gradient that is not finite moves neither adapter nor head, is counted, and its episodes are not learned from later.
func TestGradientThatIsNotFinite(t *testing.T) {
	p := bound(t, nil)
	groups := played()
	_, err := p.Score(t.Context(), 0, groups)
	check(t, err)
	for key, h := range p.judged {
		h.reward = math.Inf(1)
		p.judged[key] = h
	}
	head, adam := slices.Clone(p.model.head.Params), p.model.headAdam.Updates
	before, err := p.model.params.Download(p.model.lm.Device())
	check(t, err)
	check(t, p.Learn(t.Context(), 0, groups))
	after, err := p.model.params.Download(p.model.lm.Device())
	check(t, err)
	if !slices.Equal(before, after) || !slices.Equal(head, p.model.head.Params) || adam != p.model.headAdam.Updates {
		t.Error("the rubric model has moved")
	}
	if len(p.judged) != 0 || p.Metrics()["arco/skipped"] != 1 {
		t.Errorf("%d episodes are held, skipped %v", len(p.judged), p.Metrics()["arco/skipped"])
	}
	_, err = p.Score(t.Context(), 1, groups)
	check(t, err)
	check(t, p.Learn(t.Context(), 1, groups))
	if m := p.Metrics(); m["arco/skipped"] != 0 || math.IsNaN(m["arco/loss"]) || p.model.headAdam.Updates != adam+1 {
		t.Errorf("the next update: %v", m)
	}
}

// With dropout an update differs from that without, is another one at the next update, and is the same again where the count of updates is.
func TestDropout(t *testing.T) {
	loss := func(settings map[string]any, updates int) float64 {
		p := bound(t, settings)
		m := p.model
		params := make([]float32, m.params.Len)
		for i := range params {
			params[i] = float32(0.3 * number(i))
		}
		check(t, m.params.Upload(m.lm.Device(), params))
		fillHead(m.head)
		m.headAdam.Updates = updates
		judged, rewards := recorded()
		m.zeroGrad()
		var sum totals
		check(t, m.accumulate(judged, rewards, m.weights(rewards), 3, &sum))
		return sum.loss
	}
	half := map[string]any{"dropout": 0.5}
	if a, b, c := loss(half, 0), loss(nil, 0), loss(half, 1); a == b || a == c || a != loss(half, 0) {
		t.Errorf("losses %v with dropout, %v without, %v at the next update", a, b, c)
	}
}

// An episode that its environment lost is no failure of the policy: it is not scored, and not learned from.
func TestLostEpisode(t *testing.T) {
	p := bound(t, nil)
	groups := played()
	groups[0].Completions[0].Episode.Lost = "gone"
	scores, err := p.Score(t.Context(), 0, groups)
	check(t, err)
	if !scores[0].Unscorable || scores[0].Reason != "gone" || scores[1].Unscorable || len(p.judged) != 3 {
		t.Errorf("scores %+v, %d episodes to learn from", scores[:2], len(p.judged))
	}
}

// The AUC of one right and one wrong step is 1, 0 or a half, by the order of their scores; the other steps are not known.
func TestStepAUC(t *testing.T) {
	p := bound(t, nil)
	groups := played()
	steps := groups[0].Completions[1].Episode.Steps
	steps[0].Verdict, steps[2].Verdict = grpo.Right, grpo.Wrong
	scores, err := p.Score(t.Context(), 0, groups)
	check(t, err)
	want := 0.5
	switch turns := scores[1].Turns; {
	case turns[0] > turns[2]:
		want = 1
	case turns[0] < turns[2]:
		want = 0
	}
	if got, there := p.Metrics()["arco/step_auc"]; !there || got != want {
		t.Errorf("AUC %v, want %v", got, want)
	}
}
