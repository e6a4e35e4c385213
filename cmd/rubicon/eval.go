package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
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
			run := ""
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
			if run != "" {
				if err := useCheckpoint(c, run, checkpoint); err != nil {
					return err
				}
			}
			return evaluate(cmd.Context(), c, out, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringArrayVarP(&files, "config", "c", nil, "configuration file; a later one wins key by key")
	cmd.Flags().StringVar(&checkpoint, "checkpoint", "newest", "checkpoint of RUN: newest, or step-N")
	cmd.Flags().StringVarP(&out, "out", "o", "completions.jsonl", "file for the completions and their scores")
	return cmd
}

// useCheckpoint makes c load the weights of a run's checkpoint.
func useCheckpoint(c *configs.Config, run, name string) error {
	path, err := trainer.CheckpointIn(cmp.Or(c.Checkpoint.Dir, filepath.Join(run, "checkpoints")), name)
	if err != nil {
		return err
	}
	if c.Model.Trainable == "full" {
		c.Model.Path = path
	} else {
		c.Model.Adapter = path
	}
	c.Model.Init = "weights"
	return nil
}

func evaluate(ctx context.Context, c *configs.Config, out string, w io.Writer) (err error) {
	if len(c.Eval.Files) == 0 {
		return fmt.Errorf("eval.files is empty: name the held-out rows")
	}
	r, err := openRun(c, nil)
	if err != nil {
		return err
	}
	defer closing(&err, r.close)
	prompts, err := r.prompts(c.Eval.Files, c.Eval.MaxRows)
	if err != nil {
		return err
	}
	provider, name, err := openProvider(c.Reward)
	if err != nil {
		return err
	}
	if err := checkRows(provider, prompts); err != nil {
		return err
	}
	if r.Model, r.Adapter, err = loadFrozen(ctx, r.Device, modelFlags{c.Model.Path, c.Model.Adapter, c.Model.DType}); err != nil {
		return err
	}
	rollouts := trainer.Rollouts{Config: c, Model: r.Model, Adapter: r.Adapter, Tokenizer: r.Tokenizer, Provider: provider, Name: name}
	values, err := rollouts.Evaluate(ctx, prompts, out)
	if err != nil {
		return err
	}
	b, err := json.Marshal(track.Record{Values: values})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(w, string(b))
	return err
}
