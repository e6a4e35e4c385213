package llm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"
	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"
)

// lane is the way to one model: it bounds what is on it, and closes for a while when the model fails again and again.
type lane struct {
	o                *Options
	slots            *semaphore.Weighted
	requests, tokens *rate.Limiter                              // nil: no limit
	breaker          *gobreaker.TwoStepCircuitBreaker[struct{}] // nil: never closed

	mu   sync.Mutex
	down time.Time // since when the model has been failing; zero: it is well
}

// errLeft is the outcome of a request that the asker gave up.
var errLeft = errors.New("the asker left")

func newLane(o *Options, s *Settings) *lane {
	l := &lane{
		o: o, slots: semaphore.NewWeighted(int64(s.MaxConcurrency)),
		requests: limiter(s.RequestsPerMinute), tokens: limiter(s.TokensPerMinute),
	}
	if o.MaxFailures > 0 {
		l.breaker = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
			Timeout:      o.Cooldown,
			ReadyToTrip:  func(n gobreaker.Counts) bool { return int64(n.ConsecutiveFailures) >= int64(o.MaxFailures) },
			IsSuccessful: func(err error) bool { return !passing(err) },
			// A server that is busy is well, and one that was not waited for may be.
			IsExcluded:    func(err error) bool { return errors.Is(err, errLeft) || statusOf(err) == http.StatusTooManyRequests },
			OnStateChange: func(_ string, from, to gobreaker.State) { l.changed(from, to) },
		})
	}
	return l
}

// changed notes since when the model has been failing, and says so.
func (l *lane) changed(from, to gobreaker.State) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case to == gobreaker.StateClosed:
		l.down = time.Time{}
	case from == gobreaker.StateClosed:
		l.down = l.o.Now()
		if l.o.Notify != nil {
			l.o.Notify(fmt.Sprintf("the judge has failed %d times in a row: it is tried every %s for %s (judge.max_outage)", l.o.MaxFailures, l.o.Cooldown, l.o.MaxOutage))
		}
	}
}

// outage is for how long the model has been failing.
func (l *lane) outage() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down.IsZero() {
		return 0
	}
	return l.o.Now().Sub(l.down)
}

// limiter allows so many per minute, and no more than a second's worth at once.
func limiter(perMinute int) *rate.Limiter {
	if perMinute == 0 {
		return nil
	}
	return rate.NewLimiter(rate.Limit(float64(perMinute)/60), (perMinute+59)/60)
}

// take takes n from a limiter and returns how long to wait until they are there.
func take(l *rate.Limiter, now time.Time, n int) time.Duration {
	if l == nil {
		return 0
	}
	var wait time.Duration
	for n > 0 {
		part := min(n, l.Burst())
		wait = l.ReserveN(now, part).DelayFrom(now)
		n -= part
	}
	return wait
}

// enter waits until the lane takes a request of about so many tokens. The request's error is to be given to leave.
func (l *lane) enter(ctx context.Context, tokens int) (leave func(error), err error) {
	now := l.o.Now()
	if wait := max(take(l.requests, now, 1), take(l.tokens, now, tokens)); wait > 0 {
		if err := l.o.Sleep(ctx, wait); err != nil {
			return nil, err
		}
	}
	if l.breaker == nil {
		return func(error) {}, nil
	}
	pause := max(min(l.o.Cooldown, l.o.MaxOutage)/8, time.Millisecond)
	for {
		done, err := l.breaker.Allow()
		if err == nil {
			return func(err error) {
				if ctx.Err() != nil {
					err = errLeft
				}
				done(err)
			}, nil
		}
		if l.outage() >= l.o.MaxOutage {
			return nil, final{fmt.Errorf("the judge fails again and again, and has not recovered within %s: start it, or wait longer with judge.max_outage", l.o.MaxOutage)}
		}
		if err := l.o.Sleep(ctx, pause); err != nil {
			return nil, err
		}
	}
}
