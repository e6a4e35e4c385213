package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/rubicon-rl/rubicon/configs"
	"github.com/rubicon-rl/rubicon/internal/disk"
)

// print says what was found, a line each, and what might be regretted.
func (d *dryRunReport) print(w io.Writer) {
	v := d.values
	fmt.Fprintf(w, "\nweights    hash %s before the step, %s after it\n", d.before, d.after)
	switch most, compared := v["sampling/sampling_logp_difference/max"]; {
	case !compared:
		fmt.Fprintln(w, "log-probs  the trainer's are not compared with the sampler's, which knows no dropout")
	case most == 0:
		fmt.Fprintln(w, "log-probs  the trainer's are the sampler's, to the bit")
	default:
		fmt.Fprintf(w, "log-probs  the trainer's differ from the sampler's by %.2g on average, at most %.2g\n", v["sampling/sampling_logp_difference/mean"], most)
	}
	_, completions := d.sampling()
	fmt.Fprintf(w, "reward     %d completions scored, %.0f%% of them unscorable; %.0f%% of the groups have equal rewards\n", completions,
		100*v["rewards/unscorable_frac"], 100*v["frac_reward_zero_std"])
	if d.turns {
		fmt.Fprintf(w, "env        %s: reached, %d episodes were played\n", d.run.Env.Kind, completions)
	}
	if d.judge != nil {
		fmt.Fprintf(w, "judge      reached: %.0f calls, %.0f of them failed, %.0f tokens of prompts, %.0f of answers\n", d.judge["judge/calls"], d.judge["judge/errors"],
			d.judge["judge/prompt_tokens"], d.judge["judge/completion_tokens"])
	}
	fmt.Fprintf(w, "memory     %s were held in the step", size(int64(1e9*v["perf/max_memory_allocated_gb"])))
	if d.memory > 0 {
		fmt.Fprintf(w, ", %s are there", size(d.memory))
	}
	fmt.Fprintln(w)
	d.printDisk(w)
	d.printTime(w)
	for _, n := range slices.Concat(d.run.Warnings(), d.stepWarnings()) {
		fmt.Fprintf(w, "warning    %s %s\n", n.Key, n.Text)
	}
}

// printDisk compares what the run leaves on the disk with what is free there.
func (d *dryRunReport) printDisk(w io.Writer) {
	n := d.checkpoints()
	samplings, _ := d.sampling()
	need := int64(n)*d.saved + int64(samplings)*d.sampled
	fmt.Fprintf(w, "disk       %d checkpoints of %s and the completions: %s", n, size(d.saved), size(need))
	if free, ok := disk.Free(existing(cmp.Or(d.run.Checkpoint.Dir, d.run.OutputDir))); ok {
		fmt.Fprintf(w, ", %s are free", size(free))
		if free < need {
			fmt.Fprintf(w, "\nwarning    the disk is too small: set checkpoint.save_total_limit, or checkpoint.dir to a folder on another disk")
		}
	}
	fmt.Fprintln(w)
}

// checkpoints is how many are on the disk at the end; the best one may be kept beside the newest.
func (d *dryRunReport) checkpoints() int {
	k, n := d.run.Checkpoint, 1
	if every := k.SaveSteps.Every(d.steps); every > 0 {
		n = (d.steps + every - 1) / every
	}
	if k.SaveTotalLimit > 0 {
		n = min(n, k.SaveTotalLimit)
	}
	if k.MetricForBestModel != "" {
		n++
	}
	return n
}

// sampling is how many of the run's steps begin with a generation, and how many completions such a step samples.
func (d *dryRunReport) sampling() (steps, completions int) {
	b := d.batching
	perGeneration := b.StepsPerGeneration * b.Iterations // micro-steps
	steps = d.steps
	if perGeneration > b.GradAccum {
		steps = (d.steps*b.GradAccum + perGeneration - 1) / perGeneration
	}
	return steps, b.GenerationBatch * max(1, b.GradAccum/perGeneration)
}

// existing is the nearest folder above path, or path itself, that is there.
func existing(path string) string {
	path, err := filepath.Abs(path)
	for err == nil {
		if info, e := os.Stat(path); e == nil && info.IsDir() || path == filepath.Dir(path) {
			break
		}
		path = filepath.Dir(path)
	}
	return path
}

// printTime multiplies the step's time and cost.
func (d *dryRunReport) printTime(w io.Writer) {
	v := d.values
	samplings, completions := d.sampling()
	sampling := v["timing_s/gen"] + v["timing_s/reward"]
	total := float64(samplings)*sampling + float64(d.steps)*(v["step_time"]-sampling)
	fmt.Fprintf(w, "time       %s for %d steps, by this one (sampling %.2g s, scoring %.2g s, all %.2g s)", duration(total), d.steps,
		v["timing_s/gen"], v["timing_s/reward"], v["step_time"])
	if evals := d.evaluations(); evals > 0 {
		each := sampling / float64(completions) * float64(d.heldOut*d.run.Eval.NumGenerationsEval)
		fmt.Fprintf(w, ", and about %s for %d evaluations", duration(each*float64(evals)), evals)
	}
	fmt.Fprintln(w)
	if cost := d.judge["judge/cost"]; cost > 0 {
		fmt.Fprintf(w, "cost       the judge's: about %.2f for all steps, %.4f for this one; evaluations come on top\n", cost*float64(samplings), cost)
	}
}

func (d *dryRunReport) evaluations() int {
	e, n := d.run.Eval, 0
	if d.heldOut == 0 {
		return 0
	}
	if every := e.EvalSteps.Every(d.steps); every > 0 {
		n = d.steps / every
	}
	if e.EvalOnStart {
		n++
	}
	if every := e.EvalSteps.Every(d.steps); e.EvalOnEnd && (every == 0 || d.steps%every != 0) {
		n++
	}
	return n
}

func duration(seconds float64) time.Duration {
	d := time.Duration(seconds * float64(time.Second))
	if d > time.Minute {
		return d.Round(time.Minute)
	}
	return d.Round(100 * time.Millisecond)
}

// stepWarnings are what the step itself says about the settings.
func (d *dryRunReport) stepWarnings() []configs.Note {
	var notes []configs.Note
	when := func(is bool, key, text string) {
		if is {
			notes = append(notes, configs.Note{Key: key, Text: text})
		}
	}
	v := d.values
	when(d.before == d.after, "the weights", "have not changed in the step: nothing would be learnt from such a one")
	when(v["frac_reward_zero_std"] == 1, "the reward", "is equal within every group: use data on which the model sometimes succeeds, or a reward with more than two values")
	when(v["completions/clipped_ratio"] > 0.5, "rollout.max_completion_length", fmt.Sprintf("cuts %.0f%% of the completions: raise it, or set grpo.mask_truncated_completions", 100*v["completions/clipped_ratio"]))
	when(v["rewards/unscorable_frac"] > 0, "the reward", "could not score all completions: completions/ of the run will say why")
	return notes
}
