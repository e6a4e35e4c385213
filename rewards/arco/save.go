package arco

import (
	"encoding/gob"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rubicon-rl/rubicon/policy"
	"github.com/rubicon-rl/rubicon/policy/safetensors"
)

// Files of a rubric model beside its PEFT adapter: the score head, and what only a resumed run needs.
const (
	headFile  = "score_head.safetensors"
	stateFile = "arco.gob"
)

// headItems are the score head's tensors, [out, in] and [out] as torch's Linear has them.
func (e *Head) items() []safetensors.Item {
	var list []safetensors.Item
	at := 0
	for l := range len(e.widths) - 1 {
		in, out := e.widths[l], e.widths[l+1]
		list = append(list,
			safetensors.Float32s(fmt.Sprintf("%d.weight", l), safetensors.F32, []int{out, in}, turned(e.Params[at:at+in*out], in, out)),
			safetensors.Float32s(fmt.Sprintf("%d.bias", l), safetensors.F32, []int{out}, e.Params[at+in*out:at+(in+1)*out]))
		at += (in + 1) * out
	}
	return list
}

// turned is the transpose of a [rows, cols] matrix.
func turned(m []float32, rows, cols int) []float32 {
	out := make([]float32, len(m))
	for r := range rows {
		for c := range cols {
			out[c*rows+r] = m[r*cols+c]
		}
	}
	return out
}

// loadHead reads the score head of a folder.
func (m *Model) loadHead(dir string) error {
	f, err := safetensors.Open(filepath.Join(dir, headFile))
	if err != nil {
		return fmt.Errorf("score head: %w", err)
	}
	defer f.Close()
	at := 0
	for l := range len(m.head.widths) - 1 {
		in, out := m.head.widths[l], m.head.widths[l+1]
		weight := make([]float32, in*out)
		if err := errors.Join(tensor32(f, fmt.Sprintf("%d.weight", l), weight),
			tensor32(f, fmt.Sprintf("%d.bias", l), m.head.Params[at+in*out:at+(in+1)*out])); err != nil {
			return fmt.Errorf("score head in %s: %w: it belongs to another base, or to another k", dir, err)
		}
		copy(m.head.Params[at:], turned(weight, out, in))
		at += (in + 1) * out
	}
	return nil
}

func tensor32(f *safetensors.File, name string, into []float32) error {
	t, ok := f.Tensor(name)
	if !ok {
		return fmt.Errorf("there is no tensor %s", name)
	}
	if t.Len() != len(into) {
		return fmt.Errorf("tensor %s has %d numbers, want %d", name, t.Len(), len(into))
	}
	return t.Float32s(into)
}

// saved is the part of a rubric model's state that has no file of its own.
type saved struct {
	Adam    policy.AdamWState
	Head    headAdam
	Pending map[uint64]pending
}

// pending is a judged episode that was not learned from yet.
type pending struct {
	Reward float64
	Steps  []written
}

// written is what the rubric model wrote for a step.
type written struct {
	Tokens   []int32
	From     int
	Criteria []string
}

// save writes the rubric model's adapter, head and optimisers. A folder that it wrote is one that the option adapter takes.
func (m *Model) save(dir string, judged map[uint64]held) error {
	s := saved{Head: *m.headAdam, Pending: map[uint64]pending{}}
	for key, h := range judged {
		e := pending{Reward: h.reward}
		for _, j := range h.steps {
			e.Steps = append(e.Steps, written{j.tokens, j.from, j.Criteria})
		}
		s.Pending[key] = e
	}
	var err error
	if s.Adam, err = m.adam.State(); err != nil {
		return err
	}
	if err := m.lm.SaveAdapter(trained, dir); err != nil {
		return err
	}
	if err := safetensors.Write(filepath.Join(dir, headFile), m.head.items(), safetensors.Options{}); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(dir, stateFile))
	if err != nil {
		return err
	}
	return errors.Join(gob.NewEncoder(f).Encode(s), f.Close())
}

// load is the inverse of save.
func (m *Model) load(dir string) (map[uint64]held, error) {
	f, err := os.Open(filepath.Join(dir, stateFile))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var s saved
	if err := gob.NewDecoder(f).Decode(&s); err != nil {
		return nil, fmt.Errorf("%s: %w", stateFile, err)
	}
	if len(s.Head.M) != len(m.head.Params) || len(s.Head.V) != len(m.head.Params) {
		return nil, fmt.Errorf("the checkpoint's score head has %d parameters, this run's %d: set k and base as in the run that made it", len(s.Head.M), len(m.head.Params))
	}
	if err := errors.Join(m.lm.RestoreAdapter(trained, dir), m.loadHead(dir), m.adam.SetState(s.Adam)); err != nil {
		return nil, err
	}
	*m.headAdam = s.Head
	judged := map[uint64]held{}
	for key, e := range s.Pending {
		h := held{reward: e.Reward}
		for _, w := range e.Steps {
			h.steps = append(h.steps, Judged{Step: Step{Criteria: w.Criteria}, tokens: w.Tokens, from: w.From})
		}
		judged[key] = h
	}
	return judged, nil
}
