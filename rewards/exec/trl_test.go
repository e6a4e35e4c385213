package exec

import (
	"fmt"
	"math"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/rewards"
)

// trl makes a provider of TRL reward functions from testdata.
func trl(t *testing.T, arguments ...string) rewards.Provider {
	t.Helper()
	python, err := osexec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed; it runs scripts/trl_reward.py")
	}
	for i, a := range arguments {
		if !strings.HasPrefix(a, "-") {
			arguments[i] = filepath.Join("testdata", "trl_functions.py:"+a)
		}
	}
	t.Setenv("PYTHONDONTWRITEBYTECODE", "1")
	p, err := New(rewards.Run{Dir: t.TempDir()}, map[string]any{
		"command": append([]string{python, "../../scripts/trl_reward.py"}, arguments...), "env": []string{"PYTHONDONTWRITEBYTECODE"}, "restart": 0,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.(*Provider).Close() })
	return p
}

// sums are two prompts that are text, with two completions each. The second has no answer.
func sums() []grpo.Group {
	return []grpo.Group{
		{Prompt: &grpo.Prompt{ID: "a", Text: "2+2=", Columns: map[string]any{"answer": "4.0", "prompt": "x"}},
			Completions: []*grpo.Completion{{Text: "4.0", Tokens: []int32{1, 2}}, {Text: "fünf 😀", Tokens: []int32{3}}}},
		{Prompt: &grpo.Prompt{ID: "b", Text: "why?", Columns: map[string]any{"answer": nil, "prompt": "x"}},
			Completions: []*grpo.Completion{{Text: "so", Tokens: []int32{7, 8, 9}}, {Text: ""}}},
	}
}

// Expected values by hand from the functions in testdata.
func TestTRLFunctionsRunUnchanged(t *testing.T) {
	none := math.NaN()
	for function, want := range map[string][]float64{
		"length":     {3, 6, 2, 0}, // characters, not bytes
		"correct":    {1, 0, none, none},
		"slow":       {3, 3, 24, none},
		"undeclared": {4, 4, 0, 0},
		"columns":    {4, 4, 4, 4},
		"reader":     {0, 0, 0, 0},
		"threshold":  {1, 1, 1, 0},
	} {
		p := trl(t, function)
		if err := p.(rewards.Preflighter).Preflight(t.Context()); err != nil {
			t.Errorf("%s: %v", function, err)
			continue
		}
		for step := range 2 {
			scores, err := p.Score(t.Context(), step, sums())
			if err != nil {
				t.Errorf("%s: %v", function, err)
				break
			}
			for i, s := range scores {
				if s.Unscorable != math.IsNaN(want[i]) || !s.Unscorable && s.Value != want[i] {
					t.Errorf("%s gives completion %d %+v, want %v", function, i, s, want[i])
				}
			}
		}
	}
}

func TestTRLConversations(t *testing.T) {
	group := grpo.Group{
		Prompt:      &grpo.Prompt{ID: "a", Messages: []grpo.Message{{Role: "system", Content: "repeat"}, {Role: "user", Content: "hi"}}},
		Completions: []*grpo.Completion{{Text: "hi"}, {Text: "ho"}},
	}
	scores, err := trl(t, "chat").Score(t.Context(), 0, []grpo.Group{group})
	if err != nil || scores[0].Value != 1 || scores[1].Value != 0 {
		t.Errorf("%+v %v", scores, err)
	}
}

func TestSeveralTRLFunctions(t *testing.T) {
	scores, err := trl(t, "length", "correct", "slow", "--weights=0.5,-2,1").Score(t.Context(), 0, sums())
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{1.5 - 2 + 3, 3 + 3, 1 + 24, 0} {
		if s := scores[i]; s.Unscorable || s.Value != want || len(s.Columns) != 3 {
			t.Errorf("completion %d: %+v, want %v", i, s, want)
		}
	}
	c := scores[2].Columns[1]
	if c.Name != "correct" || c.Weight != -2 || !math.IsNaN(c.Value) {
		t.Errorf("column %+v, want correct, which cannot score it", c)
	}
}

func TestTRLFunctionsThatFail(t *testing.T) {
	for function, want := range map[string]string{
		"short":    "ValueError: short returned 1 values for 4 completions",
		"infinite": "ValueError: infinite returned inf for completion 0",
		"failing":  "the scorer failed: KeyError: 'solution'",
		"state":    "TypeError: state asks for trainer_state, but there is only answer, completion_ids, completions, log_extra, log_metric, prompts",
	} {
		if _, err := trl(t, function).Score(t.Context(), 0, sums()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q in it", function, err, want)
		}
	}
	for function, want := range map[string]string{"nowhere": "has no attribute 'nowhere'", "": "is not MODULE:FUNCTION"} {
		err := trl(t, function).(rewards.Preflighter).Preflight(t.Context())
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "the command ended (exit status 1)") {
			t.Errorf("%q: error %v, want %q and the status in it", function, err, want)
		}
	}
	if err := trl(t, "length", "--weights=1,2").(rewards.Preflighter).Preflight(t.Context()); err == nil || !strings.Contains(fmt.Sprint(err), "2 weights for 1 functions") {
		t.Errorf("error %v", err)
	}
}
