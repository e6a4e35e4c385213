package arco

import (
	"errors"
	"fmt"
	"math"

	"github.com/rubicon-rl/rubicon/policy"
)

// learn makes one update of the rubric model on judged episodes: the squared difference between the sum of each episode's step scores and its
// reward, with class balance, and the divergence of the criteria from what the model would have written at the start
// (ARCO, eq. 6). It returns metrics.
func (m *Model) learn(list [][]Judged, rewards []float64) (map[string]float64, error) {
	m.zeroGrad()
	weights := m.weights(rewards)
	var t totals
	for i := 0; i < len(list); {
		j := m.upTo(list, i)
		if err := m.accumulate(list[i:j], rewards[i:j], weights[i:j], float64(len(list)), &t); err != nil {
			return nil, err
		}
		i = j
	}
	if t.steps == 0 {
		return nil, errNoSteps
	}
	norm, headNorm, err := m.step()
	return map[string]float64{
		"loss": t.loss / float64(len(list)), "kl": t.kl / t.steps, "grad_norm": norm, "head_grad_norm": headNorm,
	}, err
}

// zeroGrad makes room for the gradients of a batch.
func (m *Model) zeroGrad() {
	if m.params.Grad != nil { // else the first pass makes it
		m.params.ZeroGrad(m.lm.Device())
	}
	m.headGrad = make([]float32, len(m.head.Params))
}

// totals are sums over a batch.
type totals struct{ loss, kl, steps float64 }

// weights are those of the episodes: n/(2 n_pos) for successes and n/(2 n_neg) for the others, or 1.
func (m *Model) weights(rewards []float64) []float64 {
	out := make([]float64, len(rewards))
	n, positive := float64(len(rewards)), 0.0
	for _, r := range rewards {
		if r > 0.5 {
			positive++
		}
	}
	for i, r := range rewards {
		switch {
		case !m.o.ClassBalance:
			out[i] = 1
		case r > 0.5:
			out[i] = n / (2 * positive)
		default:
			out[i] = n / (2 * (n - positive))
		}
	}
	return out
}

// accumulate adds the gradients of some episodes, of n in all.
func (m *Model) accumulate(list [][]Judged, rewards, weights []float64, n float64, t *totals) error {
	b := batchOf(list)
	if len(b.steps) == 0 {
		return nil
	}
	written := b.written()
	o := m.learning(b)
	o.KL, o.HasKL = started, m.o.KL > 0 && m.o.Criteria == generated
	pass, err := m.lm.Forward(b.forest, o)
	if err != nil {
		return fmt.Errorf("learn from steps: %w", err)
	}
	pooled := b.each(pass.Output.Pooled)
	scores, err := m.head.Scores(pooled)
	if err != nil {
		pass.Release()
		return err
	}
	b.set(scores)
	slopes := m.slopes(list, rewards, weights, n, t)
	_, dx, grad, err := m.head.Backward(pooled, slopes)
	if err != nil {
		pass.Release()
		return err
	}
	for i, g := range grad {
		m.headGrad[i] += g
	}
	g := policy.Gradients{Pooled: b.gather(dx, len(pass.Output.Pooled), m.lm.Config().Width)}
	if pass.Output.KL != nil {
		g.KL = make([]float32, len(pass.Output.KL))
		for _, tokens := range written {
			for _, at := range tokens {
				g.KL[at] += float32(m.o.KL / n / float64(len(tokens)))
				t.kl += float64(pass.Output.KL[at]) / float64(len(tokens))
			}
		}
	}
	t.steps += float64(len(b.steps))
	return pass.Backward(g)
}

// slopes are the gradients of the loss in the scores of every step, in order; the loss is the mean over n episodes.
func (m *Model) slopes(list [][]Judged, rewards, weights []float64, n float64, t *totals) [][]float32 {
	var out [][]float32
	for i, steps := range list {
		miss := -rewards[i]
		for _, s := range steps {
			miss += s.Score()
		}
		t.loss += weights[i] * miss * miss
		for range steps {
			row := make([]float32, m.o.K)
			for k := range row {
				row[k] = float32(2 * weights[i] * miss / n / float64(m.o.K))
			}
			out = append(out, row)
		}
	}
	return out
}

// written marks the tokens of criteria for scoring, and lists where each step's come among the scored tokens.
func (b *batch) written() [][]int {
	starts := make([]int, len(b.forest.Segments)) // of a segment in its path
	for s := range b.forest.Segments {
		if p := b.forest.Segments[s].Parent; p != policy.Root {
			starts[s] = starts[p] + len(b.forest.Segments[p].Tokens)
		}
		b.forest.Segments[s].Score = make([]bool, len(b.forest.Segments[s].Tokens))
	}
	each := func(i int, use func(segment, token int)) {
		for _, s := range b.forest.Path(b.end[i]) {
			for at := range b.forest.Segments[s].Tokens {
				if starts[s]+at >= b.steps[i].from {
					use(s, at)
				}
			}
		}
	}
	for i := range b.steps {
		each(i, func(s, at int) { b.forest.Segments[s].Score[at] = true })
	}
	place, n := map[[2]int]int{}, 0
	for s := range b.forest.Segments {
		for at, is := range b.forest.Segments[s].Score {
			if is {
				place[[2]int{s, at}] = n
				n++
			}
		}
	}
	out := make([][]int, len(b.steps))
	for i := range b.steps {
		each(i, func(s, at int) { out[i] = append(out[i], place[[2]int{s, at}]) })
	}
	return out
}

// gather sums the gradients of every step's vector over the steps that share it.
func (b *batch) gather(dx [][]float32, n, width int) [][]float32 {
	out := make([][]float32, n)
	for i := range out {
		out[i] = make([]float32, width)
	}
	for i, s := range b.end {
		sum := out[b.place[s]]
		for c, v := range dx[i] {
			sum[c] += v
		}
	}
	return out
}

// step makes the update of adapter and head, each with its own rate and bound of the gradient.
func (m *Model) step() (norm, headNorm float64, err error) {
	dev := m.lm.Device()
	norm = math.Sqrt(m.params.GradSquares(dev))
	for _, g := range m.headGrad {
		headNorm += float64(g) * float64(g)
	}
	headNorm = math.Sqrt(headNorm)
	if math.IsNaN(norm+headNorm) || math.IsInf(norm+headNorm, 0) {
		return norm, headNorm, errNotFinite
	}
	o := policy.AdamWOptions{Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, WeightDecay: m.o.WeightDecay}
	if err := m.adam.Step(m.params, m.o.LearningRate, o, m.bound(norm)); err != nil {
		return norm, headNorm, err
	}
	m.headAdam.step(m.head.Params, m.headGrad, m.o.HeadLearningRate, o, m.bound(headNorm))
	return norm, headNorm, dev.Err()
}

var errNotFinite = errors.New("the rubric model's gradient is not finite: lower learning_rate or head_learning_rate")

// bound is what a gradient of a norm is multiplied by, as torch's clip_grad_norm_ does.
func (m *Model) bound(norm float64) float64 {
	if m.o.MaxGradNorm == 0 {
		return 1
	}
	return math.Min(1, m.o.MaxGradNorm/(norm+1e-6))
}
