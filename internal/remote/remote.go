// Package remote samples on inference servers that speak OpenAI's protocol with vLLM's additions: token ids in and out, log-probabilities,
// and adapters that are loaded while the server runs. vLLM and rubicon serve are such servers.
package remote

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rubicon-rl/rubicon/policy"
)

// Options say where the servers are, and how patient the engine is with them.
type Options struct {
	URLs           []string // up to and with /v1
	APIKey         string   // "": none is sent
	Timeout        time.Duration
	MaxConcurrency int                                        // requests in flight
	MaxRetries     int                                        // further tries of a request, each at the next server
	Pause          func(context.Context, time.Duration) error // between two rounds of tries; nil: real time
	Notify         func(text string)                          // is told of servers that fail
}

// Engine samples a policy's adapter on servers. Several servers hold the same adapter; what one of them cannot answer is asked of the
// next. Load and Generate are not called at the same time.
type Engine struct {
	o         Options
	client    *http.Client
	name, dir string // of the adapter that is live; "": none
}

// New makes an engine. Nothing is asked yet.
func New(o Options) (*Engine, error) {
	if len(o.URLs) == 0 {
		return nil, errors.New("no server is named: set rollout.server.urls")
	}
	if o.Pause == nil {
		o.Pause = pause
	}
	for i, url := range o.URLs {
		o.URLs[i] = strings.TrimRight(url, "/")
	}
	return &Engine{o: o, client: &http.Client{Timeout: o.Timeout}}, nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Load makes the servers hold the adapter of the PEFT folder dir under name, and sampling use it; the one before is unloaded. The name
// has to stand for the weights: a server that lists it already is not asked again. A server that fails is passed over while another
// one holds the adapter.
func (e *Engine) Load(ctx context.Context, name, dir string) error {
	var failed []error
	for _, url := range e.o.URLs {
		if err := e.hold(ctx, url, name, dir); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", url, err))
		}
	}
	if len(failed) == len(e.o.URLs) {
		return fmt.Errorf("load adapter %s: %w", name, errors.Join(failed...))
	}
	for _, err := range failed {
		e.o.Notify(fmt.Sprintf("adapter %s is not on every server: %v", name, err))
	}
	old := e.name
	e.name, e.dir = name, dir
	if old == "" || old == name {
		return nil
	}
	for _, url := range e.o.URLs {
		if err := e.post(ctx, url+"/unload_lora_adapter", loraRequest{Name: old}, nil); err != nil {
			e.o.Notify(fmt.Sprintf("%s: unload adapter %s: %v", url, old, err))
		}
	}
	return nil
}

// hold loads an adapter at one server unless it is there, and looks whether it is there then.
func (e *Engine) hold(ctx context.Context, url, name, dir string) error {
	there, err := e.lists(ctx, url, name)
	if err != nil || there {
		return err
	}
	if err := e.post(ctx, url+"/load_lora_adapter", loraRequest{Name: name, Path: dir}, nil); err != nil {
		return fmt.Errorf("%w (the server has to see the folder %s and to allow loading: rubicon serve --lora-dir, or vLLM's --enable-lora with VLLM_ALLOW_RUNTIME_LORA_UPDATING=True)", err, dir)
	}
	if there, err = e.lists(ctx, url, name); err == nil && !there {
		err = fmt.Errorf("the server says that it has loaded %s, but does not list it among its models", name)
	}
	return err
}

// lists asks whether a server has a model.
func (e *Engine) lists(ctx context.Context, url, name string) (bool, error) {
	var list modelList
	err := e.get(ctx, url+"/models", &list)
	return slices.ContainsFunc(list.Data, func(m modelCard) bool { return m.ID == name }), err
}

// Generate samples N completions of each request with the adapter of the last Load, as policy.Model.Generate does; at most MaxTokens of
// a request, if it has them, in place of p.MaxNewTokens. LogP are the server's log-probabilities before temperature and filters,
// Filtered are the same.
func (e *Engine) Generate(ctx context.Context, reqs []policy.Request, p policy.SamplingParams) ([][]policy.Sample, error) {
	samples := make([][]policy.Sample, len(reqs))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(max(1, e.o.MaxConcurrency))
	for i := range reqs {
		g.Go(func() (err error) {
			if samples[i], err = e.group(ctx, i, &reqs[i], &p); err != nil {
				return fmt.Errorf("prompt %d: %w", i, err)
			}
			return nil
		})
	}
	return samples, g.Wait()
}

// firstPause is the pause after the first round of tries; each next one is twice as long, up to maxPause.
const (
	firstPause = 500 * time.Millisecond
	maxPause   = 30 * time.Second
)

// group samples one request: at server i at first, then at the next ones.
func (e *Engine) group(ctx context.Context, i int, r *policy.Request, p *policy.SamplingParams) ([]policy.Sample, error) {
	body := e.body(r, p)
	wait := firstPause
	for try := 0; ; try++ {
		url := e.o.URLs[(i+try)%len(e.o.URLs)]
		samples, err := e.ask(ctx, url, &body, p.EOS)
		if err == nil {
			return samples, nil
		}
		if err = fmt.Errorf("%s: %w", url, err); ctx.Err() != nil || !e.curable(ctx, url, err) {
			return nil, err
		}
		if try == e.o.MaxRetries {
			return nil, fmt.Errorf("after %d tries: %w", try+1, err)
		}
		e.o.Notify(fmt.Sprintf("rollout: %v", err))
		if (try+1)%len(e.o.URLs) > 0 {
			continue
		}
		if err := e.o.Pause(ctx, wait); err != nil {
			return nil, err
		}
		wait = min(2*wait, maxPause)
	}
}

