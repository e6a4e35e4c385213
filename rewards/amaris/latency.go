package amaris

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/rubicon-rl/rubicon/rewards"
)

// stageScore are the questions by which completions are scored, beside those of the stages.
const stageScore = "score"

// LatencyPath is where the file of latencies stands, dir being the run's folder.
func LatencyPath(dir string) string { return filepath.Join(dir, "rubrics", "latency.jsonl") }

// Latency is a line of the file of latencies: what was asked from the step that was scored before up to and with the
// scoring of this one, by stage. A resumed run adds its lines to those that are there.
type Latency struct {
	Step   int              `json:"step"`
	Stages map[string]Asked `json:"stages"` // score, analyze, summarize, meta, query, update
}

// Asked are questions to a judge, and how long answers took from the question on: with the wait for a free place, with
// retries and repairs. Answers from the judge's cache count too.
type Asked struct {
	Questions  int     `json:"questions"`
	Unanswered int     `json:"unanswered,omitempty"`
	Seconds    float64 `json:"seconds"` // all together
	// Latencies in ascending order. Of more than 64 there are 64, from evenly spaced ranks.
	Latencies []float64 `json:"latencies"`
}

// maxLatencies bounds the length of a line.
const maxLatencies = 64

// stopwatch notes how long a judge takes. It is safe for use by several goroutines.
type stopwatch struct {
	mu     sync.Mutex
	stages map[string]Asked // nil: no judge is open
}

// over is open with a judge that the stopwatch is put to.
func (s *stopwatch) over(open func() (rewards.Judge, error)) func() (rewards.Judge, error) {
	if open == nil {
		return nil
	}
	return func() (rewards.Judge, error) {
		j, err := open()
		if err != nil {
			return nil, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.stages == nil {
			s.stages = map[string]Asked{}
		}
		return timed{j, s}, nil
	}
}

// timed is a judge with a stopwatch.
type timed struct {
	rewards.Judge
	watch *stopwatch
}

// Ask implements rewards.Judge.
func (t timed) Ask(ctx context.Context, q rewards.Question) (string, error) {
	began := time.Now()
	answer, err := t.Judge.Ask(ctx, q)
	if err == nil || unanswered(err) {
		t.watch.note(q, time.Since(began).Seconds(), err != nil)
	}
	return answer, err
}

func (s *stopwatch) note(q rewards.Question, took float64, lost bool) {
	stage := q.Name
	if q.Tier == rewards.TierScore {
		stage = stageScore
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.stages[stage]
	a.Questions++
	if lost {
		a.Unanswered++
	}
	a.Seconds += took
	a.Latencies = append(a.Latencies, took)
	s.stages[stage] = a
}

// take returns what was noted since it was last called; nil: no judge is open.
func (s *stopwatch) take() map[string]Asked {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.stages
	if out != nil {
		s.stages = map[string]Asked{}
	}
	for stage, a := range out {
		a.Seconds, a.Latencies = milli(a.Seconds), thin(a.Latencies)
		out[stage] = a
	}
	return out
}

// thin sorts latencies and keeps the middle one of each of maxLatencies equal parts.
func thin(all []float64) []float64 {
	slices.Sort(all)
	out := make([]float64, min(len(all), maxLatencies))
	for i := range out {
		out[i] = milli(all[(2*i+1)*len(all)/(2*len(out))])
	}
	return out
}

// milli rounds seconds to milliseconds.
func milli(seconds float64) float64 { return math.Round(seconds*1e3) / 1e3 }

// latencies is the file as a run writes it, a line a step.
type latencies struct {
	ready bool // what it ends in is whole
}

// add writes a line. fresh: the run begins, so that what the file has is of one that came to nothing.
func (f *latencies) add(path string, fresh bool, l Latency) error {
	line, err := json.Marshal(l)
	if err == nil && !f.ready {
		err = prepare(path, fresh)
	}
	if err == nil {
		err = appendTo(path, append(line, '\n'))
	}
	f.ready = err == nil
	if err != nil {
		return fmt.Errorf("write down the judge's latencies: %w", err)
	}
	return nil
}

// prepare empties the file, or cuts off a last line that is not whole.
func prepare(path string, empty bool) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	whole := bytes.LastIndexByte(text, '\n') + 1
	if empty {
		whole = 0
	}
	return os.Truncate(path, int64(whole))
}

func appendTo(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

// ReadLatencies reads a file of latencies, up to a last line that is not whole. There is none of a run that asked no judge,
// or was made before there were such files.
func ReadLatencies(path string) ([]Latency, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	lines := bytes.Split(text, []byte{'\n'})
	var out []Latency
	for n, line := range lines[:len(lines)-1] {
		var l Latency
		if err := json.Unmarshal(line, &l); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n+1, err)
		}
		out = append(out, l)
	}
	return out, nil
}
