package trainer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/internal/embedded"
	"github.com/rubicon-rl/rubicon/policy/token"
	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/trainer/env"
)

// counting is an environment whose episodes have so many turns.
type counting struct{ turns int }

type counted struct{ left, played int }

func (c counting) Reset(_ context.Context, row *grpo.Prompt) (env.Episode, env.Observation, error) {
	return &counted{left: c.turns}, env.Observation{Kind: env.Start, Messages: []grpo.Message{{Role: "user", Content: "begin " + row.ID}}}, nil
}

func (c *counted) Step(context.Context, string) (env.Observation, error) {
	c.played++
	if c.played == c.left {
		return env.Observation{Kind: env.End, Done: true, Action: "last"}, nil
	}
	return env.Observation{Kind: env.Result, Action: "move", Messages: []grpo.Message{{Role: "user", Content: fmt.Sprint("seen ", c.played)}}}, nil
}

func (c *counted) Answer() string { return fmt.Sprint("after ", c.played) }

func (c *counted) Outcome() map[string]float64 {
	return map[string]float64{"played": float64(c.played)}
}

// perTurn values every turn by its number.
type perTurn struct{ parityReward }

func (p *perTurn) Score(ctx context.Context, step int, groups []grpo.Group) ([]rewards.Score, error) {
	scores, err := p.parityReward.Score(ctx, step, groups)
	i := 0
	for _, g := range groups {
		for _, c := range g.Completions {
			for k := range c.Episode.Steps {
				scores[i].Turns = append(scores[i].Turns, float64(k))
			}
			i++
		}
	}
	return scores, err
}

func episodeRun(t *testing.T, dir string, overrides ...string) *Trainer {
	t.Helper()
	p := parts(t, append([]string{"num_generations=2", "per_device_train_batch_size=4", "rollout.max_completion_length=60", "output_dir=" + dir}, overrides...)...)
	e := &Episodes{Env: counting{3}, MaxTurnLength: 3, Conversation: Conversation{Tokenizer: p.Tokenizer, EOS: EOS(p.Model.Config(), p.Tokenizer)}}
	tr, err := New(p, Task{Prompts: prompts(8), Provider: &perTurn{}, Name: "parity", Reference: Reference{Model: p.Model}, Episodes: e})
	check(t, err)
	t.Cleanup(func() { tr.Close() })
	return tr
}

// Of an episode only the policy's turns are trained on, each is recorded with what followed it, and its numbers are the sampler's.
func TestEpisodes(t *testing.T) {
	tr := episodeRun(t, t.TempDir(), "max_steps=1")
	check(t, tr.refill(t.Context()))
	for _, g := range tr.buffer.Groups {
		for _, c := range g.Completions {
			if len(c.Episode.Steps) != 3 || c.Truncated || c.Episode.Outcome["played"] != float64(len(c.Episode.Steps)) {
				t.Errorf("%s: %+v, truncated %v", g.Prompt.ID, c.Episode, c.Truncated)
			}
			// Values 0, 1, 2 sum to 3, 3, 2 over the turns to come, in one bucket with a mean of 8/3; half of the difference counts.
			if len(c.Turns) != 3 || math.Abs(c.Turns[0]-1./6) > 1e-12 || math.Abs(c.Turns[2]+1./3) > 1e-12 {
				t.Errorf("advantages of the turns are %v", c.Turns)
			}
			own := make([]bool, len(c.Tokens))
			for k, s := range c.Episode.Steps {
				for i := s.Start; i < s.End; i++ {
					own[i] = true
				}
				between := fmt.Sprintf("\n<|im_start|>user\nseen %d<|im_end|>\n<|im_start|>assistant\n", k+1)
				if k+1 < len(c.Episode.Steps) {
					got := tr.Tokenizer.Decode(c.Tokens[s.End:c.Episode.Steps[k+1].Start], false)
					if strings.TrimPrefix(got, "<|im_end|>") != between || s.Observation != fmt.Sprint("seen ", k+1) || s.Action != "move" {
						t.Errorf("after turn %d: %q and %+v, want %q", k, got, s, between)
					}
				}
				if s.Value != float64(k) || s.Said != tr.Tokenizer.Decode(c.Tokens[s.Start:s.End], true) {
					t.Errorf("turn %d: %+v", k, s)
				}
			}
			if !slices.Equal(own, c.Mask) || c.Own() >= len(c.Tokens) {
				t.Errorf("mask %v, turns %v", c.Mask, own)
			}
		}
	}
	check(t, tr.Run(t.Context()))
	lines, err := readCompletions(tr.dir.join("completions", "step_1.jsonl"))
	check(t, err)
	if len(lines) != 4 || len(lines[0].Steps) < 2 || lines[0].Outcome["played"] < 2 {
		t.Errorf("written down: %+v", lines)
	}
}

// An episode that has no tokens left is cut off: its last turn has no observation, and it counts as truncated.
func TestEpisodeCutOff(t *testing.T) {
	tr := episodeRun(t, t.TempDir(), "max_steps=1", "rollout.max_completion_length=5")
	check(t, tr.refill(t.Context()))
	for _, g := range tr.buffer.Groups {
		for _, c := range g.Completions {
			if last := c.Episode.Steps[len(c.Episode.Steps)-1]; !c.Truncated || last.End != len(c.Tokens) || len(c.Tokens) > 5 {
				t.Errorf("%d tokens, truncated %v, last turn %+v", len(c.Tokens), c.Truncated, last)
			}
		}
	}
}

