//go:build slow

package arco

import "testing"

// The rubric model learns: the squared error of the sums of its scores falls, and successes rise above failures.
func TestRubricModelLearns(t *testing.T) {
	p := bound(t, map[string]any{"criteria": "none", "head_learning_rate": 5e-4, "learning_rate": 3e-3, "target_modules": []any{"all-linear"}, "r": 4})
	groups := played()
	var losses []float64
	for step := range 80 {
		_, err := p.Score(t.Context(), step, groups)
		check(t, err)
		check(t, p.Learn(t.Context(), step, groups))
		losses = append(losses, p.Metrics()["arco/loss"])
	}
	_, err := p.Score(t.Context(), 80, groups)
	check(t, err)
	m := p.Metrics()
	if !(losses[79] < 0.1*losses[0]) || m["arco/auc"] != 1 || m["arco/score_success"] < m["arco/score_failure"]+0.5 {
		t.Errorf("losses %v, metrics %v", losses, m)
	}
}

// Warming up teaches to write the criteria and to score: both losses fall, and afterwards the scores sum up near the rewards.
func TestWarmingUp(t *testing.T) {
	p := bound(t, map[string]any{"head_learning_rate": 1e-3, "learning_rate": 1e-2, "target_modules": []any{"all-linear"}, "r": 8, "max_tokens": 30})
	var first, last map[string]float64
	w := Warming{Batch: 8, Total: 120, Rate: func(step int) float64 { return 1 - float64(step)/240 }, Seed: 1, Told: func(step int, m map[string]float64) {
		if last = m; first == nil {
			first = m
		}
	}}
	check(t, p.Warm(t.Context(), annotated(), w))
	if !(last["lm"] < 0.2*first["lm"] && last["mse"] < 0.5*first["mse"]) {
		t.Errorf("first %v, last %v", first, last)
	}
	if p.model.o.LearningRate != 1e-2 {
		t.Errorf("the learning rate is %v afterwards", p.model.o.LearningRate)
	}
	scores, err := p.Score(t.Context(), 0, played())
	check(t, err)
	if r := scores[0].Parts[1].Reason; r != "names a" || p.Metrics()["arco/unread_frac"] != 0 {
		t.Errorf("it writes %q, %v", r, p.Metrics())
	}
}
