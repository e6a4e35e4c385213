package llm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rubicon-rl/rubicon/rewards"
)

// These tests run on a clock that stands still while anybody works, so that times are exact.

// timed is options with the clock's own pauses.
func timed(f Transport) Options {
	o := options(f)
	o.Sleep = nil
	return o
}

// different is a question like no other.
func different(i int) rewards.Question {
	return rewards.Question{Tier: rewards.TierScore, User: fmt.Sprint("question ", i)}
}

// askAll asks n different questions at once, waits, and returns the errors by index.
func askAll(ctx context.Context, c *Client, n int) []error {
	errs := make([]error, n)
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() { _, errs[i] = c.Ask(ctx, different(i)) })
	}
	group.Wait()
	return errs
}

func TestRequestsPerMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := says("ok")
		o := timed(f)
		o.RequestsPerMinute = 30
		began := time.Now()
		if err := errors.Join(askAll(t.Context(), client(t, o), 6)...); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took != 10*time.Second { // the first at once, and then one every 2 s
			t.Errorf("6 requests at 30 a minute took %s, want 10s", took)
		}
	})
}

func TestTokensPerMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// Each call is paid when its tokens are known: 600 of them, where the question's 10 bytes are taken for 3 tokens.
		o := timed(fake(func(context.Context, *Call) (*Reply, error) {
			return &Reply{Text: "ok", PromptTokens: 100, CompletionTokens: 500}, nil
		}))
		o.TokensPerMinute, o.MaxConcurrency = 6000, 1 // 100 a second, of which a second's worth is there at first
		began := time.Now()
		if err := errors.Join(askAll(t.Context(), client(t, o), 4)...); err != nil {
			t.Error(err)
		}
		// Before the fourth call three have taken 1800, and it wants 3 more: (1803-100)/100 s.
		if took, want := time.Since(began), 17030*time.Millisecond; took < want-time.Millisecond || took > want+time.Millisecond {
			t.Errorf("4 calls of 600 tokens at 6000 a minute took %s, want %s", took, want)
		}
	})
}

func TestConcurrencyAndPromptReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var inWork, peak atomic.Int64
		o := timed(fake(func(ctx context.Context, _ *Call) (*Reply, error) {
			peak.Store(max(peak.Load(), inWork.Add(1)))
			defer inWork.Add(-1)
			<-ctx.Done()
			return nil, ctx.Err()
		}))
		o.MaxConcurrency = 3
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		began := time.Now()
		for i, err := range askAll(ctx, client(t, o), 10) {
			if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, rewards.ErrNoAnswer) {
				t.Errorf("question %d: %v", i, err)
			}
		}
		if took := time.Since(began); took != 5*time.Second || peak.Load() != 3 {
			t.Errorf("returned after %s, %d in work at once", took, peak.Load())
		}
	})
}

// The end of the context must be obeyed in pauses as well.
func TestPromptReturnFromPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := timed(fake(func(context.Context, *Call) (*Reply, error) {
			return nil, &StatusError{Code: 429, RetryAfter: time.Minute}
		}))
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		began := time.Now()
		_, err := client(t, o).Ask(ctx, verdict)
		if took := time.Since(began); took != 5*time.Second || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v after %s", err, took)
		}
	})
}

func TestDeadlineOfACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		o := timed(fake(func(ctx context.Context, _ *Call) (*Reply, error) {
			if calls++; calls == 1 {
				<-ctx.Done() // hangs
				return nil, ctx.Err()
			}
			return &Reply{Text: "ok"}, nil
		}))
		o.Timeout, o.RetryMin, o.RetryMax = 7*time.Second, time.Millisecond, time.Millisecond
		began := time.Now()
		answer, err := client(t, o).Ask(t.Context(), different(0))
		if took := time.Since(began); answer != "ok" || err != nil || took < 7*time.Second || took > 7002*time.Millisecond {
			t.Errorf("%q, %v after %s", answer, err, took)
		}
	})
}

