package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"

	"github.com/rubicon-rl/rubicon/configs"
	"github.com/rubicon-rl/rubicon/internal/plot"
	"github.com/rubicon-rl/rubicon/policy"
	"github.com/rubicon-rl/rubicon/trainer"
	"github.com/rubicon-rl/rubicon/trainer/eval"
)

// candidate is a policy that is measured: a checkpoint, an adapter, or the base.
type candidate struct {
	label string // the file's name
	step  int
	path  string // of its weights; "": the base
}

// measure measures candidates on the benchmarks of section eval and writes answers and summaries below out.
func measure(ctx context.Context, c *configs.Config, candidates []candidate, out string, stdout io.Writer) (err error) {
	r, err := openRun(c, nil, peers{})
	if err != nil {
		return err
	}
	defer closing(&err, r.close)
	j := &judge{cfg: c.Judge, seed: uint64(c.Seed), dir: out, console: r.Console, tokenizer: r.Tokenizer, lock: r.Lock, moves: c.Model.Trainable == "full"}
	defer closing(&err, j.close)
	all, err := openBenchmarks(c.Eval.Benchmarks, c.Eval.DataDir, j.open, judgeWords(c))
	if err != nil {
		return err
	}
	if err := reachJudge(ctx, all, j); err != nil {
		return err
	}
	m := measuring{openedRun: r, all: all, out: out}
	for _, cand := range candidates {
		if err := m.one(ctx, cand, j); err != nil {
			return err
		}
	}
	return m.summarise(stdout)
}

// judgeWords says who judges. The address of a server is no part of it, so that a measurement may go on after the server has moved.
func judgeWords(c *configs.Config) string {
	if c.Judge.URL == localURL {
		return c.Model.Path + ", the base of the run"
	}
	return c.Judge.Model
}

type measuring struct {
	*openedRun
	all     []trainer.Measured
	out     string
	results []*eval.Result
}

// one measures a candidate.
func (m *measuring) one(ctx context.Context, cand candidate, j *judge) error {
	p, id, err := m.policy(ctx, cand, j)
	if err != nil {
		return err
	}
	for _, b := range m.all {
		of := b.Name + " of " + cand.label
		job := eval.Job{
			Setting: b.Setting(m.Config), Benchmark: b.Benchmark, Policy: &timed{p, m.openedRun, of}, File: filepath.Join(m.out, b.Name, cand.label+".jsonl"),
			Progress: func(done, n int) { m.Console.Tick(done, fmt.Sprintf("of %d, %s", n, of)) },
			Notify:   func(text string) { fmt.Fprintf(m.Console, "note: %s: %s\n", of, text) },
		}
		job.Setting.Policy, job.Setting.Step = id, cand.step
		result, err := eval.Run(ctx, job)
		if errors.Is(err, eval.ErrOther) {
			return err
		}
		if err != nil {
			return fmt.Errorf("%s: %w (what is done is kept in %s: the same command goes on)", of, err, job.File)
		}
		result.Label = cand.label
		m.results = append(m.results, result)
	}
	return nil
}

// policy loads a candidate, or reaches the server that answers in its place; id tells its answers from those of others.
func (m *measuring) policy(ctx context.Context, cand candidate, j *judge) (p eval.Policy, id string, err error) {
	c := m.Config
	if c.Eval.Server.URL != "" {
		p, err := m.served()
		return p, c.Eval.Server.Model + " on a server", err
	}
	if m.Model == nil || c.Model.Trainable == "full" {
		if m.Model != nil {
			if err := m.Model.Close(); err != nil {
				return nil, "", err
			}
			m.Model = nil
		}
		path := c.Model.Path
		if c.Model.Trainable == "full" {
			path = cmp.Or(cand.path, path)
		}
		if m.Model, _, err = loadFrozen(ctx, m.Device, modelFlags{model: path, dtype: c.Model.WeightDType()}); err != nil {
			return nil, "", err
		}
		m.embedders.bind(m.Model)
		if err := j.bind(ctx, m.Model); err != nil {
			return nil, "", err
		}
	}
	id, adapter := "model "+m.Model.Fingerprint(), ""
	if cand.path != "" && c.Model.Trainable != "full" {
		if slices.Contains(m.Model.Adapters(), adapterName) {
			if err := m.Model.DropAdapter(adapterName); err != nil {
				return nil, "", err
			}
		}
		if err := loadAdapter(m.Model, cand.path); err != nil {
			return nil, "", err
		}
		adapter = adapterName
		digest, err := eval.Digest(filepath.Join(cand.path, policy.AdapterWeightsName))
		if err != nil {
			return nil, "", err
		}
		id += ", adapter " + digest
	}
	rollouts := &trainer.Rollouts{Config: c, Model: m.Model, Adapter: adapter, Tokenizer: m.Tokenizer, Lock: m.Lock, Episodes: m.episodes}
	return &trainer.Answers{Rollouts: rollouts, Conversation: m.conversation()}, id, nil
}

