package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/rubicon-rl/rubicon/configs"
	"github.com/rubicon-rl/rubicon/trainer"
	"github.com/rubicon-rl/rubicon/trainer/track"
)

// evalFlags are what eval takes.
type evalFlags struct {
	files, benchmarks    []string
	run, checkpoint, out string
	responses            string
	every, base          bool
	compare, elo         bool
	anchors              map[string]string
	repeats              int
}

func evalCommand() *cobra.Command {
	var f evalFlags
	cmd := &cobra.Command{
		Use:   "eval (RUN | -c FILE | NAME --responses FILE | --compare FILE FILE | --elo -c FILE FILE FILE...) [key=value ...]",
		Short: "Score a policy on held-out prompts and benchmarks",
		Long: `Without benchmarks: samples the prompts of eval.files with the settings of section eval, has them scored by the configured reward,
prints the metrics as one JSON object and writes the completions down. RUN is the folder of a run: its configuration and a
checkpoint of it are taken.

With --benchmark, or eval.benchmarks in the configuration: asks the benchmarks' questions, scores the answers as the benchmarks' authors
do, and prints a table. Every prompt, answer and verdict is kept in RUN/eval/NAME/step-N.jsonl; the same command goes on where an
interrupted one stopped. --every measures all checkpoints of RUN, --base its base model too. Summaries and a picture lie beside the answers.

NAME --responses scores responses that are given, a JSON object a line. --compare tests two files of answers against each other,
question by question. --elo has the judge of the configuration compare the pieces of two or more files of answers to
creative-writing, and rates their writers.`,
		RunE: func(cmd *cobra.Command, args []string) error { return f.evaluate(cmd, args) },
	}
	fs := cmd.Flags()
	fs.StringArrayVarP(&f.files, "config", "c", nil, "configuration file; a later one wins key by key")
	fs.StringVar(&f.run, "run", "", "folder of a run, in place of the argument")
	fs.StringVar(&f.checkpoint, "checkpoint", "", "checkpoint of RUN: newest (default), step-N, or base; with -c the folder of an adapter or a checkpoint, or base")
	fs.StringVarP(&f.out, "out", "o", "", "without benchmarks: file for the completions (default RUN/eval/checkpoint_N.jsonl; completions.jsonl with -c); with benchmarks: folder (default RUN/eval; eval with -c)")
	fs.StringSliceVarP(&f.benchmarks, "benchmark", "b", nil, "benchmarks, NAME or NAME=FILE, in place of eval.benchmarks: "+strings.Join(benchmarkNames(), ", "))
	fs.BoolVar(&f.every, "every", false, "all checkpoints of RUN")
	fs.BoolVar(&f.base, "base", false, "the base model too")
	fs.IntVar(&f.repeats, "repeats", 0, "measurements of each benchmark, in place of eval.repeats")
	fs.StringVar(&f.responses, "responses", "", "file of responses to score, without a model")
	fs.BoolVar(&f.compare, "compare", false, "compare two files of answers")
	fs.BoolVar(&f.elo, "elo", false, "rate the writers of files of answers to creative-writing by duels")
	fs.StringToStringVar(&f.anchors, "anchor", nil, "FILE=ELO of two of the files whose Elo is known, for --elo")
	return cmd
}

func (f *evalFlags) evaluate(cmd *cobra.Command, args []string) error {
	switch {
	case f.responses != "":
		if len(args) != 1 {
			return fmt.Errorf("give the name of one benchmark with --responses")
		}
		return scoreResponses(args[0], f.responses, cmd.OutOrStdout(), cmd.ErrOrStderr())
	case f.elo:
		return f.rateWriters(cmd, args)
	case f.compare:
		if len(args) != 2 {
			return fmt.Errorf("give the two files of answers that --compare is to compare")
		}
		return compareMeasurements(args, f.benchmarks, "data", cmd.OutOrStdout())
	}
	if f.run == "" && len(f.files) == 0 {
		if len(args) == 0 {
			return fmt.Errorf("give the folder of a run, or a configuration with -c")
		}
		f.run, args = args[0], args[1:]
	}
	if f.run != "" && len(f.files) == 0 {
		f.files = []string{filepath.Join(f.run, "config.yaml")}
	}
	c, err := loadConfig(f.files, args, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	if len(f.benchmarks) > 0 {
		c.Eval.Benchmarks = f.benchmarks
	}
	if f.repeats > 0 {
		c.Eval.Repeats = f.repeats
	}
	if len(c.Eval.Benchmarks) == 0 {
		if f.every || f.base {
			return fmt.Errorf("--every and --base are for benchmarks: name them with --benchmark")
		}
		return f.heldOut(cmd, c)
	}
	all, err := f.candidates(c)
	if err != nil {
		return err
	}
	out := cmp.Or(f.out, "eval")
	if f.run != "" && f.out == "" {
		out = filepath.Join(f.run, "eval")
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return measure(ctx, c, all, out, cmd.OutOrStdout())
}

// heldOut measures one policy on eval.files.
func (f *evalFlags) heldOut(cmd *cobra.Command, c *configs.Config) (err error) {
	r, from, out := track.Record{}, "", f.out
	if f.run != "" {
		if from, r.Step, err = useCheckpoint(c, f.run, cmp.Or(f.checkpoint, "newest")); err != nil {
			return err
		}
		out = cmp.Or(out, filepath.Join(f.run, "eval", fmt.Sprintf("checkpoint_%d.jsonl", r.Step)))
	} else if f.checkpoint != "" {
		return fmt.Errorf("--checkpoint is for RUN or for benchmarks: set model.adapter instead")
	}
	if r.Values, err = evaluate(cmd.Context(), c, from, cmp.Or(out, "completions.jsonl")); err != nil {
		return err
	}
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), string(b))
	return err
}

