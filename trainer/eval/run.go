package eval

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/rubicon-rl/rubicon/grpo"
)

// Ask is one question that a policy is to answer, in a repeat of its own random numbers.
type Ask struct {
	Item   *Item
	Repeat int
	Try    int // above 0: the answer before was none that counts, and new random numbers are to be drawn
}

// Answer is what a policy says.
type Answer struct {
	Text     string
	Finish   string         // stop, length: it was cut off, or refused: there is none
	Tokens   int            // 0: not known
	Messages []grpo.Message // what was asked; nil: the item's messages
	Turns    []grpo.Step    // of an episode, which Text came of
}

// The values of Answer.Finish.
const (
	Stopped = "stop"
	CutOff  = "length"
	Refused = "refused"
)

// Policy answers questions. deliver is called once for each as soon as its answer is there, by several goroutines; its error ends Answer. What a
// question gets does not depend on the others that are asked with it.
type Policy interface {
	Answer(ctx context.Context, asks []Ask, s Sampling, deliver func(i int, a Answer) error) error
}

// Job is a measurement.
type Job struct {
	Setting   Setting // Items and Repeats are set by Run, which heeds them as bounds: 0 is all items, and the benchmark's own repeats
	Benchmark Benchmark
	Policy    Policy
	File      string // of answers and verdicts; what is there already is not asked again
	Progress  func(done, of int)
	Notify    func(text string) // nil: nobody is told
}

// scorers bounds how many answers are scored at the same time; a judge has its own bound.
const scorers = 64

// Run asks what is not answered yet, scores it, and sums up. Every answer is in the file before it is scored; when ctx ends, or no judge
// answers, what is done is kept. At the end the file has one line for each answer, in the order of the items.
func Run(ctx context.Context, j Job) (*Result, error) {
	repeats := j.repeats()
	j.Setting.Items, j.Setting.Repeats = len(repeats[0]), len(repeats)
	if judged, ok := j.Benchmark.(Judged); ok {
		j.Setting.Prompt = judged.Prompt()
	} else {
		j.Setting.Judge = ""
	}
	st, err := openStore(j.File, j.Setting)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(j.fill(ctx, st, j.rest(st, repeats)), st.close()); err != nil {
		return nil, err
	}
	var records []Record
	for r, items := range repeats {
		for i := range items {
			records = append(records, st.done[place{items[i].Key, r}])
		}
	}
	if st.lines > len(records) {
		if err := rewrite(j.File, j.Setting, records); err != nil {
			return nil, err
		}
	}
	return Summarise(j.Benchmark, j.Setting, records), nil
}

// repeats are the items of every repeat.
func (j *Job) repeats() [][]Item {
	own, repeated := j.Benchmark.(Repeated)
	n := j.Setting.Repeats
	if n == 0 && repeated {
		n = own.Repeats()
	}
	out := make([][]Item, max(1, n))
	for r := range out {
		out[r] = j.Benchmark.Items()
		if repeated {
			out[r] = own.Repeat(r)
		}
		if most := j.Setting.Items; most > 0 {
			out[r] = out[r][:min(most, len(out[r]))]
		}
	}
	return out
}

// rest is what a measurement lacks.
type rest struct {
	asks     []Ask
	unscored []Record // answered
	items    map[place]*Item
	done, of int
}

func (j *Job) rest(st *store, repeats [][]Item) *rest {
	p := &rest{items: map[place]*Item{}}
	for r, items := range repeats {
		for i := range items {
			at := place{items[i].Key, r}
			p.items[at] = &items[i]
			p.of++
			switch have, ok := st.done[at]; {
			case !ok:
				p.asks = append(p.asks, Ask{Item: &items[i], Repeat: r})
			case have.Verdict.Unscorable != "":
				p.unscored = append(p.unscored, have)
			default:
				p.done++
			}
		}
	}
	return p
}

// notScored is why an answer is unscorable whose judge has not been asked yet.
const notScored = "not scored yet"

// fill completes the store. A judge that fails ends the scoring, not the generation: answers are what is dear.
func (j *Job) fill(ctx context.Context, st *store, p *rest) error {
	g, within := errgroup.WithContext(ctx)
	places := make(chan struct{}, scorers) // taken inside of the goroutines: who delivers an answer never waits
	var mu sync.Mutex
	var told sync.Once
	score := func(r Record) error {
		places <- struct{}{}
		defer func() { <-places }()
		if within.Err() != nil {
			return within.Err()
		}
		var err error
		if r.Verdict, err = j.Benchmark.Score(within, p.items[place{r.Key, r.Repeat}], r.Answer); err != nil {
			if within.Err() == nil && j.Notify != nil {
				told.Do(func() {
					j.Notify(fmt.Sprintf("%s cannot be scored: %v; no more is scored now, answers go on and are kept", r.Key, err))
				})
			}
			return fmt.Errorf("score %s: %w", r.Key, err)
		}
		if err := st.add(r); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if p.done++; j.Progress != nil {
			j.Progress(p.done, p.of)
		}
		return nil
	}
	for _, r := range p.unscored {
		g.Go(func() error { return score(r) })
	}
	err := j.answer(ctx, p.asks, func(r Record) error {
		r.Verdict = Verdict{Unscorable: notScored}
		if err := st.add(r); err != nil {
			return err
		}
		g.Go(func() error { return score(r) })
		return nil
	})
	scoring := g.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errors.Join(err, scoring)
}

// mostTries is how often a question is asked whose answers do not count: the rules that have such answers name no number.
const mostTries = 3

// answer asks the policy and keeps the answers. Those that do not count by the benchmark's rules are asked again, if that may change them.
func (j *Job) answer(ctx context.Context, asks []Ask, keep func(Record) error) error {
	rules, _ := j.Benchmark.(Retried)
	for len(asks) > 0 {
		var mu sync.Mutex
		var again []Ask
		err := j.Policy.Answer(ctx, asks, j.Setting.Generation, func(i int, a Answer) error {
			ask := asks[i]
			if rules == nil || !rules.Again(a.Text) || a.Finish == Refused || ask.Try+1 == mostTries || j.Setting.Generation.Temperature == 0 {
				return keep(record(ask, a))
			}
			mu.Lock()
			defer mu.Unlock()
			again = append(again, Ask{ask.Item, ask.Repeat, ask.Try + 1})
			return nil
		})
		if err != nil {
			return err
		}
		asks = again
	}
	return nil
}

func record(ask Ask, a Answer) Record {
	r := Record{Key: ask.Item.Key, Repeat: ask.Repeat, Messages: a.Messages, Answer: a.Text, Finish: a.Finish, Tokens: a.Tokens, Turns: a.Turns}
	if r.Messages == nil {
		r.Messages = ask.Item.Messages
	}
	return r
}

// Digest is the SHA-256 of a file.
func Digest(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