// timed is a policy that says how long its answers took.
type timed struct {
	eval.Policy
	run *openedRun
	of  string
}

// Answer implements eval.Policy.
func (t *timed) Answer(ctx context.Context, asks []eval.Ask, s eval.Sampling, deliver func(i int, a eval.Answer) error) error {
	var answers, tokens atomic.Int64
	began := t.run.Now()
	err := t.Policy.Answer(ctx, asks, s, func(i int, a eval.Answer) error {
		answers.Add(1)
		tokens.Add(int64(a.Tokens))
		return deliver(i, a)
	})
	if answers.Load() == 0 {
		return err
	}
	spent := t.run.Now().Sub(began)
	fmt.Fprintf(t.run.Console, "%s: %d answers with %d tokens in %.1f s, %.0f tokens/s\n", t.of, answers.Load(), tokens.Load(), spent.Seconds(),
		float64(tokens.Load())/max(spent.Seconds(), 1e-9))
	return err
}

// summarise writes the files of every benchmark that tell of all measurements in its folder, also those of earlier commands: summary.json,
// summary.md, and a picture if there are several steps. The table of all benchmarks is beside the folders.
func (m *measuring) summarise(stdout io.Writer) error {
	for _, b := range m.all {
		folder := filepath.Join(m.out, b.Name)
		now := slices.IndexFunc(m.results, func(r *eval.Result) bool { return r.Setting.Benchmark == b.Name })
		results, err := eval.Collect(b.Benchmark, m.results[now].Setting, folder)
		if err != nil {
			return err
		}
		if err := writeSummary(folder, b.Name, results); err != nil {
			return err
		}
	}
	all, err := summaries(m.out)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(m.out, "summary.md"), []byte(eval.Markdown(all)), 0o644); err != nil {
		return err
	}
	fmt.Fprintf(m.Console, "answers, verdicts and summaries are in %s\n", m.out)
	_, err = io.WriteString(stdout, eval.Markdown(m.results))
	return err
}

// The files of a benchmark's folder beside the answers.
const (
	summaryFile = "summary.json"
	tableFile   = "summary.md"
	pictureFile = "scores.svg"
)

func writeSummary(folder, name string, results []*eval.Result) error {
	b, err := json.MarshalIndent(results, "", "  ")
	if err != nil {
		return err
	}
	files := map[string]string{summaryFile: string(b) + "\n", tableFile: eval.Markdown(results)}
	if line := curve(results); len(line.Points) > 1 {
		files[pictureFile] = plot.SVG(name, line.Label+", 95 % interval", []plot.Line{line})
	}
	for file, text := range files {
		if err := os.WriteFile(filepath.Join(folder, file), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// summaries are the results of all benchmarks below a folder.
func summaries(out string) ([]*eval.Result, error) {
	files, err := filepath.Glob(filepath.Join(out, "*", summaryFile))
	var all []*eval.Result
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var some []*eval.Result
		if err := json.Unmarshal(raw, &some); err != nil {
			return nil, fmt.Errorf("%s: %w: remove it", file, err)
		}
		all = append(all, some...)
	}
	return all, err
}

// curve is a benchmark's headline over the steps.
func curve(results []*eval.Result) plot.Line {
	line := plot.Line{Marked: true}
	for _, r := range results {
		if len(r.Metrics) == 0 {
			continue
		}
		f := r.Metrics[0]
		line.Label = f.Name
		line.Points = append(line.Points, plot.Point{X: float64(r.Setting.Step), Y: f.Value, Low: f.Low, High: f.High})
	}
	return line
}
