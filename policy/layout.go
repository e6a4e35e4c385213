package policy

import (
	"fmt"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// layout is a forest laid out as rows: the segments' tokens one after the other.
type layout struct {
	ids, pos, seg []int32 // [T] token, position along its path, segment ID
	tasks         []device.AttentionTask
	first         []int           // [S] row of each segment's first token
	paths         [][]device.Span // [S] rows from the root to the end of the segment
	lengths       []int           // [S] tokens on the path, the segment's included
	parents       []int32         // [N] row that predicts each scored token
	targets       []int32         // [N] the scored tokens
	maxPos        int
}

// limits are what a forest must keep to.
type limits struct{ vocab, positions int }

// arrange checks f and lays it out.
func arrange(f *Forest, lim limits) (*layout, error) {
	if f == nil || len(f.Segments) == 0 {
		return nil, fmt.Errorf("policy: the forest has no segments")
	}
	total := 0
	for i := range f.Segments {
		total += len(f.Segments[i].Tokens)
	}
	l := &layout{
		ids: make([]int32, 0, total), pos: make([]int32, 0, total), seg: make([]int32, 0, total),
		tasks: make([]device.AttentionTask, 0, len(f.Segments)),
		first: make([]int, len(f.Segments)), paths: make([][]device.Span, len(f.Segments)), lengths: make([]int, len(f.Segments)),
	}
	for i := range f.Segments {
		if err := l.add(f, i, lim); err != nil {
			return nil, fmt.Errorf("policy: segment %d: %w", i, err)
		}
	}
	return l, nil
}

// add lays out segment i, whose ancestors are laid out already.
func (l *layout) add(f *Forest, i int, lim limits) error {
	s := &f.Segments[i]
	if err := s.check(i, lim.vocab); err != nil {
		return err
	}
	start, row, before := 0, len(l.ids), -1
	var path []device.Span
	if s.Parent != Root {
		start = l.lengths[s.Parent]
		before = l.first[s.Parent] + len(f.Segments[s.Parent].Tokens) - 1
		path = l.paths[s.Parent]
	}
	n := len(s.Tokens)
	if start+n > lim.positions {
		return fmt.Errorf("its path has %d tokens, the model's context is %d: shorten the prompt or the completion", start+n, lim.positions)
	}
	l.first[i], l.lengths[i], l.maxPos = row, start+n, max(l.maxPos, start+n-1)
	l.paths[i] = append(path[:len(path):len(path)], device.Span{Row: row, N: n})
	l.tasks = append(l.tasks, device.AttentionTask{Q: device.Span{Row: row, N: n}, Pos: start, Keys: l.paths[i]})
	for t, id := range s.Tokens {
		l.ids = append(l.ids, id)
		l.pos = append(l.pos, int32(start+t))
		l.seg = append(l.seg, int32(s.ID))
		if s.Score != nil && s.Score[t] {
			parent := row + t - 1
			if t == 0 {
				parent = before
			}
			if parent < 0 {
				return fmt.Errorf("its first token is scored, but nothing stands before it")
			}
			l.parents = append(l.parents, int32(parent))
			l.targets = append(l.targets, id)
		}
	}
	return nil
}

func (s *Segment) check(i, vocab int) error {
	if s.Parent != Root && (s.Parent < 0 || s.Parent >= i) {
		return fmt.Errorf("its parent is %d, want an earlier segment or Root", s.Parent)
	}
	if len(s.Tokens) == 0 {
		return fmt.Errorf("it has no tokens")
	}
	if s.Score != nil && len(s.Score) != len(s.Tokens) {
		return fmt.Errorf("it has %d tokens but %d score marks", len(s.Tokens), len(s.Score))
	}
	for t, id := range s.Tokens {
		if id < 0 || int(id) >= vocab {
			return fmt.Errorf("token %d has id %d, the model's vocabulary is 0..%d: is the tokenizer another model's?", t, id, vocab-1)
		}
	}
	return nil
}

// rows are the token rows of one pass on the device.
type rows struct {
	n             int
	ids, pos, seg device.Mem // [n] I32; seg only where dropout needs it
	pad           []int      // rows of the padding token
	tasks         []device.AttentionTask
	cache         *cacheRows // generation: where keys and values are kept; nil: the rows' own
}

func (l *layout) upload(s *scope, pad int32) rows {
	r := rows{n: len(l.ids), tasks: l.tasks, ids: s.ints(l.ids), pos: s.ints(l.pos), seg: s.ints(l.seg)}
	for t, id := range l.ids {
		if id == pad {
			r.pad = append(r.pad, t)
		}
	}
	return r
}
