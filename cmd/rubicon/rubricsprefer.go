package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rubicon-rl/rubicon/configs"
	"github.com/rubicon-rl/rubicon/internal/analyst"
	"github.com/rubicon-rl/rubicon/rewards/amaris"
	"github.com/rubicon-rl/rubicon/rewards/criteria"
)

const preferHelp = `Shows a judge two rubrics blind and has it mark both from 1 to 10 for coverage, clarity, discriminativeness, non-redundancy,
exploit resistance and task alignment, and choose one. A and B are files or runs, whose newest rubrics are taken; with one run,
two versions of its rubric are compared, without flags its last two.

Each repetition shows the pair in both orders, with the criteria of both rubrics in a new order drawn from the seed and without their
ids. A repetition is won by the rubric whose marks of both orders together are higher, and the choice by the one that is chosen in both. p is that of the
exact two-sided sign test of wins against losses. Flips are repetitions whose two orders prefer different rubrics: with a good judge
there are few, and as many answers for the rubric shown first as for the second.

The judge is that of section judge, tier update, of the configuration files, or of the first run's own configuration.`

// preferOptions are the flags of rubrics prefer.
type preferOptions struct {
	rubricChoice
	files    []string
	goal     string
	contest  amaris.Contest
	from, to int
	asJSON   bool
}

func preferCommand() *cobra.Command {
	o := preferOptions{from: newest, to: newest}
	cmd := &cobra.Command{
		Use:   "prefer (A B | RUN [--from N] [--to N]) [-c FILE ...] [key=value ...]",
		Short: "Have a judge compare two rubrics blind, in six respects",
		Long:  preferHelp,
		Example: `  rubicon rubrics prefer runs/no-memory runs/amaris --n 20
  rubicon rubrics prefer runs/amaris --from 1
  rubicon rubrics prefer old.json new.json -c judge.yaml --goal "Sound medical advice"`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := o.run(cmd.Context(), cmd.ErrOrStderr(), args)
			if err != nil {
				return err
			}
			return printReport(cmd.OutOrStdout(), p, o.asJSON)
		},
	}
	o.add(cmd)
	f := cmd.Flags()
	f.StringArrayVarP(&o.files, "config", "c", nil, "configuration file with a section judge; a later one wins key by key (default: that of the first run)")
	f.StringVar(&o.goal, "goal", "", "what the training is for (default: the goal of the first run)")
	f.IntVar(&o.contest.Repetitions, "n", 10, "repetitions, each of two questions")
	f.Uint64Var(&o.contest.Seed, "seed", 0, "seed of the orders of criteria")
	f.IntVar(&o.from, "from", newest, "version of a run's rubric that is A (default: the one before --to)")
	f.IntVar(&o.to, "to", newest, "version of a run's rubric that is B (default: the newest)")
	f.Lookup("from").DefValue, f.Lookup("to").DefValue = "0", "0" // keeps -1 out of the help
	f.BoolVar(&o.asJSON, "json", false, "print one JSON object instead of a table; null is not known")
	return cmd
}

func (o *preferOptions) run(ctx context.Context, talk io.Writer, args []string) (out amaris.Preference, err error) {
	args, overrides := splitOverrides(args)
	if len(args) < 1 || len(args) > 2 {
		return out, errors.New("give two rubrics, each a file or the folder of a run, or one run")
	}
	if o.contest.A, o.contest.B, err = o.pair(talk, args, o.from, o.to); err != nil {
		return out, err
	}
	c, err := o.config(talk, args, overrides)
	if err != nil {
		return out, err
	}
	if o.contest.Goal, err = o.findGoal(args); err != nil {
		return out, err
	}
	j, err := lonelyJudge(ctx, c, talk)
	if err != nil {
		return out, err
	}
	defer closing(&err, j.close)
	client, err := j.open()
	if err != nil {
		return out, err
	}
	out, err = o.contest.Hold(ctx, client)
	out.A, out.B = rubricName(args[0], o.contest.A), rubricName(args[len(args)-1], o.contest.B)
	return out, err
}

