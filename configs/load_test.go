package configs

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func mustLoad(t *testing.T, files, overrides, env []string) (*Config, []Note) {
	t.Helper()
	c, notes, err := Load(files, overrides, env)
	if err != nil {
		t.Fatal(err)
	}
	return c, notes
}

func TestLoadPrecedence(t *testing.T) {
	a := write(t, "first.yaml", "seed: 1\noptim: {learning_rate: 1e-4, weight_decay: 0.1}\nrollout: {stop: [a, b], top_k: 5}\n")
	b := write(t, "second.yaml", "optim:\n  learning_rate: 2e-4\nrollout: {stop: [c]}\ngrpo:\n  beta: 0.5\n")
	c, _ := mustLoad(t, []string{a, b}, []string{"optim.adam_beta1=0.8", "grpo.beta=0.25", "grpo.beta=0.125"},
		[]string{"RUBICON_OPTIM_ADAM_BETA1=0.7", "RUBICON_ROLLOUT_TOP_K=7", "HOME=/"})
	want := Default()
	want.RunName, want.OutputDir = "first", "runs/first"
	want.Seed = 1
	want.Optim.LearningRate, want.Optim.WeightDecay, want.Optim.AdamBeta1 = 2e-4, 0.1, 0.8
	want.Rollout.Stop, want.Rollout.TopK = []string{"c"}, 7 // lists are replaced, siblings kept
	want.GRPO.Beta = 0.125
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got %+v\nwant %+v", c, want)
	}
}

// What viper would do to case, dots and types of free-form keys must not happen.
func TestLoadFreeForm(t *testing.T) {
	a := write(t, "a.yaml", `
data: {columns: {Reference: Answer, "a.b": c}}
reward:
  options: {Keep: 1, Nested: {X: 1.0, y: [1, two, null, true]}, date: 2024-01-02, "null": ~}
`)
	b := write(t, "b.yaml", "reward: {options: {Nested: {z: 0x10}, keep: 2}}")
	c, _ := mustLoad(t, []string{a, b}, []string{"reward.options.Nested.X=2.5", "reward.options.New.Deep=text", "data.columns.gold=Answer"}, nil)
	want := map[string]any{
		"Keep": 1, "keep": 2, "date": "2024-01-02", "null": nil, "New": map[string]any{"Deep": "text"},
		"Nested": map[string]any{"X": 2.5, "y": []any{1, "two", nil, true}, "z": 16},
	}
	if !reflect.DeepEqual(c.Reward.Options, want) {
		t.Errorf("options: %#v\nwant %#v", c.Reward.Options, want)
	}
	if got := map[string]string{"Reference": "Answer", "a.b": "c", "gold": "Answer"}; !reflect.DeepEqual(c.Data.Columns, got) {
		t.Errorf("columns: %#v", c.Data.Columns)
	}
	c, _ = mustLoad(t, []string{a, b}, []string{"reward.options=null", "reward.options.only=1"}, nil)
	if !reflect.DeepEqual(c.Reward.Options, map[string]any{"only": 1}) {
		t.Errorf("null must empty a mapping: %#v", c.Reward.Options)
	}
}

// What a layer says of one tier adds to what others say of it.
func TestLoadTiers(t *testing.T) {
	a := write(t, "a.yaml", `judge: {url: "http://a/v1", model: m, tiers: {update: {url: "http://u/v1", model: big, temperature: 0}}}`)
	b := write(t, "b.yaml", "judge: {tiers: {update: {max_tokens: 5}, query: {timeout: 3}}}")
	c, _ := mustLoad(t, []string{a, b}, []string{"judge.tiers.update.model=bigger", "judge.tiers.query.model=q", "judge.tiers.query.url=http://q/v1"}, nil)
	want := map[string]JudgeModel{
		"update": {URL: "http://u/v1", Model: "bigger", Temperature: new(float64), MaxTokens: 5},
		"query":  {URL: "http://q/v1", Model: "q", Timeout: 3},
	}
	if !reflect.DeepEqual(c.Judge.Tiers, want) {
		t.Errorf("tiers: %+v\nwant %+v", c.Judge.Tiers, want)
	}
}

