package trainer

import (
	"context"
	"fmt"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/internal/dist"
)

// marks are a Scored with what scoring sets of each completion, in order.
type marks struct {
	Columns    []grpo.Column
	Unscorable float64
	Criteria   map[string]float64
	Rewards    [][]float64
	Turns      [][]float64 // the values of its turns, if it has any
}

// ScoreForAll has rank 0 score groups, which are those of all ranks, and sets on every rank what scoring sets. What only people read
// stays with rank 0.
func (r *Rollouts) ScoreForAll(ctx context.Context, groups []grpo.Group, score func() (Scored, error)) (Scored, error) {
	if r.Group.World() == 1 {
		return score()
	}
	var scored Scored
	m, err := lead(ctx, r.Group, "rewards", func() (_ marks, err error) {
		if scored, err = score(); err != nil {
			return marks{}, err
		}
		return marksOf(scored, groups), nil
	})
	if err != nil || r.Group.Rank() == 0 {
		return scored, err
	}
	if err := m.set(groups); err != nil {
		return Scored{}, &dist.RankError{Rank: 0, Err: err}
	}
	return Scored{Columns: m.Columns, Unscorable: m.Unscorable, Criteria: m.Criteria}, nil
}

func marksOf(scored Scored, groups []grpo.Group) marks {
	m := marks{Columns: scored.Columns, Unscorable: scored.Unscorable, Criteria: scored.Criteria}
	for _, g := range groups {
		for _, c := range g.Completions {
			var turns []float64
			if c.Episode != nil && c.Episode.Valued {
				for _, s := range c.Episode.Steps {
					turns = append(turns, s.Value)
				}
			}
			m.Rewards, m.Turns = append(m.Rewards, c.Rewards), append(m.Turns, turns)
		}
	}
	return m
}

func (m marks) set(groups []grpo.Group) error {
	n := 0
	for _, g := range groups {
		for _, c := range g.Completions {
			if n == len(m.Rewards) {
				return fmt.Errorf("it scored %d completions, here are more", n)
			}
			c.Rewards = m.Rewards[n]
			if turns := m.Turns[n]; len(turns) > 0 {
				if err := noteTurns(c, turns); err != nil {
					return err
				}
			}
			n++
		}
	}
	return nil
}
