package trainer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"runtime"

	"github.com/rubicon-rl/rubicon/trainer/track"
)

// stepper is a kind of training.
type stepper interface {
	Step(ctx context.Context) error                                     // one optimiser step
	Evaluate(ctx context.Context, step int) (map[string]float64, error) // nil: there is nothing to evaluate on
	show(w io.Writer)                                                   // what a person may want to see with a line of metrics
	save(dir string) error                                              // what a checkpoint holds beside core's part
	load(dir string) error
}

// run makes the run's steps; between two of them it logs, evaluates and saves, in this order, so that a checkpoint
// knows the best evaluation and a resumed run writes every line once. Trackers are told the end before it returns.
func (c *core) run(ctx context.Context, s stepper) error {
	if c.Lock != nil {
		c.Lock.Lock()
		defer c.Lock.Unlock()
	}
	if err := c.begin(ctx, s.load); err != nil {
		return err
	}
	err := c.advance(ctx, s)
	c.trackers.Close(c.end(err))
	return err
}

// advance makes the steps that are left.
func (c *core) advance(ctx context.Context, s stepper) error {
	if c.state.Step == 0 && c.Config.Eval.EvalOnStart {
		if _, err := c.measure(ctx, s); err != nil {
			return err
		}
	}
	if c.state.EvalDue {
		c.state.EvalDue = false
		if improved, err := c.evaluate(ctx, s); err != nil {
			return err
		} else if improved {
			if err := c.checkpoint(ctx, s.save); err != nil {
				return err
			}
		}
	}
	stopped := false
	for c.state.Step < c.total && !stopped {
		began, tokens := c.Now(), c.state.NumTokens
		if err := s.Step(ctx); err != nil {
			return c.pause(ctx, s, err)
		}
		c.clock("step_time", began)
		if t := c.timing["step_time"]; t > 0 {
			c.timing["perf/throughput"] = float64(c.state.NumTokens-tokens) / t // tokens a second, as verl counts them
		}
		if t := c.timing["timing_s/update_actor"]; t > 0 && c.peak > 0 {
			c.timing["perf/mfu/actor"] = trainFLOPs(c.Model.Config().Size(), c.Adapter == "") * float64(c.tokens) / t / c.peak
		}
		c.tokens = 0
		c.state.Window.Add(c.timing)
		clear(c.timing)
		stop, err := c.rollCall(ctx, c.standing())
		if err != nil {
			return fmt.Errorf("after step %d: %w", c.state.Step, err)
		}
		stopped = stop && c.state.Step < c.total
		if err := c.between(ctx, s, stopped); err != nil {
			return err
		}
	}
	if stopped {
		return ErrInterrupted
	}
	return nil
}

// end is the end of the run as trackers are told it.
func (c *core) end(err error) track.End {
	e := track.End{Status: track.Failed, Files: map[string]string{}}
	switch {
	case err == nil:
		e.Status = track.Finished
	case errors.Is(err, ErrInterrupted), errors.Is(err, ErrPaused):
		e.Status = track.Interrupted
	}
	for _, name := range []string{"config.yaml", "metrics.jsonl", "health.jsonl", "rubrics/log.jsonl"} {
		e.Files[name] = c.dir.join(filepath.FromSlash(name))
	}
	if c.Adapter != "" { // all weights are too much to keep in two places
		for _, name := range []string{"adapter_config.json", "adapter_model.safetensors"} {
			e.Files["adapter/"+name] = filepath.Join(stepFolder(c.dir.saved, c.state.Step), name)
		}
	}
	return e
}

// between does what is due after a step.
func (c *core) between(ctx context.Context, s stepper, stopped bool) error {
	step, last := c.state.Step, c.state.Step == c.total
	if c.due(c.Config.Track.LoggingSteps.Every(c.total)) || last || step == 1 && c.Config.Track.LoggingFirstStep {
		c.measureState()
		if err := c.log(); err != nil {
			return err
		}
		s.show(c.Console)
	}
	improved := false
	c.state.EvalDue = c.due(c.Config.Eval.EvalSteps.Every(c.total)) || last && c.Config.Eval.EvalOnEnd
	if c.state.EvalDue && !stopped {
		c.state.EvalDue = false
		var err error
		if improved, err = c.evaluate(ctx, s); err != nil {
			c.state.EvalDue = true // the resumed run makes up for it
			return errors.Join(err, c.checkpoint(ctx, s.save))
		}
	}
	if !c.due(c.Config.Checkpoint.SaveSteps.Every(c.total)) && !last && !stopped && !improved {
		return nil
	}
	return c.checkpoint(ctx, s.save)
}

// due reports whether something that happens every so many steps is due; 0: never.
func (c *core) due(every int) bool { return every > 0 && c.state.Step%every == 0 }

// evaluate measures the held-out set; improved: it is the best so far.
func (c *core) evaluate(ctx context.Context, s stepper) (improved bool, err error) {
	values, err := c.measure(ctx, s)
	if err != nil || values == nil {
		return false, err
	}
	return c.judgeBest(values)
}

// measure logs the held-out set's metrics under eval_ names and returns them; nil if there is no such set.
func (c *core) measure(ctx context.Context, s stepper) (map[string]float64, error) {
	c.Console.Tick(c.state.Step, "evaluating")
	began := c.Now()
	values, err := s.Evaluate(ctx, c.state.Step)
	if err != nil {
		return nil, fmt.Errorf("evaluate after step %d: %w", c.state.Step, err)
	}
	if values == nil {
		return nil, nil
	}
	values["eval_runtime"] = c.Now().Sub(began).Seconds()
	c.clock("timing_s/testing", began)
	return values, c.record(values)
}

// measureState notes what a line of metrics says of the run as it stands.
func (c *core) measureState() {
	latest := c.state.Latest
	latest["param_norm"] = math.Sqrt(c.params.Squares(c.Device))
	latest["perf/max_memory_allocated_gb"] = c.memory()
	latest["perf/checkpoint_gb"] = float64(c.params.Len) * checkpointBytes / 1e9
	if free, ok := c.DiskFree(c.dir.saved); ok { // a file system that cannot say is no reason to stop
		latest["perf/disk_free_gb"] = float64(free) / 1e9
	}
}

// checkpointBytes is what a checkpoint has of each trained parameter: itself and AdamW's two moments, float32.
const checkpointBytes = 12

// memory is what the device and this process hold, GB.
func (c *core) memory() float64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(uint64(c.Device.Allocated())+m.HeapSys) / 1e9
}