// The options of one kind of reward are none of another's: a layer that changes the kind begins them anew, wherever in the
// layer it says so, and a layer that repeats it adds to them.
func TestLoadAnotherKindOfReward(t *testing.T) {
	a := write(t, "a.yaml", "reward: {options: {checks: [1], column: c}, kind: verify}")
	b := write(t, "b.yaml", "reward: {options: {rubric: [2]}, kind: rubric}")
	for _, tt := range []struct {
		files, overrides []string
		want             map[string]any
	}{
		{[]string{a, b}, nil, map[string]any{"rubric": []any{2}}},
		{[]string{a}, []string{"reward.options.mode=implicit", "reward.kind=rubric"}, map[string]any{"mode": "implicit"}},
		{[]string{a}, []string{"reward.kind=rubric"}, nil},
		{[]string{a}, []string{"reward.kind=verify", "reward.options.clip=signed"}, map[string]any{"checks": []any{1}, "column": "c", "clip": "signed"}},
		{[]string{b, a}, []string{"reward.kind=rare"}, nil},
	} {
		c, _ := mustLoad(t, tt.files, tt.overrides, nil)
		if !reflect.DeepEqual(c.Reward.Options, tt.want) {
			t.Errorf("%v %v: options %#v, want %#v", tt.files, tt.overrides, c.Reward.Options, tt.want)
		}
	}
}

func TestLoadText(t *testing.T) {
	c, _ := mustLoad(t, nil, []string{
		"run_name=123", "data.train_files=a.jsonl, b.parquet", "eval.files=[c.jsonl]", "rollout.stop=", "data.system_prompt=a: b # c",
		"grpo.epsilon_high=0.28", "grpo.delta=null", "lora.target_modules=all-linear", "optim.max_steps=1e3", "data.seed=7",
		"reward.kind=mix", "reward.parts=[{kind: verify, weight: 2}, {kind: verify, name: h}]",
	}, []string{"RUBICON_DATA_SHUFFLE=false", "RUBICON_TOP_P=0.9", "RUBICON_REWARD_OPTIONS=null"})
	want := Default()
	want.RunName, want.OutputDir = "123", "runs/123"
	want.Data.TrainFiles, want.Eval.Files = []string{"a.jsonl", "b.parquet"}, []string{"c.jsonl"}
	want.Data.SystemPrompt, want.Data.Shuffle, want.Data.Seed = "a: b # c", false, ptr(int64(7))
	want.GRPO.EpsilonHigh = ptr(0.28)
	want.Optim.MaxSteps, want.Rollout.TopP = 1000, 0.9
	want.Reward.Kind = "mix"
	want.Reward.Parts = []RewardPart{{Kind: "verify", Weight: 2}, {Kind: "verify", Name: "h", Weight: 1}}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got %+v\nwant %+v", c, want)
	}
}

