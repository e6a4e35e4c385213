package trainer

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/rewards/audit"
	"github.com/rubicon-rl/rubicon/rewards/rubric"
	"github.com/rubicon-rl/rubicon/trainer/health"
	"github.com/rubicon-rl/rubicon/trainer/track"
)

// scoreBy is a reward: the value of completion k of a group of texts in a step.
type scoreBy func(step, k int, text string) float64

func (f scoreBy) Score(_ context.Context, step int, groups []grpo.Group) ([]rewards.Score, error) {
	var out []rewards.Score
	for _, g := range groups {
		for k, c := range g.Completions {
			out = append(out, rewards.Score{Value: f(step, k, c.Text)})
		}
	}
	return out, nil
}

// oneLetter rewards texts that have few different letters, which a policy learns fast.
func oneLetter(_, _ int, text string) float64 {
	seen := map[rune]bool{}
	for _, r := range text {
		seen[r] = true
	}
	return 1 / float64(1+len(seen))
}

// small are the settings of a run of steps that take milliseconds.
func small(dir string, steps int, more ...string) []string {
	return append([]string{"num_generations=4", "per_device_train_batch_size=8", "gradient_accumulation_steps=1", fmt.Sprint("max_steps=", steps),
		"eval.eval_on_end=false", "checkpoint.save_steps=0", "output_dir=" + dir}, more...)
}

// found are the diagnoses in a run's folder.
func found(t *testing.T, dir string) map[string]health.Finding {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "health.jsonl"))
	check(t, err)
	out := map[string]health.Finding{}
	for line := range strings.Lines(string(b)) {
		var f health.Finding
		check(t, json.Unmarshal([]byte(line), &f))
		out[f.Kind] = f
	}
	return out
}

// Runs that go wrong, and what is found.
func TestRunsGoWrong(t *testing.T) {
	for kind, c := range map[string]struct {
		reward   scoreBy
		steps    int
		settings []string
	}{
		"no-signal":         {func(int, int, string) float64 { return 1 }, 12, nil},
		"adapter-unchanged": {oneLetter, 12, []string{"optim.learning_rate=0"}},
		"reward-collapse": {func(step, k int, _ string) float64 {
			if step >= 30 {
				return float64(k) / 100
			}
			return 1 - 1/float64(2+step) + float64(k)/100
		}, 60, []string{"optim.learning_rate=0.0001"}},
		"kl-runaway":       {oneLetter, 30, []string{"grpo.beta=0.001", "optim.learning_rate=0.05"}},
		"entropy-collapse": {oneLetter, 60, []string{"optim.learning_rate=0.05"}},
		"off-policy-gap":   {oneLetter, 20, []string{"optim.learning_rate=0.05", "num_iterations=8"}},
	} {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			var said bytes.Buffer
			p := parts(t, small(dir, c.steps, c.settings...)...)
			p.Console = &track.Console{W: &said, Now: p.Now}
			check(t, grpoRun(t, p, c.reward).Run(t.Context()))
			f, there := found(t, dir)[kind]
			if !there {
				t.Fatalf("found %v, want %s", found(t, dir), kind)
			}
			if n := strings.Count(said.String(), "docs/health.md#"+kind); n != 1 {
				t.Errorf("%q was told %d times, want once: %s", f.Text, n, said.String())
			}
		})
	}
}

// A disk that fills, and the same diagnoses from the folder of a run that was resumed.
func TestDiskNearlyFull(t *testing.T) {
	dir := t.TempDir()
	free := int64(3e9)
	for _, steps := range []int{2, 4} {
		p := parts(t, small(dir, steps, "checkpoint.resume=auto")...)
		p.DiskFree = func(string) (int64, bool) { free -= 600e6; return free, true } // 2.4, 1.8, 1.2, 0.6 GB
		tr := grpoRun(t, p, scoreBy(oneLetter))
		check(t, tr.Run(t.Context()))
		check(t, tr.Close())
		if f, there := found(t, dir)["disk-nearly-full"]; there != (steps == 4) || there && f.Step != 4 {
			t.Errorf("after %d steps: %v, %v", steps, f, there)
		}
	}
	records, err := track.ReadJSONL(filepath.Join(dir, "metrics.jsonl"))
	check(t, err)
	if got := health.Diagnose(records); len(got) != 1 || got[0] != found(t, dir)["disk-nearly-full"] {
		t.Errorf("from the folder: %v, found in the run: %v", got, found(t, dir))
	}
}

