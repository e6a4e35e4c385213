package verify

import (
	"testing"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/rewards/rewardtest"
)

func TestConformance(t *testing.T) {
	fresh := func(t testing.TB) rewards.Provider {
		p, err := New(rewards.Run{}, map[string]any{"column": "checks"})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	words := func(n float64) any {
		return []any{map[string]any{"kind": "count", "exactly": n, "half_at": 1.0}, map[string]any{"kind": "distinct", "name": "fresh"}}
	}
	groups := func() []grpo.Group {
		return []grpo.Group{
			{Prompt: &grpo.Prompt{ID: "two", Columns: map[string]any{"checks": words(2)}}, Completions: []*grpo.Completion{
				{Text: "a"}, {Text: "a b"}, {Text: "a b c c"}}},
			{Prompt: &grpo.Prompt{ID: "none", Columns: map[string]any{"checks": []any{}}}, Completions: []*grpo.Completion{
				{Text: "a"}, {Text: "b"}}},
			{Prompt: &grpo.Prompt{ID: "four", Columns: map[string]any{"checks": words(4)}}, Completions: []*grpo.Completion{
				{Text: "a a a a"}, {Text: "a b c d"}}},
		}
	}
	bad := groups()
	bad[2].Prompt.Columns["checks"] = []any{map[string]any{"kind": "cuont"}}
	rewardtest.Run(t, rewardtest.Suite{
		New: fresh, Groups: groups, Unscorable: []int{3, 4},
		Fault: &rewardtest.Fault{Provider: fresh(t), Groups: bad, Prompt: "four", Completion: -1},
	})
}
