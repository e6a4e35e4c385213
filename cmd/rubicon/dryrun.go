package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/rubicon-rl/rubicon/configs"
	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/policy"
	"github.com/rubicon-rl/rubicon/trainer"
	"github.com/rubicon-rl/rubicon/trainer/track"
)

// dryRun makes one real step of the run in a temporary folder, which it removes, and prints what the whole run will take.
func dryRun(ctx context.Context, c *configs.Config, stop <-chan struct{}) (err error) {
	dir, err := os.MkdirTemp("", "rubicon-dry-run-")
	if err != nil {
		return err
	}
	defer closing(&err, func() error { return os.RemoveAll(dir) })
	r, err := openRun(oneStep(c, dir), stop)
	if err != nil {
		return err
	}
	defer closing(&err, r.close)
	t, err := r.trainer(ctx)
	if err != nil {
		return err
	}
	defer closing(&err, t.Close)
	d := &dryRunReport{run: c, prompts: len(t.Prompts), heldOut: len(t.HeldOut), dir: dir}
	if c.Checkpoint.Resume != "" {
		fmt.Fprintln(r.Console, "note: a dry run begins anew, whatever it would resume from")
	} else if trainer.Used(c) {
		fmt.Fprintf(r.Console, "note: %s holds a run: the real one will want --resume, or another output_dir\n", c.OutputDir)
	}
	if d.batching, err = c.Batching(1); err != nil {
		return err
	}
	if d.steps, err = trainer.Steps(c, d.prompts); err != nil {
		return err
	}
	if err := r.announce(d.plan()); err != nil {
		return err
	}
	if err := d.measure(ctx, r, t); err != nil {
		return err
	}
	d.print(r.Console)
	return nil
}

// oneStep is a run as c says, but in another folder and of one step, which moves the weights at the full learning rate and is saved.
func oneStep(c *configs.Config, dir string) *configs.Config {
	one := *c
	one.OutputDir, one.Checkpoint.Dir, one.Checkpoint.Resume, one.Checkpoint.MetricForBestModel = filepath.Join(dir, "run"), "", "", ""
	one.Judge.Record = ""
	one.Optim.MaxSteps, one.Optim.WarmupSteps = 1, 0
	one.Optim.LRSchedulerType, one.Optim.LRSchedulerKwargs = "constant", configs.LRSchedulerKwargs{}
	one.Eval.EvalSteps, one.Eval.EvalOnStart, one.Eval.EvalOnEnd = 0, false, false
	one.Track.LoggingSteps = 1
	return &one
}

// dryRunReport is what the one step showed.
type dryRunReport struct {
	run              *configs.Config
	batching         grpo.Batching
	steps            int // of the whole run
	prompts, heldOut int
	dir              string

	memory         int64 // of the device, bytes; 0: unknown
	before, after  string
	values         map[string]float64 // metrics of the step
	judge          map[string]float64 // what the judge was asked for it; nil: there is none
	turns          bool               // completions are episodes
	saved, sampled int64              // bytes of a checkpoint and of the completions
}

func (d *dryRunReport) plan() string {
	return fmt.Sprintf("data       %d training prompts, %d held out\nbatch      %s\nsteps      %d optimiser steps, of which one is made now, in a temporary folder\n",
		d.prompts, d.heldOut, d.batching, d.steps)
}

// measure makes the step.
func (d *dryRunReport) measure(ctx context.Context, r *openedRun, t *trainer.Trainer) (err error) {
	d.memory, d.turns = r.Device.Info().Memory, r.episodes != nil
	params, err := r.Model.Params(r.Adapter)
	if err != nil {
		return err
	}
	if d.before, err = weightsHash(r.Device, params); err != nil {
		return err
	}
	asked := r.reward.judge.totals()
	if err := t.Run(ctx); err != nil {
		return fmt.Errorf("the step of the dry run: %w", err)
	}
	if d.after, err = weightsHash(r.Device, params); err != nil {
		return err
	}
	if d.judge = r.reward.judge.totals(); d.judge != nil {
		for name, n := range asked {
			d.judge[name] -= n
		}
	}
	run := filepath.Join(d.dir, "run")
	records, err := track.ReadJSONL(filepath.Join(run, "metrics.jsonl"))
	if err != nil {
		return err
	}
	if len(records) == 0 {
		return errors.New("the step left no metrics")
	}
	d.values = records[0].Values
	if d.saved, err = folderSize(filepath.Join(run, "checkpoints")); err == nil {
		d.sampled, err = folderSize(filepath.Join(run, "completions"))
	}
	return err
}

// weightsHash is the SHA-256 of what is trained, shortened.
func weightsHash(dev device.Device, p *policy.Params) (string, error) {
	const chunk = 1 << 20
	sum, values, bytes := sha256.New(), make([]float32, min(chunk, p.Len)), make([]byte, 0, 4*chunk)
	for at := 0; at < p.Len; at += chunk {
		part := values[:min(chunk, p.Len-at)]
		if err := dev.Download(part, p.W, at); err != nil {
			return "", err
		}
		bytes = bytes[:0]
		for _, v := range part {
			bytes = binary.LittleEndian.AppendUint32(bytes, math.Float32bits(v))
		}
		sum.Write(bytes)
	}
	return fmt.Sprintf("%x", sum.Sum(nil)[:6]), nil
}

// folderSize is the size of all files below dir; 0 if it is not there.
func folderSize(dir string) (total int64, err error) {
	err = filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			total += info.Size()
		}
		return err
	})
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	return total, err
}
