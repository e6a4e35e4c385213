package eval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/rubicon-rl/rubicon/rewards"
)

// judged is what benchmarks have in common whose answers a judge scores.
type judged struct {
	items []Item
	open  func() (rewards.Judge, error)
}

func (j *judged) Items() []Item { return j.items }

// judge opens the judge when an answer is to be scored.
func (j *judged) judge() (rewards.Judge, error) {
	if j.open == nil {
		return nil, errors.New("this benchmark needs a judge: set section judge")
	}
	return j.open()
}

// askAll asks all questions at once; the judge bounds how many are in flight. unscorable says why a question got no usable answer.
func (j *judged) askAll(ctx context.Context, questions []rewards.Question) (answers []string, unscorable string, err error) {
	judge, err := j.judge()
	if err != nil {
		return nil, "", err
	}
	answers = make([]string, len(questions))
	lost := make([]error, len(questions))
	g, ctx := errgroup.WithContext(ctx)
	for i, q := range questions {
		g.Go(func() (err error) {
			if answers[i], err = judge.Ask(ctx, q); errors.Is(err, rewards.ErrNoAnswer) {
				lost[i] = err
				return nil
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, "", err
	}
	if err := errors.Join(lost...); err != nil {
		return nil, err.Error(), nil
	}
	return answers, "", nil
}

// judgeObject is a question that is answered by a JSON object; read gets it decoded.
func judgeObject[T any](name, system, user, schema string, read func(T) error) rewards.Question {
	return rewards.Question{
		Tier: rewards.TierScore, System: system, User: user, Name: name, Schema: json.RawMessage(schema),
		Check: func(answer string) error {
			v, err := decodeObject[T](answer)
			if err != nil {
				return err
			}
			return read(v)
		},
	}
}

func decodeObject[T any](answer string) (v T, err error) {
	if err := json.Unmarshal([]byte(answer), &v); err != nil {
		return v, fmt.Errorf("the answer is not the JSON object that was asked for: %w", err)
	}
	return v, nil
}
