package trainer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rubicon-rl/rubicon/configs"
	"github.com/rubicon-rl/rubicon/policy"
	"github.com/rubicon-rl/rubicon/policy/safetensors"
)

const (
	stateFile = "state.json"
	adamFile  = "optimizer.safetensors"
)

// checkpoint saves the run as it stands: parameters in the format of PEFT or transformers, optimiser moments, state, and
// what extra writes. It is complete on disk before it has its name. Rank 0 saves, and the others wait: who starts the
// processes may end all of them as soon as one has ended.
func (c *core) checkpoint(ctx context.Context, extra func(dir string) error) error {
	_, err := lead(ctx, c.Group, "the checkpoint", func() (bool, error) { return true, c.commit(extra) })
	return err
}

func (c *core) commit(extra func(dir string) error) error {
	defer c.clock("timing_s/save_checkpoint", c.Now())
	size, err := c.metrics.Size()
	if err != nil {
		return err
	}
	c.state.MetricsBytes = size
	path := stepFolder(c.dir.saved, c.state.Step)
	err = commitFolder(path, func(dir string) error {
		if err := c.saveModel(dir); err != nil || c.Config.Checkpoint.SaveOnlyModel {
			return err
		}
		if err := c.saveState(dir); err != nil {
			return err
		}
		return extra(dir)
	})
	if err != nil {
		return fmt.Errorf("save checkpoint %s (the run's older checkpoints are untouched): %w", path, err)
	}
	return c.prune()
}

func (c *core) saveModel(dir string) error {
	save := func() error { return c.Model.SaveAdapter(c.Adapter, dir) }
	if c.Adapter == "" {
		save = func() error { return c.Model.SaveFull(dir) }
	}
	return errors.Join(save(), c.Tokenizer.WriteFiles(dir))
}

func (c *core) saveState(dir string) error {
	adam, err := c.optim.State()
	if err != nil {
		return err
	}
	c.state.Adam = adam.Step
	err = safetensors.Write(filepath.Join(dir, adamFile), []safetensors.Item{
		safetensors.Float32s("exp_avg", safetensors.F32, []int{len(adam.M)}, adam.M),
		safetensors.Float32s("exp_avg_sq", safetensors.F32, []int{len(adam.V)}, adam.V),
	}, safetensors.Options{})
	return errors.Join(err, writeJSON(filepath.Join(dir, stateFile), c.state))
}

// prune removes the oldest checkpoints beyond save_total_limit, never the best one, and what a process
// that was killed while it saved left behind.
func (c *core) prune() error {
	limit := c.Config.Checkpoint.SaveTotalLimit
	if err := removeHalves(c.dir.saved); err != nil {
		return err
	}
	steps, err := stepFolders(c.dir.saved)
	if err != nil || limit == 0 {
		return err
	}
	if b := c.state.Best; b != nil {
		steps = slices.DeleteFunc(steps, func(s int) bool { return s == b.Step })
	}
	for _, s := range steps[:max(0, len(steps)-limit)] {
		if err := os.RemoveAll(stepFolder(c.dir.saved, s)); err != nil {
			return err
		}
	}
	return nil
}

// resume loads the checkpoint that checkpoint.resume names, if any.
func (c *core) resume(ctx context.Context, load func(dir string) error) error {
	path, err := lead(ctx, c.Group, "the checkpoint to resume from", c.resumeFrom)
	if err != nil || path == "" {
		return err
	}
	if err := c.load(ctx, path, load); err != nil {
		return fmt.Errorf("resume from %s: %w", path, err)
	}
	fmt.Fprintf(c.Console, "resumed from %s (step %d of %d)\n", path, c.state.Step, c.total)
	return nil
}

// resumeFrom is the whole checkpoint to go on from, "" to start.
func (c *core) resumeFrom() (string, error) {
	switch from := c.Config.Checkpoint.Resume; from {
	case "":
		return "", nil
	case "newest", "auto":
		path, broken, err := newestWhole(c.dir.saved)
		if err != nil {
			return "", err
		}
		for _, b := range broken {
			fmt.Fprintf(c.Console, "passed over: %v\n", b)
		}
		if path == "" && from == "newest" {
			return "", fmt.Errorf("no whole checkpoint in %s to resume from: --resume=auto starts anew", c.dir.saved)
		}
		return path, nil
	default:
		return from, checkFolder(from)
	}
}

