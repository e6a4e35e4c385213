package trainer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/rubicon-rl/rubicon/grpo"
)

// ErrPaused is what a run returns whose step could not be scored: it is back where it stood before that step, in a
// checkpoint, and goes on from there as if nothing had happened.
var ErrPaused = errors.New("the run is paused with a checkpoint of its finished steps, which --resume goes on from")

// ErrUnscored is part of the error if too many completions of a generation could not be scored.
var ErrUnscored = errors.New("could not be scored")

// mark is where a run stands between two steps.
type mark struct {
	state   State
	buffer  buffer
	entropy grpo.EntropyControl
	noted   int
}

func (t *Trainer) mark() mark {
	m := mark{t.state, t.buffer, t.entropy, t.noted}
	m.state.Window = grpo.Window{Totals: maps.Clone(t.state.Window.Totals)}
	m.state.Latest = maps.Clone(t.state.Latest)
	return m
}

// rewind takes back what a step did that did not come to its update. Parameters have not moved; providers promise
// that a step that is scored again replaces what its first scoring did.
func (t *Trainer) rewind(m mark) {
	t.state, t.buffer, t.entropy, t.noted = m.state, m.buffer, m.entropy, m.noted
	t.loss, t.tokens, t.parts = 0, 0, nil
	t.params.ZeroGrad(t.Device)
}

// unscored wraps the error of a provider that could not score a generation.
type unscored struct{ error }

func (u unscored) Unwrap() error { return u.error }

// pause saves a run whose step could not be scored, so that no finished step is lost.
func (c *core) pause(ctx context.Context, s stepper, err error) error {
	var u unscored
	if !errors.As(err, &u) || ctx.Err() != nil {
		return err
	}
	if e := c.checkpoint(ctx, s.save); e != nil {
		return errors.Join(err, e)
	}
	if errors.Is(err, ErrInterrupted) {
		return ErrInterrupted
	}
	return fmt.Errorf("%w: %w", ErrPaused, err)
}

// scoringPatience is how long scoring may go on after the run was asked to stop: a judge may hang.
const scoringPatience = 10 * time.Second

// whileWanted is a context for scoring, which ends a while after the run was asked to stop. done is to be called when
// scoring is over.
func (t *Trainer) whileWanted(ctx context.Context) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	over := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-over:
			return
		case <-t.Stop:
		}
		timer := time.NewTimer(t.patience)
		defer timer.Stop()
		select {
		case <-over:
		case <-timer.C:
			cancel(ErrInterrupted)
		}
	})
	return ctx, func() {
		close(over)
		watch.Wait()
		cancel(nil)
	}
}