// Each row is one way to get a value silently wrong, or a key silently ignored.
func TestLoadFaults(t *testing.T) {
	for name, tt := range map[string]struct {
		file, override, env string
		want                []string
	}{
		"unknown key":          {file: "a: 1\noptim:\n  learning_rte: 1\n", want: []string{"f.yaml:3: optim.learning_rte: unknown key: did you mean optim.learning_rate?", "f.yaml:1: a: unknown key"}},
		"key of another place": {override: "optim.save_steps=3", want: []string{"did you mean checkpoint.save_steps?"}},
		"misspelt TRL name":    {override: "num_generation=4", want: []string{"did you mean num_generations?"}},
		"wrong case":           {file: "Seed: 1", want: []string{"did you mean seed?"}},
		"fraction":             {file: "seed: 3.7", want: []string{"f.yaml:1: seed: 3.7 is not a whole number"}},
		"octal":                {file: "seed: 010", want: []string{"begins with a 0"}},
		"too large":            {file: "seed: 1e300", want: []string{"too large"}},
		"text for number":      {file: "seed: \"3\"", want: []string{`is "3", want a whole number`}},
		"number for text":      {file: "run_name: 3", want: []string{"is 3, want text: write it in quotes"}},
		"yes for true":         {file: "data: {shuffle: yes}", want: []string{`is "yes", want true or false`}},
		"null":                 {file: "optim:\n  learning_rate:\n", want: []string{"f.yaml:2: optim.learning_rate: has no value"}},
		"nan":                  {file: "optim: {learning_rate: .nan}", want: []string{"not a finite number"}},
		"list for number":      {file: "seed: [1]", want: []string{"is a list, want a whole number"}},
		"section as value":     {file: "optim: 3", want: []string{"optim: is"}},
		"value as section":     {file: "seed: {a: 1}", want: []string{"is a mapping, want a whole number"}},
		"below a value":        {override: "seed.x=1", want: []string{"seed is no section"}},
		"list item":            {override: "reward.parts.0.weight=2", want: []string{"reward.parts as a whole"}},
		"key twice":            {file: "seed: 1\nseed: 2", want: []string{"f.yaml:2: seed: stands twice"}},
		"two names":            {file: "learning_rate: 1e-5\noptim: {learning_rate: 1e-4}", want: []string{"optim.learning_rate: sets optim.learning_rate, which", "f.yaml:1 sets too"}},
		"option twice":         {file: "reward: {options: {a: 1, a: 2}}", want: []string{"a stands twice"}},
		"two documents":        {file: "seed: 1\n---\nseed: 2", want: []string{"more than one document"}},
		"anchor":               {file: "data: {train_files: &f [a]}\neval: {files: *f}", want: []string{"eval.files: anchors and aliases"}},
		"merge key":            {file: "optim: {<<: {learning_rate: 1}}", want: []string{"a key must be plain text"}},
		"no mapping":           {file: "- a", want: []string{"not a mapping"}},
		"syntax":               {file: "a: [", want: []string{"f.yaml: not valid YAML", "line 1"}},
		"unknown variable":     {env: "RUBICON_OPTIM_LEARNING_RAT=1", want: []string{"RUBICON_OPTIM_LEARNING_RAT: sets no key: did you mean RUBICON_OPTIM_LEARNING_RATE?"}},
		"bad variable":         {env: "RUBICON_SEED=x", want: []string{"environment variable RUBICON_SEED: seed: is \"x\""}},
		"not key=value":        {override: "seed", want: []string{`"seed" is not key=value`}},
		"unknown part key":     {override: "reward.parts=[{kind: verify, wieght: 1}]", want: []string{"item 1: wieght: unknown key: did you mean weight?"}},
		"empty list item":      {file: "rollout: {stop: [a, ~]}", want: []string{"item 2: has no value"}},
	} {
		t.Run(name, func(t *testing.T) {
			var files, overrides, env []string
			if tt.file != "" {
				files = []string{write(t, "f.yaml", tt.file)}
			}
			if tt.override != "" {
				overrides = []string{tt.override}
			}
			if tt.env != "" {
				env = []string{tt.env}
			}
			c, _, err := Load(files, overrides, env)
			if err == nil || c != nil {
				t.Fatalf("no error, config %+v", c)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q\nlacks %q", err, want)
				}
			}
		})
	}
}

func TestLoadMissingFile(t *testing.T) {
	_, _, err := Load([]string{"no/such.yaml"}, nil, nil)
	if err == nil || !strings.Contains(err.Error(), "no/such.yaml") || !strings.Contains(err.Error(), "default.yaml") {
		t.Errorf("error %v must name the file and list those inside the binary", err)
	}
	for _, name := range []string{"default", "default.yaml", "configs/default.yaml"} {
		if c, _ := mustLoad(t, []string{name}, nil, nil); c.RunName != "default" {
			t.Errorf("%s: run_name %q", name, c.RunName)
		}
	}
}

