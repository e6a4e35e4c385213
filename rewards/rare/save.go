package rare

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// stateFile holds the provider's state in a checkpoint: a header, then the rubrics in the order of their scopes, one a line.
const stateFile = "rubrics.jsonl"

// header is the first line.
type header struct {
	Step      int   `json:"step"`       // the latest
	StepBytes int64 `json:"step_bytes"` // length of the rubric log before it
	LogBytes  int64 `json:"log_bytes"`
	Rubrics   int   `json:"rubrics"`
}

// record is the line of one rubric.
type record struct {
	Scope string `json:"scope"`
	Now   *state `json:"now"`
	Seen  bool   `json:"seen"` // the step of the header looked at it
	Was   *state `json:"was"`  // before that step; null: a first rubric
}

// Save implements rewards.Saver. The file has one form for one state.
func (p *Provider) Save(dir string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	f, err := os.Create(filepath.Join(dir, stateFile))
	if err != nil {
		return fmt.Errorf("rare: %w", err)
	}
	h := header{p.states.step, p.journal.begun, p.journal.Size(), len(p.states.now)}
	if err := errors.Join(p.states.write(f, h), f.Close()); err != nil {
		return fmt.Errorf("rare: saving %s: %w", stateFile, err)
	}
	return nil
}

func (s *states) write(w io.Writer, h header) error {
	out := bufio.NewWriter(w)
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	if err := e.Encode(h); err != nil {
		return err
	}
	for _, scope := range slices.Sorted(maps.Keys(s.now)) {
		was, seen := s.was[scope]
		if err := e.Encode(record{scope, s.now[scope], seen, was}); err != nil {
			return err
		}
	}
	return out.Flush()
}

// Load implements rewards.Saver. The run's rubric log is cut to its length at the time of Save when it is written to
// next, so that a checkpoint can be looked at without harm to the log.
func (p *Provider) Load(dir string) error {
	f, err := os.Open(filepath.Join(dir, stateFile))
	if err != nil {
		return fmt.Errorf("rare: %w", err)
	}
	defer f.Close()
	loaded, h, err := readStates(f)
	if err != nil {
		return fmt.Errorf("rare: %s: %w", f.Name(), err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.states = loaded
	p.journal.rewind(h)
	return nil
}

func readStates(r io.Reader) (states, header, error) {
	s := newStates()
	d := json.NewDecoder(bufio.NewReader(r))
	d.DisallowUnknownFields()
	var h header
	if err := d.Decode(&h); err != nil {
		return s, h, fmt.Errorf("header: %w", err)
	}
	s.step = h.Step
	if h.StepBytes < 0 || h.LogBytes < h.StepBytes {
		return s, h, fmt.Errorf("header: the log has %d bytes, %d before the last step", h.LogBytes, h.StepBytes)
	}
	for range h.Rubrics {
		var line record
		if err := d.Decode(&line); err != nil {
			return s, h, fmt.Errorf("rubric of %q: %w", line.Scope, err)
		}
		if line.Now == nil {
			return s, h, fmt.Errorf("rubric of %q: has no state", line.Scope)
		}
		if err := errors.Join(line.Now.check(line.Scope), line.Was.check(line.Scope)); err != nil {
			return s, h, fmt.Errorf("rubric of %q: %w", line.Scope, err)
		}
		s.now[line.Scope] = line.Now
		if line.Seen {
			s.was[line.Scope] = line.Was
		}
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return s, h, fmt.Errorf("goes on after its %d rubrics", h.Rubrics)
	}
	return s, h, nil
}

// check refuses a state that no run has.
func (s *state) check(scope string) error {
	switch {
	case s == nil:
		return nil
	case s.Set.Scope() != scope:
		return fmt.Errorf("the rubric is of %q", s.Set.Scope())
	case s.Set.Len() == 0 || len(s.Switched) != s.Set.Len():
		return fmt.Errorf("%d places for %d criteria", len(s.Switched), s.Set.Len())
	case slices.ContainsFunc(s.Switched, func(v int) bool { return v < 0 || v > s.Visits }):
		return fmt.Errorf("places switched at the visits %v of %d", s.Switched, s.Visits)
	}
	return nil
}
