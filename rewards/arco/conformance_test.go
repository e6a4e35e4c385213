package arco

import (
	"testing"

	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/rewards/rewardtest"
)

func TestConformance(t *testing.T) {
	for name, settings := range map[string]map[string]any{
		"dense": {},
		"none":  {"criteria": "none", "sparse_steps": 1},
	} {
		t.Run(name, func(t *testing.T) {
			bad := played()
			bad[0].Prompt.Columns = map[string]any{"checks": []any{map[string]any{"kind": "contains", "all": []any{"x"}}}}
			bad[1].Prompt.Columns = map[string]any{"checks": 7}
			rewardtest.Run(t, rewardtest.Suite{
				New:    func(t testing.TB) rewards.Provider { return bound(t, settings) },
				Groups: played,
				Fault: &rewardtest.Fault{
					Provider: bound(t, map[string]any{"reward": map[string]any{"column": "checks"}}), Groups: bad, Prompt: "b", Completion: -1,
				},
			})
		})
	}
}
