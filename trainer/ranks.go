package trainer

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"strings"

	"github.com/rubicon-rl/rubicon/configs"
	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/internal/dist"
)

// Several processes share a run like this. All hold the whole state of the run and every sampled completion; what is shared
// out is the work on the model: each rank samples a part of the prompts, and makes the gradient of a part of each
// micro-batch. Rank 0 alone asks the rewards, which may have a state, and writes the run's folder.

// leads reports whether this process is rank 0.
func (c *core) leads() bool { return c.Group.Rank() == 0 }

// ruling is what rank 0 tells the others of something that it did alone.
type ruling[T any] struct {
	Value       T
	Failed      string // "": it worked
	Interrupted bool   // it was, and the run ends
}

// lead has rank 0 do something and gives every rank what came of it.
func lead[T any](ctx context.Context, g *dist.Group, what string, do func() (T, error)) (T, error) {
	if g.World() == 1 {
		return do()
	}
	var r ruling[T]
	var failed error
	if g.Rank() == 0 {
		if r.Value, failed = do(); failed != nil {
			r.Failed, r.Interrupted = failed.Error(), errors.Is(failed, ErrInterrupted)
		}
	}
	r, err := dist.Broadcast(ctx, g, what, r)
	switch {
	case err != nil:
		return r.Value, errors.Join(failed, err)
	case failed != nil:
		return r.Value, failed
	case r.Interrupted:
		return r.Value, ErrInterrupted
	case r.Failed != "":
		return r.Value, &dist.RankError{Rank: 0, Err: errors.New(r.Failed)}
	}
	return r.Value, nil
}

// work is what a rank has done in an optimiser step, beside the gradient.
type work struct {
	Loss    float64
	Metrics []grpo.Metrics // of its part of each micro-batch
}

// reduce adds up what the ranks have done in this step: the gradient, the loss, and the metrics of each micro-batch.
func (c *core) reduce(ctx context.Context) error {
	if c.Group.World() > 1 {
		defer c.clock("timing_s/reduce", c.Now())
		grad := make([]float32, c.params.Len)
		if err := c.Device.Download(grad, c.params.Grad, 0); err != nil {
			return err
		}
		if err := c.Group.SumFloats(ctx, "the gradient", grad); err != nil {
			return err
		}
		c.Device.Upload(c.params.Grad, 0, grad)
	}
	all, err := dist.Gather(ctx, c.Group, "losses and metrics", work{c.loss, c.parts})
	if err != nil {
		return err
	}
	c.loss = 0
	for _, w := range all {
		c.loss += w.Loss
	}
	for k := range c.parts {
		whole := grpo.Metrics{}
		for _, w := range all {
			whole.Merge(w.Metrics[k])
		}
		c.state.Window.Add(whole.Values())
	}
	c.parts = nil
	return nil
}

// share is this rank's part of the rows of a micro-batch, which are in byPrompt order. A prompt stays whole where its group
// is in one micro-batch of one process.
func (t *Trainer) share(rows []grpo.Row) []grpo.Row {
	if t.batching.PerDevice%t.batching.Generations != 0 {
		from, to := t.Group.Share(len(rows))
		return rows[from:to]
	}
	rank, world := t.Group.Rank(), t.Group.World()
	var mine []grpo.Row
	for from := 0; from < len(rows); {
		to := from + 1
		for to < len(rows) && rows[to].Prompt == rows[from].Prompt {
			to++
		}
		if (from+to)*world/(2*len(rows)) == rank { // the part that the prompt's middle is in
			mine = append(mine, rows[from:to]...)
		}
		from = to
	}
	return mine
}

