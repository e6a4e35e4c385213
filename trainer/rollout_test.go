package trainer

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/rubicon-rl/rubicon/configs"
	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/rewards"
)

// Dynamic sampling writes down what is said of the groups of every draw.
func TestDynamicSamplingKeepsDetailsOfAllDraws(t *testing.T) {
	p := parts(t, "num_generations=2", "per_device_train_batch_size=4", "grpo.dynamic_sampling=true", "grpo.max_num_gen_batches=3", "max_steps=1", "output_dir="+t.TempDir())
	reward := &parityReward{flat: []int{0}}
	tr := grpoRun(t, p, reward)
	check(t, tr.Run(t.Context()))
	if len(reward.learned) != 1 || len(reward.learned[0]) != 6 {
		t.Errorf("the reward learned from %v, want all six groups, though none is trained on", reward.learned)
	}
	lines, err := readCompletions(tr.dir.join("completions", "step_1.jsonl"))
	check(t, err)
	if len(lines) != 12 {
		t.Fatalf("%d completions, want three draws of 4", len(lines))
	}
	for i, l := range lines {
		if l.Reason != "scored" {
			t.Errorf("completion %d: reason %q", i, l.Reason)
		}
	}
	if tr.state.Skipped != 1 || tr.state.Step != 1 {
		t.Errorf("%d of %d steps skipped, want 1 of 1", tr.state.Skipped, tr.state.Step)
	}
}

// Dynamic sampling ends when there are enough groups with signal, and trains on no more.
func TestDynamicSamplingTrainsOnWhatIsWanted(t *testing.T) {
	p := parts(t, "num_generations=2", "per_device_train_batch_size=6", "grpo.dynamic_sampling=true", "num_train_epochs=1", "output_dir="+t.TempDir())
	tr := grpoRun(t, p, &parityReward{half: true})
	check(t, tr.refill(t.Context()))
	if n := len(tr.buffer.kept()); n != 3 || tr.state.Draws != 3 || len(tr.buffer.Groups) != 9 {
		t.Errorf("%d groups after %d draws of one with signal, want 3 after 3", n, tr.state.Draws)
	}
	p = parts(t, "num_generations=2", "per_device_train_batch_size=6", "grpo.dynamic_sampling=true", "grpo.max_num_gen_batches=2", "output_dir="+t.TempDir())
	tr = grpoRun(t, p, &parityReward{})
	check(t, tr.refill(t.Context()))
	if n := len(tr.buffer.kept()); n != 3 || tr.state.Draws != 1 {
		t.Errorf("%d groups after %d draws of three with signal, want 3 after 1", n, tr.state.Draws)
	}
}

// The same prompt is answered otherwise in each generation, and in evaluation.
func TestStreamsDiffer(t *testing.T) {
	p := parts(t, "eval.temperature=1", "output_dir="+t.TempDir())
	tr := grpoRun(t, p, &parityReward{})
	seen := map[string]string{}
	for name, stream := range map[string][]uint64{"generation 1": {streamSample, 1}, "generation 2": {streamSample, 2}, "evaluation": {streamEval}} {
		groups, err := tr.rollouts.Sample(t.Context(), []*grpo.Prompt{&tr.Prompts[0], &tr.Prompts[1]}, 2, p.Config.Rollout.Sampling, stream...)
		check(t, err)
		for _, g := range groups {
			for i, c := range g.Completions {
				key := fmt.Sprint(c.Tokens)
				if other := seen[key]; other != "" {
					t.Errorf("%s, prompt %s, completion %d is that of %s", name, g.Prompt.ID, i, other)
				}
				seen[key] = name
			}
		}
	}
}

// Where a micro-batch holds whole groups, a group is in one micro-batch, and the order is not the data's.
func TestCutKeepsGroupsWhole(t *testing.T) {
	p := parts(t, "num_generations=2", "per_device_train_batch_size=2", "gradient_accumulation_steps=8", "output_dir="+t.TempDir())
	tr := grpoRun(t, p, &parityReward{})
	tr.details = map[*grpo.Completion]Detail{}
	groups, err := tr.sample(t.Context())
	check(t, err)
	tr.buffer = buffer{Groups: groups, Serves: tr.batching.MicroSteps()}
	for i := range groups {
		tr.buffer.Kept = append(tr.buffer.Kept, i)
	}
	check(t, tr.cut(t.Context()))
	var order []string
	for _, rows := range tr.buffer.micro {
		if len(rows) != 2 || rows[0].Prompt != rows[1].Prompt || rows[0].Completion == rows[1].Completion {
			t.Fatalf("micro-batch %v is no whole group", rows)
		}
		order = append(order, rows[0].Prompt.ID)
	}
	var sampled []string
	for _, g := range groups {
		sampled = append(sampled, g.Prompt.ID)
	}
	if slices.Equal(order, sampled) {
		t.Errorf("groups are not shuffled: %v", order)
	}
}

// The KL in the reward is about every completion, though truncated ones are not trained on.
func TestKLInRewardCountsTruncatedCompletions(t *testing.T) {
	ref := map[bool][]float32{}
	for _, masked := range []bool{false, true} {
		p := parts(t, "beta=0.1", "grpo.kl_in_reward=true", fmt.Sprint("mask_truncated_completions=", masked), "output_dir="+t.TempDir())
		c := &grpo.Completion{Tokens: []int32{7, 8, 9}, Truncated: true}
		check(t, grpoRun(t, p, &parityReward{}).noteReference(t.Context(), []grpo.Group{{Prompt: &prompts(1)[0], Completions: []*grpo.Completion{c}}}))
		ref[masked] = c.Ref
	}
	if !slices.Equal(ref[true], ref[false]) || ref[true][0] == 0 {
		t.Errorf("reference log-probabilities %v, want %v", ref[true], ref[false])
	}
}

// Scores that do not fit the completions are errors, never moved to others.
func TestScoreRefusesWhatDoesNotFit(t *testing.T) {
	column := func(names ...string) rewards.Score {
		var s rewards.Score
		for _, n := range names {
			s.Columns = append(s.Columns, rewards.Column{Name: n, Weight: 1})
		}
		return s
	}
	for name, scores := range map[string]fixed{
		"too few":           {{}},
		"columns missing":   {column("a", "b"), column("a")},
		"columns in places": {column("a", "b"), column("b", "a")},
	} {
		r := Rollouts{Config: configs.Default(), Provider: scores, Name: "fixed"}
		groups := []grpo.Group{{Prompt: &prompts(1)[0], Completions: []*grpo.Completion{{}, {}}}}
		if _, err := r.Score(t.Context(), 0, groups); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

type fixed []rewards.Score

func (f fixed) Score(context.Context, int, []grpo.Group) ([]rewards.Score, error) { return f, nil }
