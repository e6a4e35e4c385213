package trainer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/rubicon-rl/rubicon/configs"
	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/internal/disk"
	"github.com/rubicon-rl/rubicon/internal/dist"
	"github.com/rubicon-rl/rubicon/policy"
	"github.com/rubicon-rl/rubicon/policy/token"
	"github.com/rubicon-rl/rubicon/trainer/data"
	"github.com/rubicon-rl/rubicon/trainer/track"
)

// ErrInterrupted is what a run returns that was asked to stop: its last step is finished and in a checkpoint.
var ErrInterrupted = errors.New("interrupted; the finished steps are in a checkpoint, go on with --resume")

// ErrDiverged is what a run returns after optim.max_bad_steps steps in a row without a finite loss and gradient.
var ErrDiverged = errors.New("the loss or its gradient was not finite")

// Parts are what a run is made of, wired together by the command.
type Parts struct {
	Config    *configs.Config
	Device    device.Device
	Model     *policy.Model
	Adapter   string // the set that is trained; "" with trainable: full
	Tokenizer *token.Tokenizer
	Console   *track.Console
	Now       func() time.Time
	Stop      <-chan struct{} // closed: finish the step, checkpoint, return ErrInterrupted
	// Lock is held while the run uses the model, and not while it asks rewards, whose judge may be the same model. nil: no
	// one else uses it.
	Lock  sync.Locker
	Group *dist.Group // the processes of the run; nil: this is the only one
	// Track starts the trackers of a run that has made so many steps. nil: there are none beside metrics.jsonl.
	Track func(step int) track.Trackers
	// DiskFree is what a folder's disk has left for this user, bytes; false: it is not known. nil: the system says.
	DiskFree func(dir string) (int64, bool)
}

// State is where a run stands, the part of a checkpoint that is neither parameters nor moments.
type State struct {
	Kind         string      `json:"kind"`  // grpo or sft
	Model        string      `json:"model"` // fingerprint of the base weights
	Data         string      `json:"data"`  // of the training rows
	Step         int         `json:"step"`  // optimiser steps made
	Micro        int         `json:"micro"` // micro-steps made in this epoch
	Cursor       data.Cursor `json:"cursor"`
	Draws        uint64      `json:"draws"` // generations made, the counter of the sampling streams
	NumTokens    int64       `json:"num_tokens"`
	BadSteps     int         `json:"bad_steps"` // in a row
	Skipped      int         `json:"skipped_steps"`
	MetricsBytes int64       `json:"metrics_bytes"`
	Window       grpo.Window `json:"window"`
	Best         *best       `json:"best,omitempty"`
	Adam         int         `json:"adam_steps"`
	MicroRows    int         `json:"micro_rows"` // rows of a micro-step, all processes

	Stage  int     `json:"stage,omitempty"`  // first step of the stage (optim.stages)
	Passed float64 `json:"passed,omitempty"` // epochs before it

	Latest  map[string]float64 `json:"latest"`   // what a log line says of its last step alone
	EvalDue bool               `json:"eval_due"` // an interrupt put the evaluation after this step off
}

type best struct {
	Step  int     `json:"step"`
	Value float64 `json:"value"`
}

// core is what every kind of training shares: the parameters and their optimiser, the run's folder and its state.
type core struct {
	Parts
	base     *configs.Config // as it was given; Config is what is in force at this step
	params   *policy.Params
	optim    *policy.AdamW
	schedule func(step int) float64
	micro    int // micro-steps of one pass over the data
	steps    int // optimiser steps of one pass over the data
	total    int // optimiser steps of the run
	dir      *Dir
	metrics  *track.JSONL // of rank 0, as are health and trackers
	health   *healthLog
	trackers track.Trackers
	state    State
	loss     float64            // of this step so far; of this rank's part, until reduce
	parts    []grpo.Metrics     // of this rank's part of each micro-batch of this step
	tokens   int                // computed in this step's passes, a shared prompt once
	peak     float64            // floating-point operations a second; 0: unknown
	batch    func() any         // what the step trained on, written down if it goes wrong
	timing   map[string]float64 // seconds of each phase of this step
}

// newCore takes the run's folder and the memory of the optimiser.
func newCore(p Parts, kind string) (*core, error) {
	params, err := p.Model.Params(p.Adapter)
	if err != nil {
		return nil, err
	}
	optim, err := policy.NewAdamW(p.Device, params)
	if err != nil {
		return nil, err
	}
	if p.DiskFree == nil {
		p.DiskFree = disk.Free
	}
	dir, err := openDir(p.Config, p.Group.Rank() == 0)
	if err != nil {
		optim.Close()
		return nil, err
	}
	return &core{Parts: p, base: p.Config, params: params, optim: optim, dir: dir, timing: map[string]float64{},
		state: State{Kind: kind, Model: p.Model.Fingerprint(), Latest: map[string]float64{}}}, nil
}

// Close gives back what newCore took.
func (c *core) Close() error {
	if c.Lock != nil { // a reward may still be at work
		c.Lock.Lock()
		defer c.Lock.Unlock()
	}
	c.optim.Close()
	var err error
	if c.metrics != nil {
		err = c.metrics.Close()
	}
	if c.health != nil {
		err = errors.Join(err, c.health.close())
	}
	return errors.Join(err, c.Console.Close(), c.dir.close())
}

