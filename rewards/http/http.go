// Package http scores completions by a reward server of the user's own. Each batch is one POST; package wire has the
// messages:
//
//	reward:
//	  kind: http
//	  options: {url: "http://localhost:9000/score", columns: [answer], headers_env: {Authorization: REWARD_AUTH}}
//
// A batch that the server does not answer in spite of retries is unscorable. A reply that breaks the format, and a refusal
// that asking again cannot change (4xx), end the run.
package http

import (
	"context"
	"errors"
	"fmt"
	nethttp "net/http"
	"net/url"
	"os"
	"time"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/internal/options"
	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/rewards/http/wire"
)

// Options are the provider's settings.
type Options struct {
	URL            string            `json:"url"`             // where batches are posted to: http or https
	Timeout        float64           `json:"timeout"`         // seconds for one request, from connecting to the reply's last byte
	BatchSize      int               `json:"batch_size"`      // completions in a request; a prompt's group is cut only if it alone is larger
	MaxConcurrency int               `json:"max_concurrency"` // requests at the same time
	MaxRetries     int               `json:"max_retries"`     // times that a request is sent again after 408, 425, 429, 5xx or a network error
	Columns        wire.Columns      `json:"columns"`         // data columns to send; absent: all of them
	HeadersEnv     map[string]string `json:"headers_env"`     // header -> environment variable that holds its whole value
	MaxReplyMB     int               `json:"max_reply_mb"`    // largest reply, MiB
}

// Default are the settings that New starts from.
func Default() Options {
	return Options{Timeout: 60, BatchSize: 64, MaxConcurrency: 4, MaxRetries: 5, MaxReplyMB: 16}
}

// Provider scores by a reward server. It keeps no state.
type Provider struct {
	o       Options
	shown   string // the URL without a password
	headers nethttp.Header
	client  *nethttp.Client
	now     func() time.Time
	sleep   func(ctx context.Context, d time.Duration) error // until ctx ends
}

var (
	_ rewards.Provider    = (*Provider)(nil)
	_ rewards.Checker     = (*Provider)(nil)
	_ rewards.Preflighter = (*Provider)(nil)
)

// New makes a provider from settings as a configuration file has them. Nothing is sent yet.
func New(_ rewards.Run, settings map[string]any) (rewards.Provider, error) {
	o := Default()
	if err := options.Decode(settings, &o); err != nil {
		return nil, fmt.Errorf("http: %w", err)
	}
	shown, err := o.validate()
	if err != nil {
		return nil, fmt.Errorf("http: %w", err)
	}
	headers, err := o.headers()
	if err != nil {
		return nil, fmt.Errorf("http: %w", err)
	}
	transport := nethttp.DefaultTransport.(*nethttp.Transport).Clone()
	transport.MaxIdleConnsPerHost = o.MaxConcurrency
	return &Provider{
		o: o, shown: shown, headers: headers, now: time.Now, sleep: sleep,
		client: &nethttp.Client{
			Transport: transport,
			// A redirected POST becomes a GET, or sends the headers to another host.
			CheckRedirect: func(*nethttp.Request, []*nethttp.Request) error { return nethttp.ErrUseLastResponse },
		},
	}, nil
}

// validate returns the URL as it may be shown.
func (o *Options) validate() (shown string, err error) {
	u, err := url.Parse(o.URL)
	switch {
	case o.URL == "":
		return "", errors.New("url is not set: give the reward server's address, such as http://localhost:9000/score")
	case err != nil:
		return "", fmt.Errorf("url: %w", err)
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return "", fmt.Errorf("url is %q: give a whole address, such as http://localhost:9000/score", u.Redacted())
	case !(o.Timeout > 0):
		return "", fmt.Errorf("timeout is %v: give seconds above 0", o.Timeout)
	case o.BatchSize < 1 || o.MaxConcurrency < 1 || o.MaxReplyMB < 1:
		return "", errors.New("batch_size, max_concurrency and max_reply_mb must be at least 1")
	case o.MaxRetries < 0:
		return "", errors.New("max_retries must not be negative")
	}
	return u.Redacted(), nil
}

// headers are those of every request. Values come from the environment so that no secret stands in a configuration.
func (o *Options) headers() (nethttp.Header, error) {
	h := nethttp.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}}
	for name, variable := range o.HeadersEnv {
		value, ok := os.LookupEnv(variable)
		if !ok || value == "" {
			return nil, fmt.Errorf("headers_env: %s takes its value from the environment variable %s, which is not set: set it", name, variable)
		}
		h.Set(name, value)
	}
	return h, nil
}

// Score implements rewards.Provider.
func (p *Provider) Score(ctx context.Context, step int, groups []grpo.Group) ([]rewards.Score, error) {
	scores, err := wire.Score(ctx, wire.Cut(step, groups, p.o.BatchSize), p.o.MaxConcurrency, p.ask)
	if err != nil {
		return nil, fmt.Errorf("http: %w", err)
	}
	return scores, nil
}

// Check implements rewards.Checker: the row must have the columns that are to be sent.
func (p *Provider) Check(row *grpo.Prompt) error {
	if err := p.o.Columns.Check(row); err != nil {
		return fmt.Errorf("http: %w", err)
	}
	return nil
}

// Preflight implements rewards.Preflighter: it posts a request without items, once, and wants an empty list of results.
func (p *Provider) Preflight(ctx context.Context) error {
	probe := wire.Probe()
	request, err := probe.Encode(p.o.Columns)
	if err != nil {
		return fmt.Errorf("http: %w", err)
	}
	reply, err := p.post(ctx, request)
	if err == nil {
		_, err = probe.Decode(reply)
	}
	if err != nil {
		return fmt.Errorf("http: a request without items was sent to %s to try it: %w; start the reward server, or set url to where it listens", p.shown, err)
	}
	return nil
}

// Close lets go of idle connections.
func (p *Provider) Close() error {
	p.client.CloseIdleConnections()
	return nil
}

// ask has one batch scored.
func (p *Provider) ask(ctx context.Context, b wire.Batch) ([]rewards.Score, error) {
	request, err := b.Encode(p.o.Columns)
	if err != nil {
		return nil, err
	}
	reply, err := p.send(ctx, request)
	var failed *transient
	switch {
	case errors.As(err, &failed):
		return b.Unscorable(fmt.Sprintf("no answer from the reward server: %v", failed)), nil
	case err != nil:
		return nil, b.Wrap(err)
	}
	return b.Decode(reply)
}
