package arco

import (
	"maps"
	"math"

	"github.com/rubicon-rl/rubicon/rewards"
)

// note keeps what is shown of a scored batch.
func (p *Provider) note(judged [][]Judged, scores []rewards.Score, episodes []Episode, step int) {
	var sums, goals []float64
	var known Known
	unread, cut, steps := 0.0, 0.0, 0.0
	for i, list := range judged {
		if scores[i].Unscorable {
			continue
		}
		sum := 0.0
		for k, j := range list {
			sum += j.Score()
			known.Add(episodes[i].Steps[k], j.Step)
			steps++
			if j.unread {
				unread++
			}
			if j.cut {
				cut++
			}
		}
		sums, goals = append(sums, sum), append(goals, episodes[i].Reward)
	}
	m := map[string]float64{"arco/dense": 0, "arco/unread_frac": unread / math.Max(1, steps), "arco/cut_frac": cut / math.Max(1, steps)}
	if step >= p.o.SparseSteps {
		m["arco/dense"] = 1
	}
	if auc := AUC(sums, goals); !math.IsNaN(auc) {
		m["arco/auc"] = auc
	}
	if auc := known.AUC(); !math.IsNaN(auc) {
		m["arco/step_auc"] = auc
	}
	for name, want := range map[string]bool{"arco/score_success": true, "arco/score_failure": false} {
		sum, n := 0.0, 0.0
		for i, s := range sums {
			if (goals[i] > 0.5) == want {
				sum += s
				n++
			}
		}
		if n > 0 {
			m[name] = sum / n
		}
	}
	p.shown.Lock()
	defer p.shown.Unlock()
	p.metrics = m
}

// Known are the scores of steps of which the environment tells whether they were right.
type Known struct{ scores, verdicts []float64 }

// Add takes a step and what the rubric model said of it; nothing if the environment does not tell.
func (k *Known) Add(m Move, s Step) {
	if m.Verdict != 0 {
		k.scores, k.verdicts = append(k.scores, s.Score()), append(k.verdicts, float64(m.Verdict))
	}
}

// Steps is the number of steps taken.
func (k *Known) Steps() int { return len(k.scores) }

// AUC is the probability that a right step has a higher score than a wrong one; NaN if there are not both.
func (k *Known) AUC() float64 { return AUC(k.scores, k.verdicts) }

// AUC is the probability that a success has a higher value than a failure, ties counting half; NaN if there are not both. goal above 0.5
// is a success.
func AUC(values, goals []float64) float64 {
	wins, pairs := 0.0, 0.0
	for i, a := range values {
		for j, b := range values {
			if goals[i] <= 0.5 || goals[j] > 0.5 {
				continue
			}
			pairs++
			switch {
			case a > b:
				wins++
			case a == b:
				wins += 0.5
			}
		}
	}
	return wins / pairs
}

// Metrics implements rewards.Drawer: what the last scoring showed, and the update before it.
func (p *Provider) Metrics() map[string]float64 {
	p.shown.Lock()
	defer p.shown.Unlock()
	out := maps.Clone(p.metrics)
	for name, v := range p.learned {
		out["arco/"+name] = v
	}
	return out
}
