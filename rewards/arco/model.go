package arco

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"

	"github.com/rubicon-rl/rubicon/policy"
	"github.com/rubicon-rl/rubicon/policy/token"
)

// Names of the rubric model's adapter sets: what is trained, and the frozen copy of what it began with.
const (
	trained = "rubric"
	started = "rubric-start"
)

// Model is the rubric model mu: a causal language model with an adapter of its own that writes K criteria for a step, and a score head that
// reads the mean of the last hidden states over the step's prompt and those criteria (ARCO, sec. 3.1). The base may be the
// policy's own. It serves one goroutine at a time.
type Model struct {
	o    Options
	seed uint64
	lm   *policy.Model
	tok  *token.Tokenizer
	eos  []int32
	head *Head

	fixed []int32 // tokens of the option fixed

	params   *policy.Params
	adam     *policy.AdamW
	headAdam *headAdam
	headGrad []float32
}

// Judged is a step with what the rubric model wrote and scored.
type Judged struct {
	Step
	tokens []int32 // the prompt, then what was written
	from   int     // where that begins
	unread bool    // what was written is no rubric
	cut    bool    // the prompt was too long for the model's context
}

// newModel adds the rubric model's adapter to a base, and makes its head.
func newModel(o Options, base Base, seed uint64) (*Model, error) {
	lm := base.Model
	m := &Model{o: o, seed: seed, lm: lm, tok: base.Tokenizer, eos: base.EOS}
	var err error
	if o.Adapter != "" {
		err = lm.LoadAdapter(trained, o.Adapter)
	} else {
		err = lm.AddAdapter(trained, policy.LoRAConfig{R: o.R, Alpha: o.Alpha, Dropout: o.Dropout, TargetModules: o.TargetModules}, seed)
	}
	if err == nil {
		err = lm.CopyAdapter(started, trained)
	}
	if err == nil {
		m.params, err = lm.Params(trained)
	}
	if err == nil {
		m.adam, err = policy.NewAdamW(lm.Device(), m.params)
	}
	if err == nil {
		m.head, err = NewHead(lm.Config().Width, o.K, seed)
	}
	if err == nil && o.Criteria == fixed {
		var text string
		text, err = writeRubric(o.Fixed)
		m.fixed = m.encode(text)
	}
	if room := lm.Config().MaxPositions; err == nil && m.reserve() >= room {
		err = fmt.Errorf("criteria of %d tokens leave no room for a prompt in its context of %d: lower max_tokens", m.reserve(), room)
	}
	if err != nil {
		return nil, err
	}
	m.headAdam = newHeadAdam(len(m.head.Params))
	if o.Adapter != "" {
		err = m.loadHead(o.Adapter)
	}
	return m, err
}

func (m *Model) close() {
	if m.adam != nil {
		m.adam.Close()
	}
}

// judge writes criteria for every step of some episodes and scores the steps by them.
func (m *Model) judge(ctx context.Context, episodes []Episode) ([][]Judged, error) {
	out := make([][]Judged, len(episodes))
	for i, e := range episodes {
		for k := range e.Steps {
			ids, cut, err := m.prompt(e, k)
			if err != nil {
				return nil, fmt.Errorf("prompt %s, step %d: %w", e.ID, k+1, err)
			}
			out[i] = append(out[i], Judged{tokens: ids, from: len(ids), cut: cut})
		}
	}
	if err := m.write(ctx, out); err != nil {
		return nil, err
	}
	for i := 0; i < len(out); {
		j := m.upTo(out, i)
		if err := m.score(out[i:j]); err != nil {
			return nil, err
		}
		i = j
	}
	return out, nil
}

// upTo is the end of the run of episodes from i on whose tokens are computed together: one at least.
func (m *Model) upTo(list [][]Judged, i int) int {
	tokens, j := 0, i
	for ; j < len(list); j++ {
		for _, s := range list[j] {
			tokens += len(s.tokens)
		}
		if tokens > m.o.TokensOnce && j > i {
			break
		}
	}
	return j
}

