package llm

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rubicon-rl/rubicon/rewards"
)

// Those who ask the same at the same time share one call, and take over if the one who asked leaves.
func TestSharedFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		o := timed(fake(func(ctx context.Context, _ *Call) (*Reply, error) {
			calls.Add(1)
			select {
			case <-time.After(10 * time.Second):
				return &Reply{Text: "ok"}, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}))
		c := client(t, o)
		hasty, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		answers, errs := make([]string, 10), make([]error, 10)
		began := time.Now()
		var group sync.WaitGroup
		for i := range answers {
			ctx := t.Context()
			if i == 0 {
				ctx = hasty
			}
			group.Go(func() { answers[i], errs[i] = c.Ask(ctx, different(7)) })
			synctest.Wait() // the hasty one is the first
		}
		group.Wait()
		for i := range answers {
			if i == 0 && !errors.Is(errs[i], context.DeadlineExceeded) || i > 0 && (answers[i] != "ok" || errs[i] != nil) {
				t.Errorf("asker %d: %q, %v", i, answers[i], errs[i])
			}
		}
		if took := time.Since(began); calls.Load() != 2 || took != 11*time.Second {
			t.Errorf("%d calls in %s, want the hasty one's and one more", calls.Load(), took)
		}
		if m := c.Metrics(); m["judge/cache_hits"] != 8 {
			t.Errorf("%v shared an answer, want 8", m["judge/cache_hits"])
		}
	})
}

// An answer that is shared must pass the Check of each who asked.
func TestSharedFlightWithAnotherCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		c := client(t, timed(fake(func(context.Context, *Call) (*Reply, error) {
			n := calls.Add(1)
			time.Sleep(time.Second)
			return &Reply{Text: fmt.Sprint("answer ", n)}, nil
		})))
		strict := different(0)
		strict.Check = func(answer string) error {
			if answer == "answer 1" {
				return errors.New("another one")
			}
			return nil
		}
		var group sync.WaitGroup
		for _, q := range []rewards.Question{different(0), strict} {
			group.Go(func() {
				answer, err := c.Ask(t.Context(), q)
				if want := map[bool]string{true: "answer 1", false: "answer 2"}[q.Check == nil]; answer != want || err != nil {
					t.Errorf("%q, %v, want %q", answer, err, want)
				}
			})
			synctest.Wait()
		}
		group.Wait()
	})
}

// Draws of one question are different questions.
func TestSamplesAreNotShared(t *testing.T) {
	f, calls := says("ok")
	o := options(f)
	o.Cache = t.TempDir()
	c := client(t, o)
	for sample := range 3 {
		q := different(0)
		q.Sample = sample
		if _, err := c.Ask(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	if len(*calls) != 3 || (*calls)[0].Seed == (*calls)[1].Seed {
		t.Errorf("%d calls, seeds %d and %d", len(*calls), (*calls)[0].Seed, (*calls)[1].Seed)
	}
}
