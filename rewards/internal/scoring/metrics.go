package scoring

import (
	"math"

	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/rewards/criteria"
)

// Group is what one prompt's completions got by its rubric.
type Group struct {
	Set    criteria.Set // empty in the modes without criteria
	Scores []rewards.Score
}

// Scores are the scores of all completions, in order.
func Scores(groups []Group) []rewards.Score {
	var out []rewards.Score
	for _, g := range groups {
		out = append(out, g.Scores...)
	}
	return out
}

// zeroStd is the standard deviation up to which a group counts as one whose rewards are all equal, as in package grpo.
const zeroStd = 1e-8

// Metrics is what every rubric provider logs of a step. NAME is the id of a criterion that prompts share; unscorable
// completions count in unscorable_frac alone, and keep their groups from being saturated.
//
//	rubric/credit/NAME       mean credit
//	rubric/std/NAME          standard deviation of the credit within a group, mean over groups
//	rubric/saturated/NAME    share of the groups in which all completions have full credit
//	rubric/category/NAME     mean credit of the criteria of a category, prompts' own among them
//	rubric/within_group_std  as std, over all criteria of all groups
//	rubric/saturated_frac    as saturated, over all criteria of all groups
//	rubric/zero_std_frac     share of the groups whose rewards are all equal, with two rewards or more
//	rubric/reward/mean, std  of the values
//	rubric/unscorable_frac   share of the completions that could not be scored
//
// What there are no numbers for is left out.
func Metrics(groups []Group) map[string]float64 {
	t := tally{}
	var all []float64
	for _, g := range groups {
		var values []float64
		for _, s := range g.Scores {
			t.add("unscorable_frac", share(s.Unscorable))
			if !s.Unscorable {
				values = append(values, s.Value)
			}
		}
		all = append(all, values...)
		t.add("zero_std_frac", share(len(values) >= 2 && deviation(values) <= zeroStd))
		for i, c := range g.Set.All() {
			t.criterion(c, i, g.Scores)
		}
	}
	out := map[string]float64{}
	for name, v := range t {
		out["rubric/"+name] = average(v)
	}
	if len(all) > 0 {
		out["rubric/reward/mean"], out["rubric/reward/std"] = average(all), deviation(all)
	}
	return out
}

// tally collects the numbers whose means are metrics.
type tally map[string][]float64

func (t tally) add(name string, v float64) { t[name] = append(t[name], v) }

// criterion adds what the scores of a group say of the criterion at place i.
func (t tally) criterion(c criteria.Criterion, i int, scores []rewards.Score) {
	var credits []float64
	full, shared := true, false
	for _, s := range scores {
		if s.Unscorable {
			full = false
			continue
		}
		part := s.Parts[i]
		credits = append(credits, part.Credit)
		full = full && Full(c, part.Credit)
		shared = !part.Local
		if shared {
			t.add("credit/"+c.ID, part.Credit)
		}
		if c.Category != "" {
			t.add("category/"+c.Category, part.Credit)
		}
	}
	t.add("saturated_frac", share(full))
	if len(credits) >= 2 {
		t.add("within_group_std", deviation(credits))
	}
	if shared {
		t.add("saturated/"+c.ID, share(full))
		t.add("std/"+c.ID, deviation(credits))
	}
}

// Full reports whether a credit is the best that a criterion can give: 1, or 0 for a penalty.
func Full(c criteria.Criterion, credit float64) bool {
	if c.Weight < 0 {
		return credit == 0
	}
	return credit == 1
}

func share(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

func average(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}

// deviation is the standard deviation with n-1; 0 of a single number.
func deviation(v []float64) float64 {
	if len(v) < 2 {
		return 0
	}
	mean, squares := average(v), 0.0
	for _, x := range v {
		squares += (x - mean) * (x - mean)
	}
	return math.Sqrt(squares / float64(len(v)-1))
}
