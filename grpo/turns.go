package grpo

import (
	"fmt"
	"strings"
)

// SetTurnAdvantages sets the turns' advantages of completions whose turns the reward has valued: of all that it could score, or of none.
func SetTurnAdvantages(c Config, groups []Group) error {
	var episodes [][]Step
	var rows []*Completion
	without := 0
	for _, g := range groups {
		for _, row := range g.Completions {
			switch {
			case row.Episode != nil && row.Episode.Valued:
				rows, episodes = append(rows, row), append(episodes, row.Episode.Steps)
			case len(row.Rewards) > 0 && row.Unscorable(): // its advantage is 0
			default:
				without++
			}
		}
	}
	if len(rows) == 0 {
		return nil
	}
	if without > 0 {
		return fmt.Errorf("the turns of %d completions have values, those of %d have not: a reward values all or none", len(rows), without)
	}
	for i, turns := range c.TurnAdvantages(episodes) {
		rows[i].Turns = turns
	}
	return nil
}

// TurnAdvantages are the advantages of the turns of each episode, from their values (see Config); an episode without turns has none.
func (c Config) TurnAdvantages(episodes [][]Step) [][]float64 {
	returns := make([][]float64, len(episodes))
	sums, counts := map[string]float64{}, map[string]float64{}
	total, n := 0.0, 0.0
	for i, steps := range episodes {
		returns[i] = c.returns(steps)
		for k, bucket := range c.buckets(steps) {
			sums[bucket] += returns[i][k]
			counts[bucket]++
			total += returns[i][k]
			n++
		}
	}
	out := make([][]float64, len(episodes))
	for i, steps := range episodes {
		out[i] = make([]float64, len(steps))
		for k, bucket := range c.buckets(steps) {
			r := returns[i][k]
			base := total / n
			if c.TurnBaseline == "position" {
				base = c.turnBaseline(r, sums[bucket], counts[bucket], base)
			}
			out[i][k] = c.TurnScale * (r - base)
		}
	}
	return out
}

// turnBaseline is what the return r is compared with in a bucket of so many returns with that sum.
func (c Config) turnBaseline(r, sum, count, global float64) float64 {
	switch {
	case count == 1 && c.TurnFallbackToGlobal:
		return global
	case count == 1:
		return r
	case c.TurnLeaveOneOut:
		return (sum - r) / (count - 1)
	}
	return sum / count
}

// returns are those of an episode's turns.
func (c Config) returns(steps []Step) []float64 {
	out := make([]float64, len(steps))
	gamma := 1.0
	if c.TurnReturn == "discounted" {
		gamma = c.TurnGamma
	}
	later := 0.0
	for k := len(steps) - 1; k >= 0; k-- {
		later = steps[k].Value + gamma*later
		out[k] = later
		if c.TurnReturn == "avg" {
			out[k] /= float64(len(steps) - k)
		}
	}
	return out
}

// buckets name the turns that are comparable. A turn that is no search, and the last one, count as the end.
func (c Config) buckets(steps []Step) []string {
	out := make([]string, len(steps))
	searches := 0
	for k, s := range steps {
		switch {
		case c.TurnBucket == "all":
			out[k] = "all"
		case c.TurnBucket == "turn":
			out[k] = fmt.Sprint("turn ", k+1)
		case k == len(steps)-1 || !strings.HasPrefix(s.Action, "Search["):
			out[k] = "end"
		default:
			searches++
			out[k] = fmt.Sprint("search ", searches)
		}
	}
	return out
}
