package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rubicon-rl/rubicon/configs"
	"github.com/rubicon-rl/rubicon/trainer"
)

func sftCommand() *cobra.Command {
	var f runFlags
	target := "policy"
	cmd := &cobra.Command{
		Use:   "sft -c FILE [key=value ...]",
		Short: "Train a policy, or ARCO's rubric model, on examples (supervised fine-tuning)",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.load(args, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			switch target {
			case "policy":
				return sft(cmd.Context(), c, f.options(cmd))
			case "rubric":
				if f.json {
					return errors.New("--json is for the lines of metrics of --target policy: leave it out")
				}
				return warmRubric(cmd.Context(), c, f.dry)
			}
			return fmt.Errorf("--target %s: use policy or rubric", target)
		},
	}
	f.add(cmd, "load everything, print the plan, and stop before the first step")
	cmd.Flags().StringVar(&target, "target", target, "what is trained: policy, on conversations or prompts with completions; rubric, on annotated episodes")
	return cmd
}

// sft wires a supervised run and makes it.
func sft(ctx context.Context, c *configs.Config, o runOptions) (err error) {
	if len(c.Eval.Benchmarks) > 0 {
		return errors.New("eval.benchmarks is set, which sft does not measure between its steps: leave it empty, and measure the checkpoints with rubicon eval RUN --every --benchmark NAME")
	}
	r, err := openTraining(c, o)
	if err != nil {
		return err
	}
	defer closing(&err, r.close)
	examples, err := r.examples(c.Data.TrainFiles, 0)
	if err != nil {
		return fmt.Errorf("training data: %w", err)
	}
	var heldOut []trainer.Example
	if len(c.Eval.Files) > 0 {
		if heldOut, err = r.examples(c.Eval.Files, c.Eval.MaxRows); err != nil {
			return fmt.Errorf("held-out data: %w", err)
		}
	}
	if err := r.loadModel(ctx, sftMemory(c, examples)); err != nil {
		return err
	}
	s, err := trainer.NewSFT(r.Parts, examples, heldOut)
	if err != nil {
		return err
	}
	defer closing(&err, s.Close)
	if err := r.announce(s.Plan()); err != nil || o.dry {
		return err
	}
	if err := s.Run(ctx); err != nil {
		return err
	}
	return s.Summary(r.Console)
}