// splitOverrides parts arguments from the key=value that follow them.
func splitOverrides(args []string) (names, overrides []string) {
	for i, a := range args {
		if key, _, ok := strings.Cut(a, "="); ok && !strings.ContainsAny(key, "/\\") {
			return args[:i], args[i:]
		}
	}
	return args, nil
}

// config is the configuration that names the judge.
func (o *preferOptions) config(talk io.Writer, args, overrides []string) (*configs.Config, error) {
	files := o.files
	if len(files) == 0 {
		for _, a := range args {
			if isDir(a) {
				run, _ := partOf(a)
				files = []string{filepath.Join(run, "config.yaml")}
				break
			}
		}
	}
	if len(files) == 0 && len(overrides) == 0 {
		return nil, errors.New("there is no judge: name a configuration file with a section judge by -c, or set judge.url and judge.model")
	}
	return loadConfig(files, overrides, talk)
}

// findGoal is the flag, or the goal of the first run that has one.
func (o *preferOptions) findGoal(args []string) (string, error) {
	if o.goal != "" {
		return o.goal, nil
	}
	for _, a := range args {
		if !isDir(a) {
			continue
		}
		part, err := rewardOf(a)
		if err != nil {
			return "", err
		}
		if goal, ok := part.Options["goal"].(string); ok && strings.TrimSpace(goal) != "" {
			return goal, nil
		}
	}
	return "", errors.New("what the training is for is not known: say it by --goal")
}

// lonelyJudge opens a configuration's judge without a run, for questions of tier update alone, and tries it.
func lonelyJudge(ctx context.Context, c *configs.Config, talk io.Writer) (*judge, error) {
	only := c.Judge
	only.JudgeModel, only.Tiers = overTier(c.Judge.JudgeModel, c.Judge.Tiers["update"]), nil
	if only.URL == localURL {
		return nil, errors.New("the judge is local, a run's own base model, which is not loaded here: name a server, such as judge.url=http://127.0.0.1:8000/v1")
	}
	if only.URL == analyst.URL {
		return nil, fmt.Errorf("the judge is %s, whose rules cannot compare rubrics: name a server, such as judge.url=http://127.0.0.1:8000/v1 judge.model=NAME", analyst.URL)
	}
	j := &judge{cfg: only, seed: uint64(c.Seed), console: talk}
	if _, err := j.open(); err != nil {
		return nil, err
	}
	if err := j.preflight(ctx); err != nil {
		return nil, errors.Join(err, j.close())
	}
	return j, nil
}

// overTier is a tier's model, with what it leaves open taken from base. A key is for the server that it stands beside.
func overTier(base, own configs.JudgeModel) configs.JudgeModel {
	if own.URL == "" {
		own.URL, own.APIKeyEnv = base.URL, cmp.Or(own.APIKeyEnv, base.APIKeyEnv)
	}
	return configs.JudgeModel{
		URL: own.URL, APIKeyEnv: own.APIKeyEnv, Model: cmp.Or(own.Model, base.Model), Temperature: cmp.Or(own.Temperature, base.Temperature),
		TopP: cmp.Or(own.TopP, base.TopP), MaxTokens: cmp.Or(own.MaxTokens, base.MaxTokens), PromptPrice: cmp.Or(own.PromptPrice, base.PromptPrice),
		CompletionPrice: cmp.Or(own.CompletionPrice, base.CompletionPrice), Timeout: cmp.Or(own.Timeout, base.Timeout),
		MaxConcurrency: cmp.Or(own.MaxConcurrency, base.MaxConcurrency), RequestsPerMinute: cmp.Or(own.RequestsPerMinute, base.RequestsPerMinute),
		TokensPerMinute: cmp.Or(own.TokensPerMinute, base.TokensPerMinute),
	}
}

// rubricName is a rubric in the heading of a table.
func rubricName(path string, s criteria.Set) string {
	if !isDir(path) {
		return path
	}
	return fmt.Sprintf("%s, %s version %d", path, cmp.Or(s.Scope(), criteria.Global), s.Version())
}
