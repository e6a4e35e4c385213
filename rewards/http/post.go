package http

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	nethttp "net/http"
	"strconv"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/rubicon-rl/rubicon/rewards/http/wire"
)

// patience is the longest wait that a server may ask for; one that asks for more is taken as not answering.
const patience = 10 * time.Minute

// transient is a failure that may be gone when the request is sent again.
type transient struct {
	err   error
	after time.Duration // the server asks to wait at least so long
}

func (t *transient) Error() string { return t.err.Error() }
func (t *transient) Unwrap() error { return t.err }

// send posts a request, again and again after transient failures, with growing waits between them. The error is the last
// failure, or that of ctx.
func (p *Provider) send(ctx context.Context, request []byte) ([]byte, error) {
	waits := backoff.NewExponentialBackOff() // from half a second, half of it at random
	waits.Multiplier = 2
	waits.MaxInterval = 30 * time.Second
	for retries := 0; ; retries++ {
		reply, err := p.post(ctx, request)
		var failed *transient
		if !errors.As(err, &failed) || retries == p.o.MaxRetries || failed.after > patience {
			return reply, err
		}
		if err := p.sleep(ctx, max(waits.NextBackOff(), failed.after)); err != nil {
			return nil, err
		}
	}
}

// post sends a request once and returns the reply of a server that accepts it.
func (p *Provider) post(ctx context.Context, request []byte) ([]byte, error) {
	timed, cancel := context.WithTimeout(ctx, time.Duration(p.o.Timeout*float64(time.Second)))
	defer cancel()
	r, err := nethttp.NewRequestWithContext(timed, nethttp.MethodPost, p.o.URL, bytes.NewReader(request))
	if err != nil {
		return nil, err
	}
	r.Header = p.headers.Clone()
	response, err := p.client.Do(r)
	if err != nil {
		return nil, p.broken(ctx, err)
	}
	defer response.Body.Close()
	limit := int64(p.o.MaxReplyMB) << 20
	body, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	switch {
	case response.StatusCode/100 != 2:
		return nil, p.refused(response, body)
	case err != nil:
		return nil, p.broken(ctx, fmt.Errorf("reading the reply: %w", err))
	case int64(len(body)) > limit:
		return nil, fmt.Errorf("the reply is larger than %d MiB: set max_reply_mb, or lower batch_size", p.o.MaxReplyMB)
	}
	return body, nil
}

// broken words a failure of the network. The end of the run's own context is not one.
func (p *Provider) broken(ctx context.Context, err error) error {
	var certificate *tls.CertificateVerificationError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &certificate):
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return &transient{err: fmt.Errorf("%w: no reply within %v seconds (timeout)", err, p.o.Timeout)}
	}
	return &transient{err: err}
}

// refused words a status that is not a success.
func (p *Provider) refused(r *nethttp.Response, body []byte) error {
	err := fmt.Errorf("the reward server answered %s: %s", r.Status, wire.Excerpt(body))
	switch code := r.StatusCode; {
	case code == nethttp.StatusRequestTimeout || code == nethttp.StatusTooEarly || code == nethttp.StatusTooManyRequests || code >= 500:
		return &transient{err, p.retryAfter(r.Header.Get("Retry-After"))}
	case code/100 == 3:
		return fmt.Errorf("%w: it has moved to %q: set url to that", err, r.Header.Get("Location"))
	case code == nethttp.StatusUnauthorized || code == nethttp.StatusForbidden:
		return fmt.Errorf("%w: set headers_env, such as {Authorization: VARIABLE}, and the variable", err)
	case code == nethttp.StatusNotFound || code == nethttp.StatusMethodNotAllowed:
		return fmt.Errorf("%w: set url to the address that takes the POST", err)
	case code == nethttp.StatusRequestEntityTooLarge:
		return fmt.Errorf("%w: lower batch_size, or name fewer columns", err)
	}
	return err
}

// retryAfter reads the header of that name: seconds, or a date.
func (p *Provider) retryAfter(value string) time.Duration {
	if seconds, err := strconv.Atoi(value); err == nil {
		return max(0, time.Duration(min(seconds, int(patience/time.Second)+1))*time.Second)
	}
	if at, err := nethttp.ParseTime(value); err == nil {
		return max(0, at.Sub(p.now()))
	}
	return 0
}

// sleep waits for d, or for the end of ctx, whose error it returns.
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
