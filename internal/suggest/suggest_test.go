package suggest

import "testing"

// One slip of each kind is recognised; what is far from everything is not guessed at.
func TestNearest(t *testing.T) {
	names := []string{"seed", "optim.learning_rate", "optim.max_steps", "checkpoint.save_steps", "learning_rate", "eval.top_p", "rollout.top_p"}
	for name, want := range map[string]string{
		"sede": "seed", "sed": "seed", "seeed": "seed", "sead": "seed", "optim.learning_rte": "optim.learning_rate",
		"lerning_rate": "learning_rate", "rollout.topp": "rollout.top_p", "eval.topp": "eval.top_p", "grpo.save_steps": "checkpoint.save_steps",
		"Optim.Learning_Rate": "optim.learning_rate", "xyz": "", "x": "",
	} {
		if got := Nearest(name, names); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for _, tt := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"abc", "", 3}, {"abc", "acb", 1}, {"kitten", "sitting", 3}, {"ab", "ba", 1}} {
		if got := distance(tt.a, tt.b); got != tt.want {
			t.Errorf("%s, %s: %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}