// A model that is down is left alone: questions wait, one of them tries it now and then, and all go on when it is back.
func TestBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		back := time.Now().Add(80 * time.Second)
		var mu sync.Mutex
		var when []time.Duration // the calls that failed were made
		began := time.Now()
		o := timed(fake(func(context.Context, *Call) (*Reply, error) {
			mu.Lock()
			defer mu.Unlock()
			if time.Now().Before(back) {
				when = append(when, time.Since(began).Round(time.Second))
				return nil, errors.New("down")
			}
			return &Reply{Text: "ok"}, nil
		}))
		o.MaxFailures, o.Cooldown, o.MaxOutage, o.MaxConcurrency = 4, 30*time.Second, 10*time.Minute, 4
		o.RetryMin, o.RetryMax = time.Millisecond, time.Millisecond
		if err := errors.Join(askAll(t.Context(), client(t, o), 20)...); err != nil {
			t.Error(err)
		}
		// Four failures close the lane; after more than 30 s one question tries, fails, and so on. They look every 3.75 s.
		if len(when) != 6 {
			t.Fatalf("calls failed at %v, want 4 at once and then one in a while", when)
		}
		for i, got := range when {
			if i < 4 && got != 0 || i >= 4 && (got-when[i-1] < 30*time.Second || got-when[i-1] > 35*time.Second) {
				t.Errorf("calls failed at %v", when)
			}
		}
	})
}

func TestBreakerGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		o := timed(fake(func(context.Context, *Call) (*Reply, error) {
			calls++
			return nil, errors.New("down")
		}))
		o.MaxFailures, o.Cooldown, o.MaxOutage, o.MaxConcurrency, o.MaxRetries = 2, time.Hour, time.Minute, 1, 1
		notes := 0
		o.Notify = func(string) { notes++ }
		c := client(t, o)
		began := time.Now()
		unanswered, ended := 0, 0
		for _, err := range askAll(t.Context(), c, 3) {
			if errors.Is(err, rewards.ErrNoAnswer) {
				unanswered++
			} else if err != nil && strings.Contains(err.Error(), "judge.max_outage") {
				ended++
			}
		}
		if unanswered != 1 || ended != 2 || notes != 1 {
			t.Errorf("%d unanswered, %d that end the step, %d notes, want 1, 2 and 1", unanswered, ended, notes)
		}
		if calls != 2 {
			t.Errorf("%d calls to a model that is left alone for an hour after 2 failures", calls)
		}
		// One question fails twice, within 2 s; the other two wait until the model has failed for MaxOutage.
		if took, want := time.Since(began), time.Minute; took < want || took > want+2*time.Second {
			t.Errorf("took %s", took)
		}
	})
}

// Too many requests do not mean that the model is down.
func TestBusyIsNotDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		o := timed(fake(func(context.Context, *Call) (*Reply, error) {
			if calls++; calls < 6 {
				return nil, &StatusError{Code: 429, RetryAfter: time.Second}
			}
			return &Reply{Text: "ok"}, nil
		}))
		o.MaxFailures, o.Cooldown, o.RetryMin, o.RetryMax = 1, time.Hour, time.Millisecond, time.Millisecond
		began := time.Now()
		_, err := client(t, o).Ask(t.Context(), different(0))
		if took := time.Since(began); err != nil || took != 5*time.Second {
			t.Errorf("%v after %s", err, took)
		}
	})
}

// A question that is given up says nothing about the model's health.
func TestLeavingIsNotFailing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := timed(fake(func(ctx context.Context, c *Call) (*Reply, error) {
			if c.Messages[0].Content == different(0).User {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return &Reply{Text: "ok"}, nil
		}))
		o.MaxFailures, o.Cooldown = 1, time.Hour
		c := client(t, o)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, left := c.Ask(ctx, different(0))
		_, err := c.Ask(t.Context(), different(1))
		if took := time.Since(began); left == nil || err != nil || took != time.Second {
			t.Errorf("%v after %s", err, took)
		}
	})
}

// A tier with a transport of its own has limits of its own, whatever else it has in common with the others.
func TestLanesOfTransports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(context.Context, *Call) (*Reply, error) {
			time.Sleep(time.Minute)
			return &Reply{Text: "ok"}, nil
		}
		o := timed(fake(slow))
		o.MaxConcurrency = 1
		o.Tiers = map[rewards.Tier]Settings{rewards.TierUpdate: {Transport: fake(slow)}}
		c := client(t, o)
		for other, want := range map[rewards.Tier]time.Duration{rewards.TierUpdate: time.Minute, rewards.TierAnalyze: 2 * time.Minute} {
			began := time.Now()
			var group sync.WaitGroup
			for _, tier := range []rewards.Tier{rewards.TierScore, other} {
				group.Go(func() {
					if _, err := c.Ask(t.Context(), rewards.Question{Tier: tier, User: string(tier)}); err != nil {
						t.Error(err)
					}
				})
			}
			group.Wait()
			if took := time.Since(began); took != want {
				t.Errorf("one question of score and one of %s took %s, want %s", other, took, want)
			}
		}
	})
}