func (c *core) load(ctx context.Context, dir string, extra func(dir string) error) error {
	b, err := os.ReadFile(filepath.Join(dir, stateFile))
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("it holds a model only (checkpoint.save_only_model): start a new run from it with model.adapter or model.path")
	}
	if err != nil {
		return err
	}
	s := State{Latest: map[string]float64{}}
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("%s: %w", stateFile, err)
	}
	if s.Kind != c.state.Kind {
		return fmt.Errorf("it is of a %s run, this is %s", s.Kind, c.state.Kind)
	}
	if s.Model != c.state.Model {
		return fmt.Errorf("it was trained on another base model than model.path %s", c.Config.Model.Path)
	}
	if s.Data != c.state.Data {
		return fmt.Errorf("its training data was another: resume with the same data.train_files and the same settings of section data, or start a new run from it with model.adapter or model.path")
	}
	if err := c.loadModel(ctx, dir); err != nil {
		return err
	}
	if err := c.loadAdam(dir, s.Adam); err != nil {
		return err
	}
	s.rescale(c.state.MicroRows)
	c.state = s
	return extra(dir)
}

// rescale counts the micro-steps of an epoch in those of so many rows, rounded down: the number of processes, or the batch, may be
// another one than when the checkpoint was written. Early checkpoints do not note theirs.
func (s *State) rescale(rows int) {
	if s.MicroRows > 0 {
		s.Micro = s.Micro * s.MicroRows / rows
	}
	s.MicroRows = rows
}

// CheckAdapter refuses the adapter of a checkpoint that was trained on a base model of another fingerprint. What is not a
// checkpoint of a run does not say what it was trained on.
func CheckAdapter(dir, fingerprint string) error {
	b, err := os.ReadFile(filepath.Join(dir, stateFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	var s State
	if err == nil {
		err = json.Unmarshal(b, &s)
	}
	if err == nil && s.Model != fingerprint {
		err = fmt.Errorf("it was trained on another base model; to use it all the same, copy it without %s", stateFile)
	}
	if err != nil {
		return fmt.Errorf("adapter %s: %w", dir, err)
	}
	return nil
}

func (c *core) loadModel(ctx context.Context, dir string) error {
	if c.Adapter == "" {
		return c.Model.LoadFull(ctx, dir)
	}
	return c.Model.RestoreAdapter(c.Adapter, dir)
}

func (c *core) loadAdam(dir string, step int) error {
	f, err := safetensors.Open(filepath.Join(dir, adamFile))
	if err != nil {
		return err
	}
	defer f.Close()
	s := policy.AdamWState{Step: step, M: make([]float32, c.params.Len), V: make([]float32, c.params.Len)}
	for name, dst := range map[string][]float32{"exp_avg": s.M, "exp_avg_sq": s.V} {
		t, ok := f.Tensor(name)
		if !ok {
			return fmt.Errorf("%s has no %s", adamFile, name)
		}
		if err := t.Float32s(dst); err != nil {
			return fmt.Errorf("%s: %w", adamFile, err)
		}
	}
	return c.optim.SetState(s)
}

// judgeBest remembers the step if its held-out metric is the best so far, and reports that.
func (c *core) judgeBest(values map[string]float64) (bool, error) {
	o := c.Config.Checkpoint
	if o.MetricForBestModel == "" {
		return false, nil
	}
	v, ok := values[o.MetricForBestModel]
	if !ok {
		v, ok = values["eval_"+o.MetricForBestModel]
	}
	if !ok {
		return false, fmt.Errorf("checkpoint.metric_for_best_model: the evaluation has no %q, but %s",
			o.MetricForBestModel, strings.Join(slices.Sorted(maps.Keys(values)), ", "))
	}
	if math.IsNaN(v) { // nothing could be scored
		return false, nil
	}
	if b := c.state.Best; b != nil && !better(o, v, b.Value) {
		return false, nil
	}
	c.state.Best = &best{c.state.Step, v}
	return true, nil
}

func better(o configs.Checkpoint, v, than float64) bool {
	greater := !strings.HasSuffix(o.MetricForBestModel, "loss")
	if o.GreaterIsBetter != nil {
		greater = *o.GreaterIsBetter
	}
	if greater {
		return v > than
	}
	return v < than
}
