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

// Answers implements eval.Policy with the run's own model, all questions in one generation, of which rollout.max_batch run at a time. Questions
// that are tasks are episodes, if the run has an environment. The caller does not hold Lock.
type Answers struct {
	*Rollouts
	Conversation Conversation
}

// Answer implements eval.Policy. Answers depend on seed, question, repeat and try, not on what else is asked.
func (p *Answers) Answer(ctx context.Context, asks []eval.Ask, s eval.Sampling, deliver func(i int, a eval.Answer) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if p.Lock != nil { // a judge that is the same model waits until all answers are there
		p.Lock.Lock()
		defer p.Lock.Unlock()
	}
	sampling := configs.Sampling{
		MaxCompletionLength: s.MaxTokens, Temperature: s.Temperature, TopP: s.TopP, TopK: s.TopK, MinP: s.MinP, RepetitionPenalty: s.RepetitionPenalty, Stop: s.Stop,
	}
	o := policy.GenerateOptions{
		Adapter: p.Adapter, MaxBatch: p.Config.Rollout.MaxBatch, KVTokens: p.Config.Rollout.KVTokens, SamplingParams: p.sampling(sampling),
	}
	reqs, tasks, err := p.requests(ctx, asks, s)
	if err != nil {
		return err
	}
	var games [][]*played
	if tasks != nil {
		if games, err = p.Episodes.begin(ctx, tasks, reqs, sampling, o.Decode); err != nil {
			return err
		}
		if n := p.Episodes.MaxTurnLength; n > 0 {
			o.MaxNewTokens = min(o.MaxNewTokens, n)
		}
	}
	o.OnSample = func(i, _ int, sample policy.Sample) {
		a := eval.Answer{Text: p.Tokenizer.Decode(sample.Tokens, true), Finish: sample.Finish, Tokens: len(sample.Tokens)}
		if games != nil {
			a = games[i][0].told(tasks[i], sample)
		}
		if err := deliver(i, a); err != nil {
			stop(err)
		}
	}
	if _, err = p.Model.Generate(ctx, reqs, o); err != nil && context.Cause(ctx) != nil {
		return context.Cause(ctx)
	}
	return err
}

// requests are the questions for the engine, and the rows of those that are episodes; nil: none are.
func (p *Answers) requests(ctx context.Context, asks []eval.Ask, s eval.Sampling) (reqs []policy.Request, tasks []*grpo.Prompt, err error) {
	most := p.Model.Config().MaxPositions
	for _, a := range asks {
		task := &grpo.Prompt{ID: a.Item.Key, Messages: a.Item.Messages, Columns: a.Item.Row}
		var tools json.RawMessage
		if p.Episodes != nil && a.Item.Task {
			_, start, err := p.Episodes.Env.Reset(ctx, task)
			if err != nil {
				return nil, nil, fmt.Errorf("question %s: %w", a.Item.Key, err)
			}
			task.Messages, tools = start.Messages, start.Tools
			tasks = append(tasks, task)
		}
		ids, err := p.Conversation.Opening(task.Messages, tools)
		if err == nil && len(ids) > most-s.MaxTokens {
			err = fmt.Errorf("it has %d tokens, which leaves no room for %d more in the model's context of %d: lower eval.max_completion_length, or leave the benchmark out",
				len(ids), s.MaxTokens, most)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("question %s: %w", a.Item.Key, err)
		}
		h := fnv.New64a()
		h.Write([]byte(a.Item.Key))
		stream := []uint64{uint64(s.Seed), streamBenchmark, h.Sum64(), uint64(a.Repeat), uint64(a.Try)}
		reqs = append(reqs, policy.Request{Prompt: ids, N: 1, MaxTokens: s.MaxTokens, Stream: stream})
	}
	return reqs, tasks, nil
}

// told is the answer that an episode on a task came to; one that was cut off has none.
func (p *played) told(task *grpo.Prompt, s policy.Sample) eval.Answer {
	var c grpo.Completion
	p.record(&c, s)
	a := eval.Answer{Text: p.episode.Answer(), Finish: eval.Stopped, Tokens: c.Own(), Messages: task.Messages, Turns: c.Episode.Steps}
	if c.Truncated {
		a.Finish = eval.CutOff
	}
	return a
}

// Setting is how m is measured under a configuration; whose answers they are is left open.
func (m *Measured) Setting(c *configs.Config) eval.Setting {
	s := eval.Setting{
		Benchmark: m.Name, Data: m.Data, Template: c.Data.ChatTemplateKwargs, Repeats: c.Eval.Repeats, Items: c.Eval.MaxRows, Judge: m.Judge,
		Generation: benchmarkSampling(c, m.Benchmark),
	}
	if items := m.Benchmark.Items(); c.Env.Kind != "" && len(items) > 0 && items[0].Task {
		s.Environment = map[string]any{"kind": c.Env.Kind, "options": c.Env.Options, "max_turn_length": c.Env.MaxTurnLength}
	}
	return s
}

// benchmarkSampling is section eval as a benchmark takes it, with the settings of its authors if they are asked for.
func benchmarkSampling(c *configs.Config, b eval.Benchmark) eval.Sampling {
	own := evalSampling(c)
	s := eval.Sampling{
		MaxTokens: own.MaxCompletionLength, Temperature: own.Temperature, TopP: own.TopP, TopK: own.TopK, MinP: own.MinP,
		RepetitionPenalty: own.RepetitionPenalty, Stop: own.Stop, Seed: int64(c.Seed),
	}
	if authors, ok := b.(eval.Sampled); ok && c.Eval.OfficialSampling {
		s = authors.Official(s)
	}
	return s
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