// candidates are the policies that benchmarks measure.
func (f *evalFlags) candidates(c *configs.Config) ([]candidate, error) {
	base := candidate{label: "base"}
	if f.checkpoint == "base" || f.run == "" && f.checkpoint == "" && c.Model.Adapter == "" {
		return []candidate{base}, nil
	}
	var out []candidate
	if f.base {
		out = append(out, base)
	}
	if f.run == "" {
		if f.every {
			return nil, fmt.Errorf("--every is for the checkpoints of a run: give its folder")
		}
		path := cmp.Or(f.checkpoint, c.Model.Adapter)
		return append(out, candidate{label: filepath.Base(filepath.Clean(path)), path: path}), nil
	}
	dir := cmp.Or(c.Checkpoint.Dir, filepath.Join(f.run, "checkpoints"))
	names := []string{cmp.Or(f.checkpoint, "newest")}
	if f.every {
		found, err := filepath.Glob(filepath.Join(dir, "step-*"))
		if err != nil || len(found) == 0 {
			return nil, errors.Join(err, fmt.Errorf("there is no checkpoint in %s", dir))
		}
		names = names[:0]
		for _, path := range found {
			names = append(names, filepath.Base(path))
		}
	}
	for _, name := range names {
		path, step, err := trainer.CheckpointIn(dir, name)
		if err != nil {
			return nil, err
		}
		out = append(out, candidate{label: fmt.Sprintf("step-%d", step), step: step, path: path})
	}
	slices.SortFunc(out, func(a, b candidate) int { return a.step - b.step })
	return out, nil
}

// useCheckpoint makes c load the weights of a run's checkpoint, of which it returns the folder and the step.
func useCheckpoint(c *configs.Config, run, name string) (path string, step int, err error) {
	path, step, err = trainer.CheckpointIn(cmp.Or(c.Checkpoint.Dir, filepath.Join(run, "checkpoints")), name)
	if err != nil {
		return "", 0, err
	}
	if c.Model.Trainable == "full" {
		c.Model.Path = path
	} else {
		c.Model.Adapter = path
	}
	c.Model.Init = "weights"
	return path, step, nil
}

// evaluate returns the metrics of the held-out rows and writes their completions to the file out. The reward has the state
// that it has in the checkpoint from; "": a new one's.
func evaluate(ctx context.Context, c *configs.Config, from, out string) (values map[string]float64, err error) {
	if len(c.Eval.Files) == 0 {
		return nil, fmt.Errorf("eval.files is empty: name the held-out rows")
	}
	r, err := openRun(c, nil, peers{})
	if err != nil {
		return nil, err
	}
	defer closing(&err, r.close)
	prompts, err := r.prompts(c.Eval.Files, c.Eval.MaxRows)
	if err != nil {
		return nil, err
	}
	if r.reward, err = r.openReward("", 0); err != nil {
		return nil, err
	}
	if err := r.check(ctx, prompts); err != nil {
		return nil, err
	}
	if r.Model, r.Adapter, err = loadFrozen(ctx, r.Device, modelFlags{c.Model.Path, c.Model.Adapter, c.Model.WeightDType()}); err != nil {
		return nil, err
	}
	if err := r.bind(ctx); err != nil {
		return nil, err
	}
	if from != "" {
		if err := trainer.LoadProvider(r.reward.Provider, from); err != nil {
			return nil, err
		}
	}
	rollouts := trainer.Rollouts{Config: c, Model: r.Model, Adapter: r.Adapter, Tokenizer: r.Tokenizer, Provider: r.reward.Provider, Name: r.reward.name, Episodes: r.episodes}
	return rollouts.Evaluate(ctx, prompts, out)
}
