package grpo

import "fmt"

// Row is one completion as the objective sees it.
type Row struct {
	Prompt     *Prompt
	Completion *Completion
	Mask       []bool // tokens that are trained on; nil: all
}

// Own is the number of tokens of r that are trained on.
func (r Row) Own() int {
	if r.Mask == nil {
		return len(r.Completion.Tokens)
	}
	n := 0
	for _, m := range r.Mask {
		if m {
			n++
		}
	}
	return n
}

// Rows flattens groups, group by group.
func Rows(cfg Config, groups []Group) []Row {
	var rows []Row
	for _, g := range groups {
		for _, c := range g.Completions {
			rows = append(rows, Row{Prompt: g.Prompt, Completion: c, Mask: LossMask(cfg, c)})
		}
	}
	return rows
}

// NumItems is the number of loss tokens of rows: this process's part of Inputs.NumItems.
func NumItems(rows []Row) int {
	n := 0
	for _, r := range rows {
		n += r.Own()
	}
	return n
}

// Split shuffles the rows of a generation batch and cuts them into steps micro-batches whose sizes differ by at most
// one. Row i of the result is rows[perm[i]]; perm comes from the run's random stream, so that the split can be replayed.
func Split(rows []Row, steps int, perm []int) ([][]Row, error) {
	if steps < 1 || len(perm) != len(rows) {
		return nil, fmt.Errorf("cannot split %d rows into %d micro-batches by a permutation of %d", len(rows), steps, len(perm))
	}
	seen := make([]bool, len(rows))
	shuffled := make([]Row, len(rows))
	for i, from := range perm {
		if from < 0 || from >= len(rows) || seen[from] {
			return nil, fmt.Errorf("%v is not a permutation of %d rows", perm, len(rows))
		}
		seen[from] = true
		shuffled[i] = rows[from]
	}
	out := make([][]Row, steps)
	for k := range out {
		out[k] = shuffled[k*len(rows)/steps : (k+1)*len(rows)/steps]
	}
	return out, nil
}

// Pack lays the rows of a micro-batch out flat. What it cannot know is left for the caller to set: LogP, Entropy,
// NumItems and the batch arithmetic. Old and Ref are taken if every completion has them. sampled says that LogP comes
// from an engine whose numbers differ from the trainer's; it becomes Inputs.Sampling.
func Pack(rows []Row, sampled bool) (Inputs, error) {
	in := Inputs{}
	var old, ref, sampling flat
	turns := false
	for _, r := range rows {
		turns = turns || r.Completion.Turns != nil
	}
	for i, r := range rows {
		c := r.Completion
		n := len(c.Tokens)
		if r.Mask != nil && len(r.Mask) != n {
			return Inputs{}, fmt.Errorf("row %d has %d tokens and a mask of %d", i, n, len(r.Mask))
		}
		in.Rows = append(in.Rows, n)
		in.Advantages = append(in.Advantages, c.Advantage)
		for t := range n {
			in.Mask = append(in.Mask, r.Mask == nil || r.Mask[t])
		}
		if turns {
			perToken, err := c.tokenAdvantages()
			if err != nil {
				return Inputs{}, fmt.Errorf("row %d: %w", i, err)
			}
			in.TokenAdvantages = append(in.TokenAdvantages, perToken...)
		}
		old.add(c.Old, n)
		ref.add(c.Ref, n)
		sampling.add(c.LogP, n)
	}
	var err error
	if in.Old, err = old.take("old"); err != nil {
		return Inputs{}, err
	}
	if in.Ref, err = ref.take("reference"); err != nil {
		return Inputs{}, err
	}
	if sampled {
		in.Sampling, err = sampling.take("sampling")
	}
	return in, err
}

// flat joins an optional value per token over rows.
type flat struct {
	values        []float32
	with, without int // rows that have it, and rows that do not
	ragged        bool
}

func (f *flat) add(v []float32, tokens int) {
	switch {
	case v == nil && tokens > 0:
		f.without++
	case len(v) != tokens:
		f.ragged = true
	default:
		f.with++
		f.values = append(f.values, v...)
	}
}

func (f *flat) take(name string) ([]float32, error) {
	switch {
	case f.ragged:
		return nil, fmt.Errorf("a row has not as many %s log-probabilities as tokens", name)
	case f.without == 0:
		return f.values, nil
	case len(f.values) > 0:
		return nil, fmt.Errorf("%d rows have %s log-probabilities and %d have not", f.with, name, f.without)
	}
	return nil, nil
}

// tokenAdvantages spreads Turns over the tokens: turn k is the k-th run of the policy's own tokens. Without Turns every
// token has Advantage.
func (c *Completion) tokenAdvantages() ([]float64, error) {
	out := make([]float64, len(c.Tokens))
	turn, inside := -1, false
	for t := range out {
		own := c.Mask == nil || c.Mask[t]
		if own && !inside {
			turn++
		}
		inside = own
		switch {
		case !own:
		case c.Turns == nil:
			out[t] = c.Advantage
		case turn < len(c.Turns):
			out[t] = c.Turns[turn]
		}
	}
	if c.Turns != nil && turn+1 != len(c.Turns) {
		return nil, fmt.Errorf("%d turn advantages for %d turns", len(c.Turns), turn+1)
	}
	return out, nil
}
