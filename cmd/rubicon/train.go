package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/rubicon-rl/rubicon/configs"
	"github.com/rubicon-rl/rubicon/policy/token"
	"github.com/rubicon-rl/rubicon/trainer"
)

// runFlags are what train and sft take.
type runFlags struct {
	files  []string
	resume string
	dry    bool
}

func (f *runFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVarP(&f.files, "config", "c", nil, "configuration file; a later one wins key by key")
	cmd.Flags().StringVar(&f.resume, "resume", "", "go on from a checkpoint: newest (also without a value), auto (start if there is none), or its path")
	cmd.Flags().Lookup("resume").NoOptDefVal = "newest"
	cmd.Flags().BoolVar(&f.dry, "dry-run", false, "load everything, print the plan, and stop before the first step")
}

// load reads the configuration; --resume is checkpoint.resume.
func (f *runFlags) load(overrides []string, w io.Writer) (*configs.Config, error) {
	if f.resume != "" {
		overrides = append(overrides, "checkpoint.resume="+f.resume)
	}
	return loadConfig(f.files, overrides, w)
}

func trainCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "train -c FILE [key=value ...]",
		Short: "Train a policy with GRPO",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.load(args, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			ctx, cancel := context.WithCancel(cmd.Context())
			defer cancel()
			return train(ctx, c, f.dry, interrupts(cancel))
		},
	}
	f.add(cmd)
	return cmd
}

// train wires a GRPO run: device, model, tokenizer, data, reward, trainer; and makes it.
func train(ctx context.Context, c *configs.Config, dry bool, stop <-chan struct{}) (err error) {
	r, err := openRun(ctx, c, stop)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	task := trainer.Task{}
	if task.Prompts, err = r.prompts(c.Data.TrainFiles, 0); err != nil {
		return fmt.Errorf("training data: %w", err)
	}
	if len(c.Eval.Files) > 0 {
		if task.HeldOut, err = r.prompts(c.Eval.Files, c.Eval.MaxRows); err != nil {
			return fmt.Errorf("held-out data: %w", err)
		}
	}
	if task.Provider, task.Name, err = openProvider(c.Reward); err != nil {
		return err
	}
	if err := checkRows(task.Provider, task.Prompts, task.HeldOut); err != nil {
		return err
	}
	if task.Reference, err = openReference(ctx, c, r.Device, r.Model); err != nil {
		return fmt.Errorf("reference policy: %w", err)
	}
	t, err := trainer.New(r.Parts, task)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	if err := r.announce(t.Plan()); err != nil || dry {
		return err
	}
	if err := t.Run(ctx); err != nil {
		return err
	}
	return t.Summary(r.Console.W)
}

// openedRun is what every kind of training has open.
type openedRun struct {
	trainer.Parts
}

func openRun(ctx context.Context, c *configs.Config, stop <-chan struct{}) (*openedRun, error) {
	r := &openedRun{trainer.Parts{Config: c, Console: newConsole(c), Stop: stop}}
	r.Now = r.Console.Now
	dir, err := modelDir(c.Model.Path)
	if err != nil {
		return nil, err
	}
	if r.Tokenizer, err = token.Load(dir); err != nil {
		return nil, fmt.Errorf("load tokenizer of %s: %w", c.Model.Path, err)
	}
	if r.Device, err = openDevice(c, r.Console.W); err != nil {
		return nil, err
	}
	if r.Model, r.Adapter, err = openModel(ctx, c, r.Device); err != nil {
		return nil, errors.Join(err, r.Device.Close())
	}
	if n, v := r.Tokenizer.VocabSize(), r.Model.Config().Vocab; n > v {
		return nil, errors.Join(fmt.Errorf("the tokenizer of %s has %d tokens, the model only %d: it belongs to another model", c.Model.Path, n, v), r.close())
	}
	return r, nil
}

func (r *openedRun) close() error { return errors.Join(r.Model.Close(), r.Device.Close()) }

// announce prints what the run is going to do.
func (r *openedRun) announce(plan string) error {
	params, err := r.Model.Params(r.Adapter)
	if err != nil {
		return err
	}
	total := 0
	for _, p := range r.Model.Config().Parameters() {
		n := 1
		for _, d := range p.Shape {
			n *= d
		}
		total += n
	}
	fmt.Fprintf(r.Console.W, "model      %s, %s parameters, %s trainable (%.2f%%)\n%s", r.Config.Model.Path, count(total), count(params.Len),
		100*float64(params.Len)/float64(total), plan)
	return nil
}

// count prints a number of parameters.
func count(n int) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.2fB", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.2fM", float64(n)/1e6)
	}
	return fmt.Sprint(n)
}
