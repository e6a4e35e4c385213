package llm

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/rubicon-rl/rubicon/rewards"
)

// final is an error after which trying again is of no use.
type final struct{ error }

func (f final) Unwrap() error { return f.error }

// noAnswer says why a question has no answer.
func noAnswer(why error) error { return fmt.Errorf("%w: %w", rewards.ErrNoAnswer, why) }

// sleep is Options.Sleep by the clock.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// random is the generator of one question's pauses.
func random(seed, question uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, question)) }

// statusOf returns the HTTP status of a refusal; 0: err is none.
func statusOf(err error) int {
	if status, ok := errors.AsType[*StatusError](err); ok {
		return status.Code
	}
	return 0
}

// passing tells whether a request's failure may pass by itself.
func passing(err error) bool {
	if _, ok := errors.AsType[final](err); ok || err == nil || errors.Is(err, ErrEmpty) || errors.Is(err, ErrBudget) || errors.Is(err, rewards.ErrNoAnswer) {
		return false
	}
	switch code := statusOf(err); code {
	case 0, http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	default:
		return code >= 500
	}
}

// again repeats do after failures that pass, with pauses that grow and are at least as long as the server asks for.
func (c *Client) again(ctx context.Context, t *tier, jitter *rand.Rand, do func() error) error {
	pauses := &backoff.ExponentialBackOff{InitialInterval: c.o.RetryMin, Multiplier: 2, MaxInterval: c.o.RetryMax}
	pauses.Reset()
	began := c.o.Now()
	for try := 0; ; try++ {
		err := do()
		if ctx.Err() != nil && err != nil {
			return ctx.Err()
		}
		if !passing(err) {
			return err
		}
		// Between half and one and a half times the pause, so that questions that failed together do not come back together.
		pause := time.Duration(float64(pauses.NextBackOff()) * (0.5 + jitter.Float64()))
		if status, ok := errors.AsType[*StatusError](err); ok {
			pause = max(pause, status.RetryAfter)
		}
		if spent := c.o.Now().Sub(began); try == c.o.MaxRetries || spent+pause > c.o.MaxElapsed {
			return fmt.Errorf("tried %d times: %w", try+1, err)
		}
		t.account.count(retries, 1)
		if err := c.o.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// send carries a call to the tier's model. Its error is ErrEmpty, a rewards.ErrNoAnswer, or one that ends the run.
func (c *Client) send(ctx context.Context, t *tier, call *Call, jitter *rand.Rand) (reply *Reply, err error) {
	// The place is kept over the pauses: a server in trouble has no more than this many questions to deal with.
	if err := t.lane.slots.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer t.lane.slots.Release(1)
	err = c.again(ctx, t, jitter, func() error {
		reply, err = c.try(ctx, t, call)
		return err
	})
	refused := []int{http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity, http.StatusUnavailableForLegalReasons}
	switch code := statusOf(err); {
	case ctx.Err() != nil && err != nil:
		return nil, ctx.Err()
	case passing(err):
		return nil, c.blame(ctx, t, call, jitter, err)
	case slices.Contains(refused, code):
		return nil, noAnswer(err)
	case code != 0:
		return nil, fmt.Errorf("the judge refuses to work: check judge.api_key_env, judge.url and judge.model: %w", err)
	}
	return reply, err
}

// probeText is what a model is asked to see whether it answers at all.
const probeText = "Say yes."

// blame says whose fault it is that a call went on failing: the call's, if the model answers another one, and it has no
// answer; or the model's, and then no question can be answered.
func (c *Client) blame(ctx context.Context, t *tier, call *Call, jitter *rand.Rand, why error) error {
	probe := &Call{Model: call.Model, Messages: []Message{{Role: "user", Content: probeText}}, Temperature: call.Temperature, TopP: call.TopP, MaxTokens: call.MaxTokens, Seed: call.Seed}
	err := c.again(ctx, t, jitter, func() error {
		_, err := c.try(ctx, t, probe)
		return err
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if passing(err) {
		return final{fmt.Errorf("the judge is down, it fails at every question: %w", why)}
	}
	return noAnswer(why)
}

// try sends a call once, within its limits, and accounts for it.
func (c *Client) try(ctx context.Context, t *tier, call *Call) (*Reply, error) {
	if err := c.budget.left(); err != nil {
		return nil, err
	}
	expected := estimate(call)
	leave, err := t.lane.enter(ctx, expected)
	if err != nil {
		return nil, err
	}
	within, cancel := context.WithTimeout(ctx, t.Timeout)
	defer cancel()
	began := c.o.Now()
	reply, err := t.Transport.Complete(within, call)
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("no reply within judge.timeout, %s: %w", t.Timeout, err)
	}
	leave(err)
	t.account.request(err, c.o.Now().Sub(began))
	if reply == nil {
		return nil, err
	}
	if reply.PromptTokens+reply.CompletionTokens == 0 { // the server does not count
		reply.PromptTokens, reply.CompletionTokens = expected, tokens(reply.Text)
	}
	take(t.lane.tokens, c.o.Now(), reply.PromptTokens+reply.CompletionTokens-expected)
	if fault := c.spend(t, reply); fault != nil {
		return nil, final{fault}
	}
	return reply, err
}

// spend puts a reply on the accounts.
func (c *Client) spend(t *tier, r *Reply) error {
	money := (float64(r.PromptTokens)**t.PromptPrice + float64(r.CompletionTokens)**t.CompletionPrice) / 1e6
	t.account.count(promptTokens, float64(r.PromptTokens))
	t.account.count(completionTokens, float64(r.CompletionTokens))
	t.account.count(cost, money)
	return c.budget.add(Spent{PromptTokens: int64(r.PromptTokens), CompletionTokens: int64(r.CompletionTokens), Money: money})
}

// tokens is about how many tokens a text has: one for four bytes.
func tokens(text string) int { return (len(text) + 3) / 4 }

// estimate is about how many tokens a call's messages have.
func estimate(c *Call) int {
	n := 0
	for _, m := range c.Messages {
		n += tokens(m.Content)
	}
	return n
}