// scorer is a judge that gives one score to everything.
type scorer struct{ score func() int }

func (j scorer) Ask(_ context.Context, q rewards.Question) (string, error) {
	return fmt.Sprintf(`{"right":{"reason":"","score":%d}}`, j.score()), nil
}

// A judge that is talked round: at first it scores as the independent one does, later everything in full. It is looked at every
// second step.
func TestJudgeDrift(t *testing.T) {
	dir := t.TempDir()
	p := parts(t, small(dir, 24, "judge.audit.steps=2", "judge.audit.url=unused", "track.logging_steps=2")...)
	kind := 0
	kindly := audit.New(scorer{func() int { return kind }}, scorer{func() int { return 0 }}, 3, 1)
	r, err := rubric.New(rewards.Run{Judge: func() (rewards.Judge, error) { return kindly, nil }},
		map[string]any{"rubric": []any{map[string]any{"id": "right", "text": "It is right.", "weight": 1}}})
	check(t, err)
	tr, err := New(p, Task{Prompts: prompts(8), Provider: &talkedRound{r, &kind, 13}, Name: "rubric", Auditor: kindly})
	check(t, err)
	t.Cleanup(func() { tr.Close() })
	check(t, tr.Run(t.Context()))
	records, err := track.ReadJSONL(filepath.Join(dir, "metrics.jsonl"))
	check(t, err)
	if v := records[11].Values; v["judge/audit/questions"] != 3 || v["judge/audit/bias"] != 1 {
		t.Errorf("audit of the last step: %v", v)
	}
	if f := found(t, dir)["judge-drift"]; f.Step != 14 || !strings.Contains(f.Text, "more generous") {
		t.Errorf("found %v, want judge-drift at step 14", found(t, dir))
	}
	if f := found(t, dir)["saturated-rubric"]; !strings.Contains(f.Text, "met in full: right") {
		t.Errorf("found %v, want saturated-rubric", found(t, dir))
	}
}

// talkedRound makes a judge generous from a step on.
type talkedRound struct {
	rewards.Provider
	kind *int
	step int
}

func (r *talkedRound) Score(ctx context.Context, step int, groups []grpo.Group) ([]rewards.Score, error) {
	if step >= r.step {
		*r.kind = 1
	}
	return r.Provider.Score(ctx, step, groups)
}

func (r *talkedRound) Metrics() map[string]float64 { return r.Provider.(rewards.Drawer).Metrics() }

// gone is an independent judge that cannot be reached.
type gone struct{ listened int }

func (g *gone) Listen() { g.listened++ }

func (g *gone) Compare(context.Context) (map[string]float64, error) { return nil, errDead }

// That the independent judge is gone is said, and stops nothing.
func TestAuditWithoutJudge(t *testing.T) {
	var said bytes.Buffer
	p := parts(t, small(t.TempDir(), 4, "judge.audit.steps=2", "judge.audit.url=unused")...)
	p.Console = &track.Console{W: &said, Now: p.Now}
	auditor := &gone{}
	tr, err := New(p, Task{Prompts: prompts(8), Provider: scoreBy(oneLetter), Name: "letters", Auditor: auditor})
	check(t, err)
	t.Cleanup(func() { tr.Close() })
	check(t, tr.Run(t.Context()))
	for _, step := range []int{2, 4} {
		if note := fmt.Sprintf("note: the judge was not audited in step %d: %v\n", step, errDead); !strings.Contains(said.String(), note) {
			t.Errorf("not said: %s", note)
		}
	}
	if auditor.listened != 2 {
		t.Errorf("listened %d times, want in steps 2 and 4", auditor.listened)
	}
}
