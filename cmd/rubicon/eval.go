package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/rubicon-rl/rubicon/configs"
	"github.com/rubicon-rl/rubicon/trainer"
	"github.com/rubicon-rl/rubicon/trainer/track"
)

func evalCommand() *cobra.Command {
	var files []string
	var checkpoint, out string
	cmd := &cobra.Command{
		Use:   "eval (RUN | -c FILE) [key=value ...]",
		Short: "Score a policy on held-out prompts",
		Long: `Samples the prompts of eval.files with the settings of section eval, has them scored by the configured reward, prints
the metrics as one JSON object and writes the completions down. RUN is the folder of a run: its configuration and a
checkpoint of it are taken.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			run, from := "", ""
			if len(files) == 0 {
				if len(args) == 0 {
					return fmt.Errorf("give the folder of a run, or a configuration with -c")
				}
				run, args = args[0], args[1:]
				files = []string{filepath.Join(run, "config.yaml")}
			}
			c, err := loadConfig(files, args, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			r := track.Record{}
			if run != "" {
				if from, r.Step, err = useCheckpoint(c, run, checkpoint); err != nil {
					return err
				}
				out = cmp.Or(out, filepath.Join(run, "eval", fmt.Sprintf("checkpoint_%d.jsonl", r.Step)))
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
		},
	}
	cmd.Flags().StringArrayVarP(&files, "config", "c", nil, "configuration file; a later one wins key by key")
	cmd.Flags().StringVar(&checkpoint, "checkpoint", "newest", "checkpoint of RUN: newest, or step-N")
	cmd.Flags().StringVarP(&out, "out", "o", "", "file for the completions and their scores (default RUN/eval/checkpoint_N.jsonl; completions.jsonl with -c)")
	return cmd
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
	r, err := openRun(c, nil)
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
