package wire

import (
	"context"
	"errors"
	"math"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/rubicon-rl/rubicon/rewards"
)

// Score has every batch scored by ask, at most limit of them at the same time, and returns the scores in the batches'
// order. The first error ends the others.
func Score(ctx context.Context, batches []Batch, limit int, ask func(context.Context, Batch) ([]rewards.Score, error)) ([]rewards.Score, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	parts := make([][]rewards.Score, len(batches))
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(limit)
	for i, b := range batches {
		work.Go(func() (err error) {
			if err := ctx.Err(); err != nil {
				return err
			}
			parts[i], err = ask(ctx, b)
			return err
		})
	}
	if err := work.Wait(); err != nil {
		return nil, err
	}
	return alike(batches, parts)
}

// alike joins the batches' scores and gives all of them the same reward functions: what could not be scored gets those
// of the others, without values.
func alike(batches []Batch, parts [][]rewards.Score) ([]rewards.Score, error) {
	scores := slices.Concat(parts...)
	var functions []rewards.Column
	for _, s := range scores {
		if s.Columns != nil {
			functions = slices.Clone(s.Columns)
			break
		}
	}
	for i := range functions {
		functions[i].Value = math.NaN()
	}
	i := 0
	for _, b := range batches {
		for k := range b.rows {
			s := &scores[i]
			i++
			if s.Columns == nil && s.Unscorable {
				s.Columns = slices.Clone(functions)
			}
			if !slices.EqualFunc(s.Columns, functions, sameFunction) {
				return nil, b.at(k, errors.New("its rewards have other names or weights than those of the completions before it: give every item the same"))
			}
		}
	}
	return scores, nil
}

func sameFunction(a, b rewards.Column) bool { return a.Name == b.Name && a.Weight == b.Weight }