// Every configuration inside the binary is valid and says nothing that needs a note.
func TestEmbedded(t *testing.T) {
	for _, name := range embeddedNames() {
		if _, notes, err := Load([]string{name}, nil, nil); err != nil || len(notes) > 0 {
			t.Errorf("%s: %v, notes %v", name, err, notes)
		}
	}
}

// True and false among a key's words need no quotes.
func TestLoadWords(t *testing.T) {
	c, _ := mustLoad(t, []string{write(t, "f.yaml", "grpo: {scale_rewards: false}")}, nil, nil)
	if c.GRPO.ScaleRewards != "false" {
		t.Errorf("scale_rewards %q", c.GRPO.ScaleRewards)
	}
}

// The order of the environment does not show.
func TestLoadEnvironmentOrder(t *testing.T) {
	_, _, a := Load(nil, nil, []string{"RUBICON_X=1", "RUBICON_SEED=x", "RUBICON_A=1"})
	_, _, b := Load(nil, nil, []string{"RUBICON_A=1", "RUBICON_X=1", "RUBICON_SEED=x"})
	if a == nil || b == nil || a.Error() != b.Error() {
		t.Errorf("%v\n%v", a, b)
	}
}

// All faults are reported at once.
func TestLoadReportsAll(t *testing.T) {
	_, _, err := Load(nil, []string{"sed=1", "top_p=2", "grpo.num_generations=1", "optim.max_steps=0"}, nil)
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"did you mean seed?", "rollout.top_p is 2: set it to at most 1", "grpo.num_generations", "optim.max_steps is 0"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q lacks %q", err, want)
		}
	}
}

func TestResolve(t *testing.T) {
	c, notes := mustLoad(t, nil, []string{"model.trainable=full"}, nil)
	if c.Optim.LearningRate != 1e-6 || len(notes) != 1 || c.RunName != "run" || c.OutputDir != filepath.Join("runs", "run") {
		t.Errorf("lr %v, notes %v, name %q, dir %q", c.Optim.LearningRate, notes, c.RunName, c.OutputDir)
	}
	if c, _ = mustLoad(t, nil, []string{"use_peft=false", "learning_rate=1e-5"}, nil); c.Optim.LearningRate != 1e-5 {
		t.Errorf("a rate that was set must stay, got %v", c.Optim.LearningRate)
	}
	c, _ = mustLoad(t, nil, []string{"data.train_batch_size=6", "rollout.n=4"}, nil)
	b, err := c.Batching(1)
	if err != nil || b.Prompts != 6 || b.GenerationBatch != 24 || b.PerDevice != 8 || b.GradAccum != 3 {
		t.Errorf("batching %+v, %v", b, err)
	}
	if b, err = c.Batching(2); err != nil || b.Prompts != 6 || b.PerDevice != 6 {
		t.Errorf("batching of two processes %+v, %v", b, err)
	}
	c, _ = mustLoad(t, nil, []string{"num_generations=3"}, nil) // no fault in itself: sft has no groups
	if _, err := c.Batching(1); err == nil {
		t.Error("8 completions do not hold whole groups of 3")
	}
	c, _ = mustLoad(t, nil, []string{"max_completion_length=77"}, nil)
	if c.GRPO.MaxCompletionLength != 77 {
		t.Error("max_completion_length did not reach its copies")
	}
}

func FuzzLoad(f *testing.F) {
	f.Add("seed: 1\nreward: {options: {a: [1, {b: c}]}}\n", "reward.options.x=[1,2]")
	f.Add("optim: adamw_torch\nlr_scheduler_kwargs: '{num_cycles: 2}'", "a.b.c=d")
	f.Add("data: {columns: {a: b}}\n? [x]\n: y", "=")
	f.Add("&a [*a]", "seed=!!float 3")
	f.Fuzz(func(t *testing.T, file, override string) {
		path := filepath.Join(t.TempDir(), "f.yaml")
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Skip()
		}
		c, _, err := Load([]string{path}, []string{override}, nil)
		if (c == nil) == (err == nil) {
			t.Fatalf("config %v, error %v", c, err)
		}
	})
}
