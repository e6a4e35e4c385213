package amaris_test

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/configs"
	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/rewards/amaris"
	"github.com/rubicon-rl/rubicon/rewards/criteria"
	"github.com/rubicon-rl/rubicon/rewards/rubric"
)

var domains = []string{"science.yaml", "medicine.yaml", "instruction.yaml", "writing.yaml"}

// nobody is a judge, and an embedder, that is never asked.
type nobody struct{}

func (nobody) Ask(context.Context, rewards.Question) (string, error) {
	return "", errors.New("not here")
}

func (nobody) Embed(context.Context, []string) ([][]float32, error) {
	return nil, errors.New("not here")
}

func (nobody) Name() string { return "nobody" }

// load reads files in order and opens the reward that they configure.
func load(t *testing.T, files ...string) *configs.Config {
	t.Helper()
	c, _, err := configs.Load(files, nil, nil)
	if err != nil {
		t.Fatalf("%v: %v", files, err)
	}
	run := rewards.Run{
		Judge: func() (rewards.Judge, error) { return nobody{}, nil },
		Embedder: func(name string) (rewards.Embedder, error) {
			if name != "minilm" || c.Embedder.Path == "" {
				t.Errorf("%v: embedder %s with path %q, the paper's is MiniLM", files, name, c.Embedder.Path)
			}
			return nobody{}, nil
		},
	}
	open := map[string]func(rewards.Run, map[string]any) (rewards.Provider, error){"amaris": amaris.New, "rubric": rubric.New}[c.Reward.Kind]
	options := maps.Clone(c.Reward.Options)
	if options["from_run"] != nil {
		options["from_run"] = finished(t)
	}
	if _, err := open(run, options); err != nil {
		t.Fatalf("%v: %v", files, err)
	}
	return c
}

// finished is the folder of a run that had a rubric.
func finished(t *testing.T) string {
	dir := t.TempDir()
	log, err := criteria.OpenLog(dir)
	if err != nil {
		t.Fatal(err)
	}
	set, err := criteria.NewSet(criteria.Global, 7, []criteria.Criterion{{ID: "a", Text: "x", Weight: 1}})
	if err == nil {
		err = errors.Join(log.Append(criteria.Event{Kind: criteria.Init, Set: &set}), log.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// The paper's setting (sec. 3.3) for every domain and both scopes.
func TestPaper(t *testing.T) {
	for _, domain := range domains {
		global := load(t, "paper.yaml", domain)
		o := global.Reward.Options
		if global.Data.TrainBatchSize != 256 || global.GRPO.NumGenerations != 4 || global.Optim.MaxSteps != 400 || global.Checkpoint.SaveSteps != 50 {
			t.Errorf("%s: batch %d x %d, %d steps, checkpoint every %v", domain, global.Data.TrainBatchSize, global.GRPO.NumGenerations,
				global.Optim.MaxSteps, global.Checkpoint.SaveSteps)
		}
		if o["scope"] != "global" || o["execution"] != "async" || o["max_staleness"] != 1 || o["update_interval"] != 1 || o["retrieval"] != "both" ||
			o["summaries"] != 4 || o["queries"] != 10 || o["chunk_size"] != 32 {
			t.Errorf("%s: options %v", domain, o)
		}
		if tiers := global.Judge.Tiers; global.Judge.Model != "openai/gpt-oss-120b" || len(tiers) != 3 || tiers["summarize"].Model != "gpt-5.1" ||
			tiers["query"].Model != "gpt-5.1" || tiers["update"].Model != "gpt-5.1" {
			t.Errorf("%s: judge %s, tiers %v", domain, global.Judge.Model, tiers)
		}
		own := load(t, "paper.yaml", domain, "instance.yaml").Reward.Options
		if own["scope"] != "instance" || own["column"] != "rubric" || own["goal"] != o["goal"] {
			t.Errorf("%s, instance: options %v", domain, own)
		}
	}
}

// ablations are the files that come after a domain, and the options that they set.
func ablations() map[string]map[string]any {
	return map[string]map[string]any{
		"memory-none.yaml": {"retrieval": "none"}, "sync.yaml": {"execution": "sync"}, "regime-initial-static.yaml": {"frozen": true},
		"regime-final-static.yaml": {"frozen": true}, "rar.yaml": {"column": "rubric"}, "scalar-goal.yaml": {"mode": "goal"},
		"scalar-goal-ref.yaml":   {"mode": "goal_ref", "reference_column": "reference_answer"},
		"memory-static-2.yaml":   {"retrieval": "static", "summaries": 2},
		"memory-static-4.yaml":   {"retrieval": "static", "summaries": 4},
		"memory-static-6.yaml":   {"retrieval": "static", "summaries": 6},
		"memory-static-8.yaml":   {"retrieval": "static", "summaries": 8},
		"memory-dynamic-5.yaml":  {"retrieval": "dynamic", "queries": 5},
		"memory-dynamic-10.yaml": {"retrieval": "dynamic", "queries": 10},
		"memory-dynamic-15.yaml": {"retrieval": "dynamic", "queries": 15},
		"interval-2.yaml":        {"update_interval": 2},
		"interval-4.yaml":        {"update_interval": 4},
		"interval-6.yaml":        {"update_interval": 6},
		"interval-8.yaml":        {"update_interval": 8},
		"instance.yaml":          {"scope": "instance"},
		"judge-qwen3-30b.yaml":   {}, "judge-qwen3-235b.yaml": {}, "judge-gpt-4o.yaml": {}, "judge-gpt-5-mini.yaml": {}, "base-qwen3-4b.yaml": {},
	}
}

// Every ablation loads on every domain, and changes what its table varies.
func TestAblations(t *testing.T) {
	want := ablations()
	all, err := filepath.Glob("*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	all = slices.DeleteFunc(all, func(name string) bool { return name == "paper.yaml" || slices.Contains(domains, name) })
	if names := slices.Sorted(maps.Keys(want)); !slices.Equal(names, all) {
		t.Fatalf("files %v, tested %v", all, names)
	}
	for name, options := range want {
		for _, domain := range domains {
			c := load(t, "paper.yaml", domain, name)
			for key, value := range options {
				if c.Reward.Options[key] != value {
					t.Errorf("%s, %s: %s is %v, want %v", domain, name, key, c.Reward.Options[key], value)
				}
			}
		}
	}
}

// The tables of models change the model that they vary and keep the rest.
func TestModels(t *testing.T) {
	for name, models := range map[string][2]string{
		"judge-qwen3-30b.yaml":  {"Qwen/Qwen3-30B-A3B-Thinking-2507", "gpt-5.1"},
		"judge-qwen3-235b.yaml": {"Qwen/Qwen3-235B-A22B-Thinking-2507", "gpt-5.1"},
		"judge-gpt-4o.yaml":     {"openai/gpt-oss-120b", "gpt-4o"},
		"judge-gpt-5-mini.yaml": {"openai/gpt-oss-120b", "gpt-5-mini"},
	} {
		j := load(t, "paper.yaml", "science.yaml", name).Judge
		if j.Model != models[0] || j.Tiers["summarize"].Model != models[1] || j.Tiers["query"].Model != models[1] || j.Tiers["update"].Model != models[1] ||
			j.Tiers["update"].URL != "https://api.openai.com/v1" {
			t.Errorf("%s: %s, %v", name, j.Model, j.Tiers)
		}
	}
	if c := load(t, "paper.yaml", "science.yaml", "base-qwen3-4b.yaml"); !strings.Contains(c.Model.Path, "Qwen3-4B") {
		t.Errorf("policy %s", c.Model.Path)
	}
}
