package arco

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/rubicon-rl/rubicon/policy"
)

// Annotated is an episode whose steps a teacher has annotated.
type Annotated struct {
	Episode
	Marks []Step // of each step: K criteria, and their scores
}

// Warming says how a rubric model is warmed up.
type Warming struct {
	Batch int                    // steps of an update
	Total int                    // updates
	Rate  func(step int) float64 // of the adapter, as a share of the option learning_rate; the head's moves alike
	Seed  uint64
	Told  func(step int, metrics map[string]float64) // is called after every update
}

// scoreWeight is the weight of the scores' squared error beside the language model's loss (public code).
const scoreWeight = 10

// Warm teaches the rubric model from annotated episodes, a step at a time in an order drawn anew in every pass: to write the criteria, and to
// score by them as the teacher did, once its scores are projected onto the episode's reward (ARCO, app. A.1).
func (p *Provider) Warm(ctx context.Context, list []Annotated, w Warming) error {
	if p.model == nil {
		return errUnbound
	}
	m := p.model
	examples, err := m.examples(list)
	if err != nil {
		return fmt.Errorf("arco: %w", err)
	}
	random := rand.New(rand.NewPCG(w.Seed, 1))
	var order []int
	rate, headRate := m.o.LearningRate, m.o.HeadLearningRate
	defer func() { m.o.LearningRate, m.o.HeadLearningRate = rate, headRate }()
	for step := range w.Total {
		if err := ctx.Err(); err != nil {
			return err
		}
		var batch []example
		for len(batch) < min(w.Batch, len(examples)) {
			if len(order) == 0 {
				order = random.Perm(len(examples))
			}
			batch, order = append(batch, examples[order[0]]), order[1:]
		}
		m.o.LearningRate, m.o.HeadLearningRate = rate*w.Rate(step), headRate*w.Rate(step)
		metrics, err := m.teach(batch)
		if err != nil {
			return fmt.Errorf("arco: update %d: %w", step+1, err)
		}
		w.Told(step+1, metrics)
	}
	return nil
}

// SaveModel writes the rubric model as a folder that the option adapter takes.
func (p *Provider) SaveModel(dir string) error {
	if p.model == nil {
		return errUnbound
	}
	return p.model.save(dir, nil)
}

// example is a step with what a teacher says of it.
type example struct {
	judged Judged
	scores []float64
}

// examples are the steps of episodes.
func (m *Model) examples(list []Annotated) ([]example, error) {
	if len(m.eos) == 0 {
		return nil, errors.New("the base names no end token, with which criteria end")
	}
	var out []example
	for _, e := range list {
		if len(e.Marks) != len(e.Steps) {
			return nil, fmt.Errorf("episode %s has %d steps, but annotations of %d", e.ID, len(e.Steps), len(e.Marks))
		}
		scores := make([][]float64, len(e.Marks))
		for k, mark := range e.Marks {
			if c := len(mark.Criteria); len(mark.Scores) != m.o.K || c != m.o.K && m.o.Criteria == generated {
				return nil, fmt.Errorf("episode %s, step %d has %d criteria and %d scores, but k is %d: set k to their number, or annotate with as many", e.ID, k+1, c, len(mark.Scores), m.o.K)
			}
			scores[k] = mark.Scores
		}
		for k, projected := range Project(scores, m.o.K, e.Reward) {
			ids, _, err := m.prompt(e.Episode, k)
			if err != nil {
				return nil, fmt.Errorf("episode %s, step %d: %w", e.ID, k+1, err)
			}
			j := Judged{tokens: ids, from: len(ids), Step: Step{Criteria: filled(e.Marks[k].Criteria, m.o.K)}}
			switch m.o.Criteria {
			case fixed: // it reads them, and need not learn to write them
				j.tokens = append(ids[:len(ids):len(ids)], m.fixed...)
				j.from, j.Criteria = len(j.tokens), filled(m.o.Fixed, m.o.K)
			case generated:
				text, err := writeRubric(j.Criteria)
				if err != nil {
					return nil, err
				}
				j.tokens = append(append(ids[:len(ids):len(ids)], m.encode(text)...), m.eos[0])
				if over := len(j.tokens) - m.lm.Config().MaxPositions; over >= j.from {
					return nil, fmt.Errorf("episode %s, step %d: the criteria alone have more tokens than the model's context", e.ID, k+1)
				} else if over > 0 {
					j.tokens, j.from = j.tokens[over:], j.from-over
				}
			}
			out = append(out, example{j, projected})
		}
	}
	if len(out) == 0 {
		return nil, errNoSteps
	}
	return out, nil
}

// teach makes an update on a batch of examples. The loss is the mean over the criteria's tokens of the cross-entropy, and scoreWeight times the
// mean squared error of the scores.
func (m *Model) teach(list []example) (map[string]float64, error) {
	m.zeroGrad()
	tokens := 0
	for _, e := range list {
		tokens += len(e.judged.tokens) - e.judged.from
	}
	var t taught
	for i := 0; i < len(list); {
		j, length := i, 0
		for ; j < len(list) && (j == i || length+len(list[j].judged.tokens) <= m.o.TokensOnce); j++ {
			length += len(list[j].judged.tokens)
		}
		if err := m.teachSome(list[i:j], len(list), tokens, &t); err != nil {
			return nil, err
		}
		i = j
	}
	norm, headNorm, err := m.step()
	lm, mse := t.nll/math.Max(1, float64(tokens)), t.squares/float64(len(list))
	return map[string]float64{"loss": lm + scoreWeight*mse, "lm": lm, "mse": mse, "grad_norm": norm, "head_grad_norm": headNorm}, err
}

// taught are sums over a batch: negative log-likelihoods of tokens, mean squared errors of steps.
type taught struct{ nll, squares float64 }

// teachSome adds the gradients of some examples, of n with so many tokens of criteria in all.
func (m *Model) teachSome(list []example, n, tokens int, t *taught) error {
	steps := make([]Judged, len(list))
	for i, e := range list {
		steps[i] = e.judged
	}
	b := batchOf([][]Judged{steps})
	written := b.written()
	pass, err := m.lm.Forward(b.forest, m.learning(b))
	if err != nil {
		return err
	}
	pooled := b.each(pass.Output.Pooled)
	scores, err := m.head.Scores(pooled)
	if err != nil {
		pass.Release()
		return err
	}
	slopes := make([][]float32, len(list))
	for i, row := range scores {
		slopes[i] = make([]float32, len(row))
		for k, s := range row {
			miss := float64(s) - list[i].scores[k]
			t.squares += miss * miss / float64(m.o.K)
			slopes[i][k] = float32(scoreWeight * 2 * miss / float64(m.o.K) / float64(n))
		}
	}
	_, dx, grad, err := m.head.Backward(pooled, slopes)
	if err != nil {
		pass.Release()
		return err
	}
	for i, g := range grad {
		m.headGrad[i] += g
	}
	g := policy.Gradients{Pooled: b.gather(dx, len(pass.Output.Pooled), m.lm.Config().Width)}
	if len(pass.Output.LogP) > 0 {
		g.LogP = make([]float32, len(pass.Output.LogP))
	}
	for _, places := range written {
		for _, at := range places {
			t.nll -= float64(pass.Output.LogP[at])
			g.LogP[at] -= float32(1 / float64(tokens))
		}
	}
	return pass.Backward(g)
}
