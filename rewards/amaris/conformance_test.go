package amaris

import (
	"context"
	"maps"
	"testing"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/rewards/internal/scoring/scoringtest"
	"github.com/rubicon-rl/rubicon/rewards/rewardtest"
)

// hanging is a judge that never answers.
type hanging chan struct{}

func (h hanging) Ask(ctx context.Context, _ rewards.Question) (string, error) {
	select {
	case h <- struct{}{}:
	default:
	}
	<-ctx.Done()
	return "", ctx.Err()
}

// modes are settings that behave differently.
func modes(easy, anchors []any) map[string]map[string]any {
	return map[string]map[string]any{
		"global":                     {"rubric": easy},
		"global, cold start":         {"anchors": anchors},
		"global, sync":               {"rubric": easy, "execution": "sync"},
		"global, pooled":             {"rubric": easy, "update_interval": 2, "max_staleness": 2, "mode": "per_criterion"},
		"global, no memory":          {"rubric": easy, "retrieval": "none"},
		"global, cold start, frozen": {"frozen": true, "retrieval": "static"},
		"instance":                   {"scope": "instance", "column": "rubric", "anchors": anchors},
		"instance, sync, dynamic":    {"scope": "instance", "column": "rubric", "execution": "sync", "retrieval": "dynamic"},
		"instance, frozen":           {"scope": "instance", "column": "rubric", "frozen": true},
		"global, chunks":             {"rubric": easy, "chunk_size": 2, "analysis_column": "answer"},
	}
}

func TestConformance(t *testing.T) {
	easy := []any{criterion("easy", "Is kind.", "weight", 2), criterion("hard", "Rhymes.", "max_score", 5)}
	anchors := []any{criterion("a0", "Is safe.")}
	for name, settings := range modes(easy, anchors) {
		t.Run(name, func(t *testing.T) {
			fresh := func(t testing.TB) rewards.Provider {
				judge := &scoringtest.Judge{Missing: func(answer string) bool { return answer == "lost" }, Other: script}
				run := judge.Run()
				return mustNew(t, run, maps.Clone(settings))
			}
			groups := func() []grpo.Group {
				columns := map[string]any{"rubric": easy, "answer": "42"}
				return []grpo.Group{
					group("one", columns, "a", "a b", "lost", "a b c"), group("two", columns, "a", "a b", "c"), group("three", columns, "c", "b c d"),
				}
			}
			suite := rewardtest.Suite{
				New: fresh, Groups: groups, Unscorable: []int{2},
				Hanging: func(t testing.TB) (rewards.Provider, <-chan struct{}) {
					waits := make(hanging, 1)
					run := rewards.Run{Judge: func() (rewards.Judge, error) { return waits, nil }}
					return mustNew(t, run, maps.Clone(settings)), waits
				},
			}
			if settings["column"] != nil {
				bad := groups()
				bad[1].Prompt.Columns = map[string]any{"rubric": []any{criterion("y", " ")}}
				suite.Fault = &rewardtest.Fault{Provider: fresh(t), Groups: bad, Prompt: "two", Completion: -1}
			}
			rewardtest.Run(t, suite)
		})
	}
}
