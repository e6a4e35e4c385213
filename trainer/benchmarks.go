package trainer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/rubicon-rl/rubicon/configs"
	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/policy"
	"github.com/rubicon-rl/rubicon/trainer/eval"
)

// Measured is a benchmark that is opened.
type Measured struct {
	Name      string
	Benchmark eval.Benchmark
	Data      string // SHA-256 of its file
	Judge     string // who judges its answers, in words
}

// Answers implements eval.Policy with the run's own model, all questions in one generation. The caller does not hold Lock.
type Answers struct {
	*Rollouts
	Conversation Conversation
}

// Answer implements eval.Policy. Answers depend on seed, question and repeat, not on what else is asked. A question that is a task of
// several turns is one, if the run has an environment.
func (p *Answers) Answer(ctx context.Context, asks []eval.Ask, s eval.Sampling, deliver func(i int, a eval.Answer) error) error {
	reqs, all := make([]policy.Request, len(asks)), make([]*asked, len(asks))
	params := p.sampling(configs.Sampling{
		MaxCompletionLength: s.MaxTokens, Temperature: s.Temperature, TopP: s.TopP, TopK: s.TopK, MinP: s.MinP, RepetitionPenalty: s.RepetitionPenalty, Stop: s.Stop,
	})
	for i := range asks {
		all[i] = &asked{Answers: p, deliver: func(a eval.Answer) error { return deliver(i, a) }}
		var err error
		if reqs[i], err = all[i].request(ctx, &asks[i], s, params.Decode); err != nil {
			return fmt.Errorf("question %s: %w", asks[i].Item.Key, err)
		}
		if all[i].game != nil && p.Episodes.MaxTurnLength > 0 {
			params.MaxNewTokens = min(params.MaxNewTokens, p.Episodes.MaxTurnLength)
		}
	}
	if p.Lock != nil { // a judge that is the same model waits until all answers are there
		p.Lock.Lock()
		defer p.Lock.Unlock()
	}
	samples, err := p.Model.Generate(ctx, reqs, policy.GenerateOptions{
		Adapter: p.Adapter, MaxBatch: p.Config.Rollout.MaxBatch, KVTokens: p.Config.Rollout.KVTokens, SamplingParams: params,
	})
	if err != nil {
		return err
	}
	for i, s := range samples { // those that no turn's end was told of: their tokens were spent
		if err := all[i].end(s[0]); err != nil {
			return err
		}
	}
	return nil
}

// asked is a question that is being answered.
type asked struct {
	*Answers
	deliver  func(eval.Answer) error
	messages []grpo.Message // of the task, where the question is one
	game     *played        // nil: it has one turn
	tokens   int            // of the game's turns
	told     atomic.Bool
}

// request is what the sampler is asked.
func (q *asked) request(ctx context.Context, a *eval.Ask, s eval.Sampling, decode func([]int32) string) (policy.Request, error) {
	messages, tools := a.Item.Messages, json.RawMessage(nil)
	if q.Episodes != nil && a.Item.Task {
		episode, start, err := q.Episodes.Env.Reset(ctx, &grpo.Prompt{ID: a.Item.Key, Columns: a.Item.Row})
		if err != nil {
			return policy.Request{}, err
		}
		messages, tools = start.Messages, start.Tools
		q.messages, q.game = start.Messages, &played{Episodes: q.Episodes, episode: episode, decode: decode}
	}
	ids, err := q.Conversation.Opening(messages, tools)
	if most := q.Model.Config().MaxPositions; err == nil && len(ids) > most-s.MaxTokens {
		err = fmt.Errorf("it has %d tokens, which leaves no room for %d more in the model's context of %d: lower eval.max_completion_length, or leave the benchmark out",
			len(ids), s.MaxTokens, most)
	}
	h := fnv.New64a()
	h.Write([]byte(a.Item.Key))
	return policy.Request{
		Prompt: ids, N: 1, MaxTokens: s.MaxTokens, Stream: []uint64{uint64(s.Seed), streamBenchmark, h.Sum64(), uint64(a.Repeat)}, Reply: q.reply,
	}, err
}