// A run of episodes that is stopped in the middle of a generation batch and resumed ends with the weights of one that was not.
func TestEpisodesResume(t *testing.T) {
	weights := func(dir string) []byte {
		b, err := os.ReadFile(filepath.Join(dir, "checkpoints", "step-3", "adapter_model.safetensors"))
		check(t, err)
		return b
	}
	more := []string{"steps_per_generation=1", "num_iterations=2"}
	whole, cut := t.TempDir(), t.TempDir()
	check(t, episodeRun(t, whole, append(more, "max_steps=3", "optim.lr_scheduler_type=constant")...).Run(t.Context()))
	for _, n := range []int{1, 3} {
		tr := episodeRun(t, cut, append(more, fmt.Sprint("max_steps=", n), "optim.lr_scheduler_type=constant", "checkpoint.resume=auto")...)
		check(t, tr.Run(t.Context()))
		check(t, tr.Close())
	}
	if !slices.Equal(weights(whole), weights(cut)) {
		t.Error("the resumed run ends with other weights")
	}
}

// conversationModels are folders of models with chat templates: the embedded one, and the real ones that are at hand.
func conversationModels(t *testing.T) []string {
	dir, err := embedded.Path("embedded:quickstart")
	check(t, err)
	dirs := []string{dir}
	if real := os.Getenv("RUBICON_TEST_TOKENIZERS"); real != "" {
		for _, name := range []string{"qwen2_5", "qwen3", "llama3_1", "smollm2"} {
			dirs = append(dirs, filepath.Join(real, name))
		}
	}
	return dirs
}

// What follows a sampled turn gives the tokens that the template would write for the whole conversation.
func TestFollowingIsTheTemplates(t *testing.T) {
	for _, dir := range conversationModels(t) {
		tok, err := token.Load(dir)
		check(t, err)
		eos := tok.EOS()
		c := Conversation{Tokenizer: tok, EOS: []int32{eos}}
		first := []grpo.Message{{Role: "system", Content: "Be short."}, {Role: "user", Content: "Hello <|im_end|>"}}
		second := []grpo.Message{{Role: "user", Content: "And <|im_start|>then?"}}
		ids, err := c.Opening(first, nil)
		check(t, err)
		turn := append(tok.Encode("Fine.", token.EncodeOptions{Plain: true}), eos)
		for _, ended := range []bool{true, false} {
			said := turn
			if !ended {
				said = turn[:len(turn)-1]
			}
			next, err := c.Following(second, ended)
			check(t, err)
			o := c.Chat
			o.AddGenerationPrompt = true
			all := slices.Concat(first, []grpo.Message{{Role: "assistant", Content: "Fine."}}, second)
			_, want, err := tok.Chat(TokenMessages(all), o)
			check(t, err)
			if got := slices.Concat(ids, said, next); !slices.Equal(got, want) {
				t.Errorf("%s, ended %v: %q, want %q", dir, ended, tok.Decode(got, false), tok.Decode(want, false))
			}
		}
	}
}

// failing is an environment that fails so many times at each episode's second turn, of the first prompts only.
type failing struct {
	counting
	times int
	at    string
}

type failingEpisode struct {
	counted
	times int
}

func (f failing) Reset(ctx context.Context, row *grpo.Prompt) (env.Episode, env.Observation, error) {
	_, o, err := f.counting.Reset(ctx, row)
	e := &failingEpisode{counted: counted{left: f.turns}}
	if row.ID == f.at {
		e.times = f.times
	}
	return e, o, err
}

func (e *failingEpisode) Step(ctx context.Context, said string) (env.Observation, error) {
	if e.played == 1 && e.times > 0 {
		e.times--
		return env.Observation{}, errors.New("no answer")
	}
	return e.counted.Step(ctx, said)
}

// A turn at which the environment fails is tried again, and after so many tries the episode is lost: it is not scored, trained on by nothing,
// and counted; the others are played on.
func TestEnvironmentFails(t *testing.T) {
	for times, want := range map[int]float64{2: 0, 3: 0.5} {
		tr := episodeRun(t, t.TempDir(), "max_steps=1", "data.shuffle=false")
		tr.rollouts.Episodes.Env, tr.rollouts.Episodes.Retries = failing{counting{3}, times, tr.Prompts[0].ID}, 2
		check(t, tr.refill(t.Context()))
		if got := tr.state.Window.Totals["episode/lost_frac"]; got.Sum/float64(got.Count) != want {
			t.Errorf("%d failures: lost %v, want %v", times, got.Sum/float64(got.Count), want)
		}
		for _, g := range tr.buffer.Groups {
			for _, c := range g.Completions {
				lost := want > 0 && g.Prompt.ID == tr.Prompts[0].ID
				if (c.Episode.Lost != "") != lost || c.Unscorable() != lost || (c.Turns == nil) != lost || lost && (c.Advantage != 0 || len(c.Episode.Steps) != 2) {
					t.Errorf("%d failures, %s: %+v, rewards %v, turns %v", times, g.Prompt.ID, c.Episode, c.Rewards, c.Turns)
				}
			}
		}
	}
}