// whole is what the objective has to know of a micro-batch of which this process has a part; nil: it has all. entropy is of
// the part's trained tokens.
func (t *Trainer) whole(ctx context.Context, rows []grpo.Row, entropy []float32) (*grpo.Whole, error) {
	if t.Group.World() == 1 {
		return nil, nil
	}
	w := &grpo.Whole{Rows: len(rows), Tokens: float64(grpo.NumItems(rows))}
	if t.Config.GRPO.NeedsEntropy() {
		all, err := dist.Gather(ctx, t.Group, "entropies", entropy)
		if err != nil {
			return nil, err
		}
		w.Entropies = slices.Concat(all...)
	}
	return w, nil
}

// entropyWindow is the entropy controller's window over all ranks.
func (t *Trainer) entropyWindow(ctx context.Context) (sum, count float64, err error) {
	sum, count = t.entropy.Window()
	all, err := dist.Gather(ctx, t.Group, "the entropy of the step", [2]float64{sum, count})
	sum, count = 0, 0
	for _, w := range all {
		sum, count = sum+w[0], count+w[1]
	}
	return sum, count, err
}

// agree compares, before the first step, what all ranks have to have alike.
func (c *core) agree(ctx context.Context) error {
	if c.Group.World() == 1 {
		return nil
	}
	mine, err := c.origin()
	if err != nil {
		return err
	}
	maps.Copy(mine, c.standing())
	_, err = c.rollCall(ctx, mine)
	return err
}

// origin is what does not change in a run, and the weights at its start.
func (c *core) origin() (map[string]string, error) {
	same := *c.Config
	same.Threads, same.Rollout.KVTokens = 0, 0 // these follow from the machine, and change no sample
	var text bytes.Buffer
	if err := configs.Print(&text, &same); err != nil {
		return nil, err
	}
	weights, err := c.params.Download(c.Device)
	if err != nil {
		return nil, err
	}
	info := c.Device.Info()
	kind, _, _ := strings.Cut(info.Name, fmt.Sprintf(", %d thread", info.Threads))
	return map[string]string{
		"configuration":     checksum(text.Bytes()),
		"base model":        c.state.Model,
		"training data":     c.state.Data,
		"kind of device":    kind,
		"number of weights": fmt.Sprint(c.params.Len),
		"weights":           checksum(weights),
	}, nil
}

func checksum(v any) string {
	h := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	_ = binary.Write(h, binary.LittleEndian, v)
	return fmt.Sprintf("%08x", h.Sum32())
}

// standing is what the ranks have to agree on between two steps. Loss and gradient norm have been made on every rank from the
// same numbers.
func (c *core) standing() map[string]string {
	return map[string]string{
		"step":    fmt.Sprintf("%d, micro-step %d", c.state.Step, c.state.Micro),
		"samples": fmt.Sprintf("generation %d, %d tokens, row %d of epoch %d", c.state.Draws, c.state.NumTokens, c.state.Cursor.Index, c.state.Cursor.Epoch),
		"update":  fmt.Sprintf("learning rate %v, gradient norm %v", c.state.Latest["learning_rate"], c.state.Latest["grad_norm"]),
	}
}

// present is what a rank says in the roll call.
type present struct {
	State map[string]string
	Stop  bool // it was asked to end the run
}

// rollCall compares what each rank says of itself, and reports whether one of them was asked to stop.
func (c *core) rollCall(ctx context.Context, mine map[string]string) (stop bool, err error) {
	select {
	case <-c.Stop:
		stop = true
	default:
	}
	all, err := dist.Gather(ctx, c.Group, "the roll call", present{mine, stop})
	if err != nil {
		return false, err
	}
	for r, p := range all {
		stop = stop || p.Stop
		for _, name := range slices.Sorted(maps.Keys(mine)) {
			if p.State[name] != all[0].State[name] {
				return false, &dist.RankError{Rank: r, Err: fmt.Errorf("its %s (%s) is not that of rank 0 (%s): start all ranks with the same program, configuration and files, on the same kind of device, and output_dir on a file system that all see",
					name, p.State[name], all[0].State[name])}
			}
		}
	}
	return stop, nil
}
