package trainer

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/rubicon-rl/rubicon/trainer/track"
)

// Plan says what a GRPO run is going to do, a line each.
func (t *Trainer) Plan() string {
	s := fmt.Sprintf("data       %d training prompts, %d held out\nbatch      %s\n", len(t.Prompts), len(t.HeldOut), t.batching)
	return s + t.plan()
}

// Plan says what a supervised run is going to do, a line each.
func (s *SFT) Plan() string {
	return fmt.Sprintf("data       %d examples in %d rows, %d examples held out\nbatch      %d rows x %d micro-batches\n",
		len(s.Examples), len(s.bins), len(s.HeldOut), s.batchSize(), s.accum) + s.plan()
}

func (c *core) plan() string {
	return fmt.Sprintf("steps      %d optimiser steps, a checkpoint every %d\nrun        %s\n",
		c.total, c.Config.Checkpoint.SaveSteps.Every(c.total), c.dir.path)
}

// Summary shows how the run went, from its own log: the curve, held-out values before and after, and where to look next.
func (c *core) Summary(w io.Writer) error {
	records, err := track.ReadJSONL(c.dir.metrics())
	if err != nil {
		return err
	}
	fmt.Fprintln(w)
	for _, name := range []string{"reward", "loss"} {
		if curve := track.Series(records, name); len(curve) > 1 {
			fmt.Fprintf(w, "%-12s %s  %.3f -> %.3f\n", name, track.Sparkline(track.Shorten(curve, 50)), curve[0], curve[len(curve)-1])
			break
		}
	}
	if first, last, changed := versions(records); changed {
		fmt.Fprintf(w, "%-12s the rubric went from version %.3g to %.3g: rewards of different versions do not compare; rubicon rubrics log shows it\n", "", first, last)
	}
	for _, name := range []string{"eval_reward", "eval_loss", "eval_completions/mean_length"} {
		if curve := track.Series(records, name); len(curve) > 1 {
			fmt.Fprintf(w, "%-12s %.3f -> %.3f (held out)\n", name, curve[0], curve[len(curve)-1])
		}
	}
	if err := c.beforeAfter(w, records); err != nil {
		return err
	}
	fmt.Fprintf(w, "\n%-30s metrics, a JSON object a line\n", c.dir.metrics())
	if c.state.Kind == "grpo" {
		fmt.Fprintf(w, "%-30s what was sampled and how it was scored\n", c.dir.join("completions"))
	}
	fmt.Fprintf(w, "%-30s the last checkpoint, loadable by transformers and PEFT\n", stepFolder(c.dir.saved, c.state.Step))
	if b := c.state.Best; b != nil {
		fmt.Fprintf(w, "%-30s the best one: %s %.4f\n", stepFolder(c.dir.saved, b.Step), c.Config.Checkpoint.MetricForBestModel, b.Value)
	}
	return nil
}

// beforeAfter shows the first held-out prompts with a completion before and after training.
func (c *core) beforeAfter(w io.Writer, records []track.Record) error {
	var steps []int
	for _, r := range records {
		if _, ok := r.Values["eval_reward"]; ok {
			steps = append(steps, r.Step)
		}
	}
	if len(steps) < 2 {
		return nil
	}
	before, err := readCompletions(c.evalFile(steps[0]))
	if err != nil {
		return err
	}
	after, err := readCompletions(c.evalFile(steps[len(steps)-1]))
	if err != nil || len(before) != len(after) {
		return err
	}
	each, shown := c.Config.Eval.NumGenerationsEval, 3
	for i := 0; i < len(before) && i < shown*each; i += each {
		fmt.Fprintf(w, "\n  %s\n    before %s  %s\n    after  %s  %s\n", clip(before[i].Prompt, 110),
			before[i].value(), clip(before[i].Completion, 96), after[i].value(), clip(after[i].Completion, 96))
	}
	return nil
}

func (c *core) evalFile(step int) string {
	return c.dir.join("eval", fmt.Sprintf("step_%d.jsonl", step))
}

// CheckpointIn is the whole checkpoint in the folder dir that name says, newest or step-N, and its step.
func CheckpointIn(dir, name string) (path string, step int, err error) {
	if name == "newest" {
		var broken []error
		path, broken, err = newestWhole(dir)
		if err == nil && path == "" {
			err = errors.Join(append([]error{fmt.Errorf("there is no whole checkpoint in %s", dir)}, broken...)...)
		}
	} else {
		path = filepath.Join(dir, name)
		err = checkFolder(path)
	}
	if err != nil {
		return "", 0, err
	}
	if _, err := fmt.Sscanf(filepath.Base(path), stepPrefix+"%d", &step); err != nil {
		return "", 0, fmt.Errorf("%s is not the name of a checkpoint: use newest, or step-N", name)
	}
	return path, step, nil
}

// versions are those of the first and the last rubric that a provider tells of in metrics NAME/version.
func versions(records []track.Record) (first, last float64, changed bool) {
	for _, r := range records {
		for name := range r.Values {
			if strings.HasSuffix(name, "/version") {
				if curve := track.Series(records, name); len(curve) > 1 {
					return curve[0], curve[len(curve)-1], curve[0] != curve[len(curve)-1]
				}
			}
		}
	}
	return 0, 0, false
}