// begin resumes the run if the configuration says so, and opens its log where the checkpoint left it.
func (c *core) begin(ctx context.Context, load func(dir string) error) error {
	if err := c.resume(ctx, load); err != nil {
		return err
	}
	schedule, err := NewSchedule(c.Config.Optim, c.total)
	if err != nil {
		return err
	}
	c.schedule = schedule
	if err := c.agree(ctx); err != nil { // before anything of an earlier run is cut
		return err
	}
	if c.leads() {
		if err := c.openLogs(); err != nil {
			return err
		}
	}
	c.Console.Total = c.total
	c.Console.Begin(c.state.Step)
	return nil
}

// writeConfig writes the resolved configuration into the run's folder.
func (c *core) writeConfig() error {
	resolved := *c.base
	resolved.Checkpoint.Resume = "" // is for this call alone
	var b bytes.Buffer
	if err := configs.Print(&b, &resolved); err != nil {
		return err
	}
	half := c.dir.join(".config.yaml") // a full disk must not cost the file that is there
	if err := os.WriteFile(half, b.Bytes(), 0o644); err != nil {
		return errors.Join(err, os.Remove(half))
	}
	return os.Rename(half, c.dir.join("config.yaml"))
}

// update moves the parameters along the gradient that all ranks have accumulated, clipped, and counts the step. A loss or
// gradient that is not finite moves nothing: the batch is written down, and after max_bad_steps of these in a row the run ends.
func (c *core) update(ctx context.Context) error {
	if err := c.reduce(ctx); err != nil {
		return err
	}
	o := c.Config.Optim
	norm := math.Sqrt(c.params.GradSquares(c.Device))
	if err := c.Device.Err(); err != nil {
		return err
	}
	lr := c.schedule(c.state.Step)
	loss := c.loss
	c.loss = 0
	c.state.Step++
	if bad := math.IsNaN(norm+loss) || math.IsInf(norm+loss, 0); bad {
		c.params.ZeroGrad(c.Device)
		return c.badStep(loss, norm)
	}
	c.state.BadSteps = 0
	scale := 1.0
	if o.MaxGradNorm > 0 {
		scale = min(1, o.MaxGradNorm/(norm+1e-6))
	}
	adam := policy.AdamWOptions{Beta1: o.AdamBeta1, Beta2: o.AdamBeta2, Eps: o.AdamEpsilon, WeightDecay: o.WeightDecay}
	if err := c.optim.Step(c.params, lr, adam, scale); err != nil {
		return err
	}
	c.params.ZeroGrad(c.Device)
	if c.Adapter == "" {
		if err := c.Model.Refresh(); err != nil {
			return err
		}
	}
	c.state.Window.Add(map[string]float64{"loss": loss})
	c.state.Latest["grad_norm"], c.state.Latest["learning_rate"] = norm, lr
	return nil
}

// skip counts a step in which there was nothing to learn from; nothing moves.
func (c *core) skip(context.Context) error {
	c.state.Step++
	c.state.Skipped++
	c.state.Latest["skipped_steps"] = float64(c.state.Skipped)
	return nil
}

// clock adds the time since began to a phase of this step.
func (c *core) clock(phase string, began time.Time) {
	c.timing[phase] += c.Now().Sub(began).Seconds()
}

// totalSteps is the number of optimiser steps of a run with perEpoch of them in a pass over the data.
func totalSteps(o configs.Optim, perEpoch int) int {
	if o.MaxSteps > 0 {
		return o.MaxSteps
	}
	return int(math.Ceil(o.NumTrainEpochs * float64(perEpoch)))
}

// log writes the window's averages.
func (c *core) log() error {
	values := c.state.Window.Flush()
	for n, v := range c.state.Latest {
		values[n] = v
	}
	clear(c.state.Latest)
	values["num_tokens"] = float64(c.state.NumTokens)
	return c.record(values)
}

// openLogs opens what rank 0 writes a run down in.
func (c *core) openLogs() (err error) {
	if err := os.MkdirAll(c.dir.saved, 0o755); err != nil { // there is a disk to look at from now on
		return err
	}
	if c.metrics, err = track.OpenJSONL(c.dir.metrics(), c.state.MetricsBytes); err != nil {
		return err
	}
	if c.health, err = openHealth(c.dir.join("health.jsonl"), c.dir.metrics()); err != nil {
		return err
	}
	if err := c.writeConfig(); err != nil {
		return err
	}
	if c.Track != nil {
		c.trackers = c.Track(c.state.Step)
	}
	c.peak = peak(c.Device, c.Model.WeightType(), c.Now)
	return nil
}

// epoch is how often the data has been gone through, as transformers counts it.
func (c *core) epoch() float64 {
	return c.state.Passed + float64((c.state.Step-c.state.Stage)/c.steps) + float64(c.state.Micro)/float64(c.micro)
}

func (c *core) record(values map[string]float64) error {
	if !c.leads() {
		return nil
	}
	values["epoch"] = c.epoch()
	r := track.Record{Step: c.state.Step, Values: values}
	if err := (track.Multi{c.metrics, c.Console, c.trackers}).Log(r); err != nil {
		return err
	}
	return c.health.log(r, c.Console.Warn)
}

// writeJSON writes v to path, making its folder.
func writeJSON(path string, v any) error {
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o644)
}
