package rare

import (
	"context"
	"testing"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/rewards/internal/scoring/scoringtest"
	"github.com/rubicon-rl/rubicon/rewards/rewardtest"
)

// pool are candidates that programs score.
var pool = []any{
	map[string]any{"id": "short", "check": map[string]any{"kind": "count", "unit": "words", "max": 2, "half_at": 1}},
	map[string]any{"id": "no_b", "check": map[string]any{"kind": "contains", "none": []any{"b"}}},
	map[string]any{"id": "no_x", "check": map[string]any{"kind": "contains", "none": []any{"x"}}},
	map[string]any{"id": "no_c", "check": map[string]any{"kind": "contains", "none": []any{"c"}}},
}

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

func TestConformance(t *testing.T) {
	for name, settings := range map[string]map[string]any{
		"sample":          {"column": "rubric"},
		"sample, bounded": {"column": "rubric", "max_per_visit": 1, "min_visits": 2, "max_per_prompt": 3, "polarity": "mixed", "retention": true},
		"sample, pool":    {"column": "rubric", "generator": "pool", "pool": pool},
		"sample, random":  {"column": "rubric", "generator": "random", "pool": pool, "retention": true},
		"task":            {"column": "rubric", "mode": "task", "task_column": "task", "scoring": "per_criterion"},
		"static":          {"column": "rubric", "mode": "static"},
	} {
		t.Run(name, func(t *testing.T) {
			easy := table{"hard": {"a": 0, "a b": 3}}
			fresh := func(t testing.TB) rewards.Provider {
				judge := &scoringtest.Judge{Rule: easy.rule, Missing: func(answer string) bool { return answer == "lost" }, Other: propose}
				return mustNew(t, judge.Run(), settings)
			}
			columns := func(task string) map[string]any {
				return map[string]any{"task": task, "rubric": []any{
					criterion("easy", "Is kind.", "weight", 2), criterion("hard", "Rhymes.", "max_score", 5), criterion("anchor", "Is safe.", "anchor", true),
				}}
			}
			groups := func() []grpo.Group {
				return []grpo.Group{
					group("one", columns("x"), "a", "a b", "lost", "a b c"), group("two", columns("y"), "a", "a b", "c"),
					group("three", columns("z"), "c", "b c d"),
				}
			}
			bad := groups()
			bad[1].Prompt.Columns["rubric"] = []any{criterion("y", " ")}
			rewardtest.Run(t, rewardtest.Suite{
				New: fresh, Groups: groups, Unscorable: []int{2},
				Hanging: func(t testing.TB) (rewards.Provider, <-chan struct{}) {
					waits := make(hanging, 1)
					run := rewards.Run{Judge: func() (rewards.Judge, error) { return waits, nil }}
					return mustNew(t, run, settings), waits
				},
				Fault: &rewardtest.Fault{Provider: fresh(t), Groups: bad, Prompt: "two", Completion: -1},
			})
		})
	}
}

// A judge that dies while replacements are made ends the step without a trace: the step made again is that of a run in
// which nothing happened.
func TestAStepThatFailsHalfWayLeavesNoTrace(t *testing.T) {
	down := true
	judge := &scoringtest.Judge{Rule: table{}.rule}
	judge.Other = func(q rewards.Question) (string, error) {
		if down {
			return "", context.DeadlineExceeded
		}
		return propose(q)
	}
	run := judge.Run()
	run.Dir = t.TempDir()
	p := mustNew(t, run, map[string]any{"rubric": []any{criterion("a", "Is kind.")}})
	g := group("p", nil, "x", "y")
	if _, err := p.Score(t.Context(), 0, []grpo.Group{g}); err == nil {
		t.Fatal("no error though the judge is down")
	}
	if len(p.states.now) != 0 || p.journal.Size() != 0 {
		t.Errorf("the failed step left %v and %d bytes of log", p.states.now, p.journal.Size())
	}
	down = false
	if got := ids(mustScore(t, p, 0, g)[0]); got != "rare-0-1" {
		t.Errorf("the step made again has the criteria %s", got)
	}
}