// write has the language model write each step's criteria, the likeliest ones, unless they are fixed or left out.
func (m *Model) write(ctx context.Context, list [][]Judged) error {
	if m.o.Criteria != generated {
		m.append(list)
		return nil
	}
	var reqs []policy.Request
	for i := range list {
		for k := range list[i] {
			reqs = append(reqs, policy.Request{Prompt: list[i][k].tokens, N: 1})
		}
	}
	samples, err := m.lm.Generate(ctx, reqs, policy.GenerateOptions{Adapter: trained, SamplingParams: policy.SamplingParams{
		Temperature: 1, Greedy: true, TopP: 1, RepetitionPenalty: 1, MaxNewTokens: m.o.MaxTokens, EOS: m.eos,
	}})
	if err != nil {
		return fmt.Errorf("write criteria: %w", err)
	}
	n := 0
	for i := range list {
		for k := range list[i] {
			s := &list[i][k]
			s.tokens = append(s.tokens[:s.from:s.from], samples[n][0].Tokens...)
			var ok bool
			s.Criteria, ok = ParseRubric(m.tok.Decode(samples[n][0].Tokens, true), m.o.K)
			s.unread = !ok
			n++
		}
	}
	return nil
}

// append writes the same criteria behind all steps, or none (the ablations w/o Adaptive and w/o Rubric).
func (m *Model) append(list [][]Judged) {
	for i := range list {
		for k := range list[i] {
			s := &list[i][k]
			s.tokens = append(s.tokens[:s.from:s.from], m.fixed...)
			s.Criteria = filled(m.o.Fixed, m.o.K)
		}
	}
}

// score sets the scores of some episodes' steps.
func (m *Model) score(list [][]Judged) error {
	b := batchOf(list)
	pass, err := m.lm.Forward(b.forest, policy.ForwardOptions{Adapter: trained, Pool: b.pool})
	if err != nil {
		return fmt.Errorf("read steps: %w", err)
	}
	pooled := pass.Output.Pooled
	pass.Release()
	scores, err := m.head.Scores(b.each(pooled))
	if err != nil {
		return err
	}
	b.set(scores)
	return nil
}

// batch are steps laid out for a pass: what their sequences share is computed once.
type batch struct {
	steps  []*Judged
	forest *policy.Forest
	end    []int // the segment in which each step's sequence ends
	pool   []bool
	place  map[int]int // of a segment among the pooled vectors
}

func batchOf(list [][]Judged) *batch {
	b := &batch{place: map[int]int{}}
	var sequences [][]int32
	for i := range list {
		for k := range list[i] {
			b.steps = append(b.steps, &list[i][k])
			sequences = append(sequences, list[i][k].tokens)
		}
	}
	b.forest, b.end = policy.Share(sequences)
	nameSegments(b.forest)
	b.pool = make([]bool, len(b.forest.Segments))
	for _, s := range b.end {
		b.pool[s] = true
	}
	for s, is := range b.pool {
		if is {
			b.place[s] = len(b.place)
		}
	}
	return b
}

// nameSegments gives every segment a name that follows from its path, so that dropout's masks do not depend on what else is in the batch.
func nameSegments(f *policy.Forest) {
	for i := range f.Segments {
		s, h := &f.Segments[i], fnv.New32a()
		if s.Parent != policy.Root {
			binary.Write(h, binary.LittleEndian, f.Segments[s.Parent].ID) // a hash takes all
		}
		binary.Write(h, binary.LittleEndian, s.Tokens)
		s.ID = h.Sum32()
	}
}

// learning are the options of a pass whose gradient is wanted; its dropout is another one with every update.
func (m *Model) learning(b *batch) policy.ForwardOptions {
	return policy.ForwardOptions{
		Adapter: trained, Temperature: 1, Pool: b.pool, Grad: true, Train: true, Seed: m.seed, Step: uint64(m.headAdam.Updates),
	}
}

// each is the pooled vector of every step.
func (b *batch) each(pooled [][]float32) [][]float32 {
	out := make([][]float32, len(b.steps))
	for i, s := range b.end {
		out[i] = pooled[b.place[s]]
	}
	return out
}

// set notes scores on the steps.
func (b *batch) set(scores [][]float32) {
	for i, s := range b.steps {
		s.Scores = s.Scores[:0]
		for _, x := range scores[i] {
			s.Scores = append(s.Scores, float64(x))
		}
	}
}

var errNoSteps = errors.New("there is no step to learn from")
