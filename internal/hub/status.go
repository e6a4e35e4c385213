package hub

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// refusal is an error after which trying again is of no use.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// statusError is an answer that may be another one later.
type statusError struct {
	code  int
	after time.Duration // what the server asks to wait; 0: it does not say
}

func (e statusError) Error() string {
	return fmt.Sprintf("HTTP %d %s", e.code, http.StatusText(e.code))
}

// maxAfter is the longest wait that a server's request is followed for.
const maxAfter = 10 * time.Minute

// explain turns an answer without what was asked for into an error that says what to do. r is the repository that was asked
// about; nil: an address of its own.
func (c *Client) explain(resp *http.Response, r *Repo) error {
	code := resp.StatusCode
	switch code {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return c.later(resp)
	}
	if code >= 500 {
		return c.later(resp)
	}
	status := fmt.Errorf("%s: HTTP %d %s", bare(resp.Request.URL), code, http.StatusText(code))
	if r == nil {
		return refusal{status}
	}
	return refusal{fmt.Errorf("%s (%w)", c.advice(code, resp.Header.Get("X-Error-Code"), *r), status)}
}

// bare is an address without its query, in which stores put what opens them.
func bare(u *url.URL) string { return u.Scheme + "://" + u.Host + u.EscapedPath() }

// send sends a request.
func (c *Client) send(req *http.Request) (*http.Response, error) {
	resp, err := c.http.Do(req)
	if wrapped, ok := errors.AsType[*url.Error](err); ok { // it shows the whole address
		err = fmt.Errorf("%s: %w", bare(req.URL), wrapped.Err)
	}
	return resp, err
}

// advice says what a refusal means and what to do.
func (c *Client) advice(code int, name string, r Repo) string {
	page := r.page(c.o.Endpoint)
	switch {
	case name == "GatedRepo" && c.o.Token == "":
		return fmt.Sprintf("%s is gated: accept its conditions at %s, then set HF_TOKEN to a token of your account", r.Name, page)
	case name == "GatedRepo":
		return fmt.Sprintf("%s is gated and this account has no access: accept its conditions at %s", r.Name, page)
	case name == "RevisionNotFound":
		return fmt.Sprintf("%s has no revision %s: see %s", r.Name, r.Revision, page)
	case name == "EntryNotFound":
		return "the file is not there any more"
	case code == http.StatusUnauthorized && c.o.Token == "":
		return fmt.Sprintf("%s is not there, or private: check the name; for a private one set HF_TOKEN", page)
	case code == http.StatusUnauthorized:
		return fmt.Sprintf("%s is not there, or the token is not accepted: check the name and HF_TOKEN", page)
	case code == http.StatusForbidden:
		return fmt.Sprintf("the hub refuses access to %s: check HF_TOKEN and what its account may do", page)
	case code == http.StatusNotFound:
		return fmt.Sprintf("%s is not there: check the name, and whether it is a model or a data set", page)
	}
	return "the hub refuses"
}

// later is the error for an answer after which the same request is worth another try, unless the server wants too long a wait.
func (c *Client) later(resp *http.Response) error {
	e := statusError{code: resp.StatusCode}
	text := resp.Header.Get("Retry-After")
	if seconds, err := strconv.Atoi(text); err == nil {
		e.after = time.Duration(min(max(seconds, 0), 1<<30)) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		e.after = max(0, at.Sub(c.o.Now()))
	}
	if e.after > maxAfter {
		return refusal{fmt.Errorf("%w: the server asks to come back in %s", e, e.after.Round(time.Second))}
	}
	return e
}

// again calls do until it succeeds, gives an error that stays, or brings nothing Tries times in a row. do tells whether it
// brought something before it failed.
func (c *Client) again(ctx context.Context, name string, do func() (brought bool, err error)) error {
	pauses := &backoff.ExponentialBackOff{InitialInterval: c.o.RetryMin, Multiplier: 2, MaxInterval: c.o.RetryMax}
	pauses.Reset()
	seed := fnv.New64a()
	seed.Write([]byte(name))
	jitter := rand.New(rand.NewPCG(seed.Sum64(), 0)) // so that what failed together does not come back together
	for failed := 0; ; {
		brought, err := do()
		if _, stays := errors.AsType[refusal](err); err == nil || stays {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if failed++; brought {
			failed = 1
			pauses.Reset()
		}
		if failed >= c.o.Tries {
			return fmt.Errorf("tried %d times: %w", failed, err)
		}
		pause := time.Duration(float64(pauses.NextBackOff()) * (0.5 + jitter.Float64()))
		if status, ok := errors.AsType[statusError](err); ok {
			pause = max(pause, status.after)
		}
		c.progress.note("%s: %v; again in %s", name, err, pause.Round(time.Millisecond))
		if err := c.o.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}
