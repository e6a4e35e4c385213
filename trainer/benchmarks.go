package trainer

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/rubicon-rl/rubicon/configs"
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

// Answer implements eval.Policy. Answers depend on seed, question and repeat, not on what else is asked.
func (p *Answers) Answer(ctx context.Context, asks []eval.Ask, s eval.Sampling, deliver func(i int, a eval.Answer) error) error {
	room := p.Model.Config().MaxPositions - s.MaxTokens
	reqs := make([]policy.Request, len(asks))
	told := make([]atomic.Bool, len(asks))
	tell := func(i int, tokens []int32, finish string) error {
		if told[i].Swap(true) {
			return nil
		}
		return deliver(i, eval.Answer{Text: p.Tokenizer.Decode(tokens, true), Finish: finish, Tokens: len(tokens)})
	}
	for i, a := range asks {
		ids, err := p.Conversation.Opening(a.Item.Messages, nil)
		if err == nil && len(ids) > room {
			err = fmt.Errorf("it has %d tokens, which leaves no room for %d more in the model's context of %d: lower eval.max_completion_length, or leave the benchmark out",
				len(ids), s.MaxTokens, p.Model.Config().MaxPositions)
		}
		if err != nil {
			return fmt.Errorf("question %s: %w", a.Item.Key, err)
		}
		h := fnv.New64a()
		h.Write([]byte(a.Item.Key))
		reqs[i] = policy.Request{
			Prompt: ids, N: 1, MaxTokens: s.MaxTokens, Stream: []uint64{uint64(s.Seed), streamBenchmark, h.Sum64(), uint64(a.Repeat)},
			Reply: func(_ context.Context, _ int, turn []int32, finish string) (policy.Reply, error) {
				return policy.Reply{}, tell(i, turn, finish)
			},
		}
	}
	if p.Lock != nil { // a judge that is the same model waits until all answers are there
		p.Lock.Lock()
		defer p.Lock.Unlock()
	}
	params := p.sampling(configs.Sampling{
		MaxCompletionLength: s.MaxTokens, Temperature: s.Temperature, TopP: s.TopP, TopK: s.TopK, MinP: s.MinP, RepetitionPenalty: s.RepetitionPenalty, Stop: s.Stop,
	})
	samples, err := p.Model.Generate(ctx, reqs, policy.GenerateOptions{
		Adapter: p.Adapter, MaxBatch: p.Config.Rollout.MaxBatch, KVTokens: p.Config.Rollout.KVTokens, SamplingParams: params,
	})
	if err != nil {
		return err
	}
	for i, s := range samples { // those that no turn's end was told of: their tokens were spent
		if err := tell(i, s[0].Tokens, s[0].Finish); err != nil {
			return err
		}
	}
	return nil
}

// BenchmarkSampling is section eval as benchmarks take it.
func BenchmarkSampling(c *configs.Config) eval.Sampling {
	s := evalSampling(c)
	return eval.Sampling{
		MaxTokens: s.MaxCompletionLength, Temperature: s.Temperature, TopP: s.TopP, TopK: s.TopK, MinP: s.MinP,
		RepetitionPenalty: s.RepetitionPenalty, Stop: s.Stop, Seed: int64(c.Seed),
	}
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
		job := eval.Job{
			Setting: eval.Setting{
				Benchmark: m.Name, Data: m.Data, Policy: "this run", Step: step, Generation: BenchmarkSampling(r.Config),
				Repeats: r.Config.Eval.Repeats, Items: r.Config.Eval.MaxRows, Judge: m.Judge,
			},
			Benchmark: m.Benchmark, Policy: p, File: file,
		}
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