// curable says whether another try may help. A server that does not know the adapter, because it was started again, is given it.
func (e *Engine) curable(ctx context.Context, url string, err error) bool {
	var status *StatusError
	if !errors.As(err, &status) {
		return !errors.Is(err, errAnswer)
	}
	if status.Code == http.StatusNotFound {
		if err := e.hold(ctx, url, e.name, e.dir); err != nil {
			e.o.Notify(fmt.Sprintf("%s: load adapter %s again: %v", url, e.name, err))
		}
		return true
	}
	return status.Code == http.StatusTooManyRequests || status.Code >= 500
}

// body is a request as it is sent. Every setting is named, since servers have defaults of their own, of the model's
// generation_config.json among them.
func (e *Engine) body(r *policy.Request, p *policy.SamplingParams) completionRequest {
	b := completionRequest{
		Model: e.name, Prompt: r.Prompt, N: r.N, MaxTokens: p.MaxNewTokens, Temperature: p.Temperature, TopP: p.TopP, TopK: p.TopK, MinP: p.MinP,
		RepetitionPenalty: p.RepetitionPenalty, Stop: p.Stop, StopTokenIDs: p.EOS, Seed: seed(r.Stream), LogProbs: 1, ReturnTokenIDs: true,
	}
	if r.MaxTokens > 0 {
		b.MaxTokens = r.MaxTokens
	}
	if b.TopK == 0 {
		b.TopK = -1 // vLLM's "all"
	}
	if p.Greedy {
		b.Temperature = 0
	}
	return b
}

// seed names a request's random numbers on the server.
func seed(stream []uint64) int64 {
	sum := sha256.Sum256(fmt.Append(nil, stream))
	return int64(binary.LittleEndian.Uint64(sum[:]) >> 1)
}

// ask has one server sample a request.
func (e *Engine) ask(ctx context.Context, url string, body *completionRequest, eos []int32) ([]policy.Sample, error) {
	var reply completionReply
	if err := e.post(ctx, url+"/completions", body, &reply); err != nil {
		return nil, err
	}
	if reply.Model != body.Model {
		return nil, fmt.Errorf("%w: it is of model %q, %q was asked for", errAnswer, reply.Model, body.Model)
	}
	if len(reply.Choices) != body.N {
		return nil, fmt.Errorf("%w: it has %d choices, %d were asked for", errAnswer, len(reply.Choices), body.N)
	}
	samples := make([]policy.Sample, body.N)
	for _, c := range reply.Choices {
		if c.Index < 0 || c.Index >= body.N || samples[c.Index].Tokens != nil {
			return nil, fmt.Errorf("%w: choice %d is one too many", errAnswer, c.Index)
		}
		s, err := c.sample(body, eos)
		if err != nil {
			return nil, err
		}
		samples[c.Index] = s
	}
	return samples, nil
}

// sample checks a choice and makes a sample of it.
func (c *choice) sample(body *completionRequest, eos []int32) (s policy.Sample, err error) {
	bad := func(format string, args ...any) (policy.Sample, error) {
		return s, fmt.Errorf("%w: choice %d "+format, append([]any{errAnswer, c.Index}, args...)...)
	}
	switch {
	case len(c.TokenIDs) == 0:
		return bad("has no token_ids: the server has to be rubicon serve, or a vLLM that knows return_token_ids")
	case len(c.TokenIDs) > body.MaxTokens:
		return bad("has %d tokens, max_tokens was %d", len(c.TokenIDs), body.MaxTokens)
	case c.PromptTokenIDs != nil && !slices.Equal(c.PromptTokenIDs, body.Prompt):
		return bad("is of another prompt than was sent")
	case c.LogProbs == nil || len(c.LogProbs.TokenLogProbs) != len(c.TokenIDs):
		return bad("has %d tokens and not as many log-probabilities", len(c.TokenIDs))
	}
	for i, l := range c.LogProbs.TokenLogProbs {
		if l == nil || !(*l <= maxLogP) || math.IsInf(float64(*l), -1) {
			return bad("has no log-probability of token %d", i)
		}
		s.LogP = append(s.LogP, *l)
	}
	s.Tokens, s.Filtered = c.TokenIDs, slices.Clone(s.LogP)
	switch last := s.Tokens[len(s.Tokens)-1]; {
	case c.Finish == "length":
		s.Finish = policy.FinishLength
	case c.Finish == "stop" && slices.Contains(eos, last):
		s.Finish = policy.FinishEOS
	case c.Finish == "stop" && len(body.Stop) > 0:
		s.Finish = policy.FinishStop
	default:
		return bad("ended with %q and token %d, which is neither an end token nor the longest length", c.Finish, last)
	}
	return s, nil
}

// maxLogP is what rounding may make of a log-probability of 0.
const maxLogP = 1e-3
