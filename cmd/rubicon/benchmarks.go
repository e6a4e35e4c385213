package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rubicon-rl/rubicon/internal/suggest"
	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/trainer"
	"github.com/rubicon-rl/rubicon/trainer/eval"
)

// benchmarkKind is a benchmark by its name: who reads it, and where rubicon data get puts its file.
type benchmarkKind struct {
	open func(eval.Source) (eval.Benchmark, error)
	file string // below eval.data_dir
}

var benchmarks = map[string]benchmarkKind{
	"ifeval":        {eval.IFEval, "ifeval/official/input_data.jsonl"},
	"ifbench":       {eval.IFBench, "ifbench/official/IFBench_test.jsonl"},
	"gpqa":          {eval.GPQA, "gpqa/official/gpqa_diamond.csv"},
	"healthbench":   {eval.HealthBench, "healthbench/official/2025-05-07-06-14-12_oss_eval.jsonl"},
	"infobench":     {eval.InfoBench, "infobench/official/InfoBench.json"},
	"writingbench":  {eval.WritingBench, "writingbench/official/benchmark_all.jsonl"},
	creativeWriting: {eval.CreativeWriting, "creative-writing/official/creative_writing_prompts_v3.json"},
	"biggen":        {eval.BiGGen, "biggen/official/sample_responses.json"},
	"hotpotqa":      {eval.HotpotQA, "hotpotqa/dev.jsonl"},
	"2wiki":         {eval.TwoWiki, "2wiki/dev.jsonl"},
	"musique":       {eval.MuSiQue, "musique/dev.jsonl"},
	"gsm8k":         {eval.GSM8K, "gsm8k/official/test.jsonl"},
	"math":          {eval.MATH, "math/test.jsonl"},
	"arithmetic":    {eval.Arithmetic, "arithmetic/test.jsonl"},
}

func benchmarkNames() []string { return slices.Sorted(maps.Keys(benchmarks)) }

// openBenchmarks opens benchmarks given as NAME or NAME=FILE. judge says who judges, in words.
func openBenchmarks(specs []string, dataDir string, open func() (rewards.Judge, error), judge string) ([]trainer.Measured, error) {
	var out []trainer.Measured
	for _, spec := range specs {
		name, file, own := strings.Cut(spec, "=")
		kind, ok := benchmarks[name]
		if !ok {
			hint := suggest.Nearest(name, benchmarkNames())
			if hint != "" {
				hint = fmt.Sprintf(", did you mean %s?", hint)
			}
			return nil, fmt.Errorf("there is no benchmark %q%s (there are %s)", name, hint, strings.Join(benchmarkNames(), ", "))
		}
		if !own {
			file = filepath.Join(dataDir, filepath.FromSlash(kind.file))
		}
		if _, err := os.Stat(file); err != nil {
			return nil, fmt.Errorf("benchmark %s: %w: fetch it with rubicon data get %s --out %s, or give the official file as %s=FILE", name, err, name, filepath.Join(dataDir, name), name)
		}
		m := trainer.Measured{Name: name, Judge: judge}
		var err error
		if m.Data, err = eval.Digest(file); err == nil {
			m.Benchmark, err = kind.open(eval.Source{File: file, Judge: open})
		}
		if err != nil {
			return nil, fmt.Errorf("benchmark %s: %w", name, err)
		}
		out = append(out, m)
	}
	return out, nil
}

// reachJudge tries the judge, before anything is sampled, if some benchmark needs it.
func reachJudge(ctx context.Context, all []trainer.Measured, j *judge) error {
	for _, b := range all {
		if _, ok := b.Benchmark.(eval.Judged); !ok {
			continue
		}
		if _, err := j.open(); err != nil {
			return fmt.Errorf("benchmark %s needs a judge: %w", b.Name, err)
		}
		return j.preflight(ctx)
	}
	return nil
}
