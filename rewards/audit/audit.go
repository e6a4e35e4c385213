// Package audit compares a run's judge with an independent one: both answer the same questions about a sample of completions. A
// policy that learns to please its judge raises the reward and the difference between the two.
package audit

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/rubicon-rl/rubicon/rewards"
)

// Judge is a run's judge, whose answers to scoring questions are remembered while it listens. It is safe for use by several
// goroutines.
type Judge struct {
	rewards.Judge               // of the run
	other         rewards.Judge // the independent one
	samples       int
	seed          uint64

	mu    sync.Mutex
	heard map[digest]exchange // nil: it does not listen
}

type digest [sha256.Size]byte

type exchange struct {
	question rewards.Question
	answer   string
}

// New makes the audit of a judge by another one, which is asked up to samples questions each time; seed chooses them.
func New(judge, other rewards.Judge, samples int, seed uint64) *Judge {
	return &Judge{Judge: judge, other: other, samples: samples, seed: seed}
}

// Ask implements rewards.Judge by the run's judge.
func (j *Judge) Ask(ctx context.Context, q rewards.Question) (string, error) {
	answer, err := j.Judge.Ask(ctx, q)
	if err == nil && q.Tier == rewards.TierScore {
		j.mu.Lock()
		defer j.mu.Unlock()
		if j.heard != nil {
			j.heard[j.digest(q)] = exchange{q, answer}
		}
	}
	return answer, err
}

func (j *Judge) digest(q rewards.Question) digest {
	b := binary.LittleEndian.AppendUint64(nil, j.seed)
	b = binary.LittleEndian.AppendUint64(b, uint64(q.Sample))
	return sha256.Sum256(append(append(append(b, q.System...), 0), q.User...))
}

// Listen begins to remember; what was remembered before is forgotten.
func (j *Judge) Listen() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.heard = map[digest]exchange{}
}

// Compare puts a sample of what was asked since Listen to the independent judge, and stops listening. Which questions these are does
// not depend on the order in which they were asked.
//
//	judge/audit/questions   that both answered
//	judge/audit/bias        credit by the run's judge minus credit by the independent one, mean over all scores of these
//	judge/audit/difference  the absolute value of it, likewise
//
// The last two are left out if there is no question that both answered. What the independent judge says of itself, its calls and
// cost, is added in the same folder of names.
func (j *Judge) Compare(ctx context.Context) (map[string]float64, error) {
	j.mu.Lock()
	heard := j.heard
	j.heard = nil
	j.mu.Unlock()
	keys := slices.SortedFunc(maps.Keys(heard), func(a, b digest) int { return bytes.Compare(a[:], b[:]) })
	keys = keys[:min(j.samples, len(keys))]
	answers := make([]string, len(keys)) // "": none
	work, ctx := errgroup.WithContext(ctx)
	for i, k := range keys {
		work.Go(func() (err error) {
			answers[i], err = j.other.Ask(ctx, heard[k].question)
			if errors.Is(err, rewards.ErrNoAnswer) {
				err = nil
			}
			return err
		})
	}
	if err := work.Wait(); err != nil {
		return nil, fmt.Errorf("the independent judge: %w", err)
	}
	var sum tally
	for i, k := range keys {
		if answers[i] != "" {
			if err := sum.add(heard[k], answers[i]); err != nil {
				return nil, err
			}
		}
	}
	m := sum.metrics()
	if d, ok := j.other.(rewards.Drawer); ok {
		for name, v := range d.Metrics() {
			m["judge/audit/"+strings.TrimPrefix(name, "judge/")] = v
		}
	}
	return m, nil
}

// tally adds up credits.
type tally struct{ questions, scores, bias, difference float64 }

// add compares two answers to a question, score by score.
func (t *tally) add(e exchange, other string) error {
	most, err := highest(e.question.Schema)
	if err != nil {
		return err
	}
	mine, err := scores(e.answer)
	if err != nil {
		return err
	}
	theirs, err := scores(other)
	if err != nil {
		return err
	}
	t.questions++
	for _, key := range slices.Sorted(maps.Keys(mine)) {
		by, both := theirs[key]
		if top := most[key]; both && top > 0 {
			d := (mine[key] - by) / top
			t.scores++
			t.bias += d
			t.difference += math.Abs(d)
		}
	}
	return nil
}

func (t *tally) metrics() map[string]float64 {
	m := map[string]float64{"judge/audit/questions": t.questions}
	if t.scores > 0 {
		m["judge/audit/bias"], m["judge/audit/difference"] = t.bias/t.scores, t.difference/t.scores
	}
	return m
}

// scores reads an answer to a scoring question: an object of objects with a score.
func scores(answer string) (map[string]float64, error) {
	var entries map[string]struct{ Score float64 }
	if err := json.Unmarshal([]byte(answer), &entries); err != nil {
		return nil, fmt.Errorf("audit: an answer to a scoring question: %w", err)
	}
	out := map[string]float64{}
	for key, e := range entries {
		out[key] = e.Score
	}
	return out, nil
}

// highest reads the highest score of each key from the schema of a scoring question.
func highest(schema json.RawMessage) (map[string]float64, error) {
	var s struct {
		Properties map[string]struct {
			Properties struct {
				Score struct {
					Enum    []float64
					Maximum float64
				}
			}
		}
	}
	if err := json.Unmarshal(schema, &s); err != nil {
		return nil, fmt.Errorf("audit: the schema of a scoring question: %w", err)
	}
	out := map[string]float64{}
	for key, p := range s.Properties {
		score := p.Properties.Score
		out[key] = cmp.Or(score.Maximum, slices.Max(append(score.Enum, 0)))
	}
	return out, nil
}