// reply ends the answer, or plays its turn.
func (q *asked) reply(ctx context.Context, _ int, turn []int32, finish string) (policy.Reply, error) {
	if q.game == nil {
		return policy.Reply{}, q.tell(turn, finish)
	}
	q.tokens += len(turn)
	r, err := q.game.reply(ctx, turn)
	if err == nil && q.game.over {
		err = q.tell(nil, "stop")
	}
	return r, err
}

// end delivers an answer whose tokens were spent; a task's last turn is then without an observation.
func (q *asked) end(s policy.Sample) error {
	if n := len(s.Turns); q.game != nil && !q.told.Load() && n > len(q.game.steps) {
		last := s.Tokens[s.Turns[n-1].Start:s.Turns[n-1].End]
		q.tokens += len(last)
		q.game.steps = append(q.game.steps, grpo.Step{Said: q.game.decode(last), Kind: cutOff})
	}
	return q.tell(s.Tokens, s.Finish)
}

// tell delivers the answer, once.
func (q *asked) tell(tokens []int32, finish string) error {
	if q.told.Swap(true) {
		return nil
	}
	a := eval.Answer{Finish: finish}
	if q.game == nil {
		a.Text, a.Tokens = q.Tokenizer.Decode(tokens, true), len(tokens)
	} else {
		a.Text, a.Tokens, a.Messages, a.Turns = q.game.episode.Answer(), q.tokens, q.messages, q.game.steps
	}
	return q.deliver(a)
}

// Setting is what a measurement of b depends on, but for its policy and step: section eval, and the environment where b has tasks.
func (b *Measured) Setting(c *configs.Config) eval.Setting {
	s := evalSampling(c)
	out := eval.Setting{
		Benchmark: b.Name, Data: b.Data, Template: c.Data.ChatTemplateKwargs, Repeats: c.Eval.Repeats, Items: c.Eval.MaxRows, Judge: b.Judge,
		Generation: eval.Sampling{
			MaxTokens: s.MaxCompletionLength, Temperature: s.Temperature, TopP: s.TopP, TopK: s.TopK, MinP: s.MinP,
			RepetitionPenalty: s.RepetitionPenalty, Stop: s.Stop, Seed: int64(c.Seed),
		},
	}
	if own, ok := b.Benchmark.(eval.Sampled); ok && c.Eval.OfficialSampling {
		out.Generation = own.Official(out.Generation)
	}
	if items := b.Benchmark.Items(); c.Env.Kind != "" && c.Eval.Server.URL == "" && len(items) > 0 && items[0].Task {
		options, _ := json.Marshal(c.Env.Options) // decoded YAML
		out.Environment = c.Env.Kind + string(options)
	}
	return out
}

// Measure runs the benchmarks on the policy as it is. The answers of step go to NAME/step-N.jsonl in a folder of their own; metrics come
// back as eval_NAME/metric.
func (r *Rollouts) Measure(ctx context.Context, all []Measured, p eval.Policy, folder string, step int) (map[string]float64, error) {
	out := map[string]float64{}
	for _, m := range all {
		file := filepath.Join(folder, m.Name, fmt.Sprintf("step-%d.jsonl", step))
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) { // of an earlier run, or of one that was interrupted here
			return nil, err
		}
		job := eval.Job{Setting: m.Setting(r.Config), Benchmark: m.Benchmark, Policy: p, File: file}
		job.Setting.Policy, job.Setting.Step = "this run", step
		var result *eval.Result
		err := r.asking(func() (err error) {
			result, err = eval.Run(ctx, job)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("benchmark %s: %w", m.Name, err)
		}
		for _, f := range result.Metrics {
			out["eval_"+m.Name+"/"+f.Name] = f.Value
		}
		out["eval_"+m.Name+"/unscorable_frac"] = float64(result.Unscorable) / float64(max(1, result.Answers))
	}
	return out, nil
}
