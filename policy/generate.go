package policy

import (
	"context"
	"errors"
	"fmt"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// GenerateOptions say how a batch of requests is sampled. Which of them run together does not change the samples.
type GenerateOptions struct {
	SamplingParams
	Adapter  string // "" = the frozen weights alone
	MaxBatch int    // samples generated at a time; 0: 64
	// KVTokens bounds the cache of keys and values, in tokens. When it is full, the samples begun last wait and are
	// computed again. 0: what MaxBatch samples can need, at most half of the device's free memory.
	KVTokens int
	// PrefillChunk is how many prompt tokens one step computes beside the samples' tokens; 0: 256.
	PrefillChunk int
	// OnSample, if set, is called with each sample when it is finished.
	OnSample func(request, sample int, s Sample)
}

// Generate samples N continuations of each prompt; the results are by request, then by sample. A sample depends on its
// prompt, its Stream, its number and the sampling parameters, and on an Invariant device on nothing else. When ctx is
// done, Generate returns its error between two steps.
func (m *Model) Generate(ctx context.Context, reqs []Request, o GenerateOptions) ([][]Sample, error) {
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return nil, err
	}
	set, err := m.named(o.Adapter)
	if err != nil {
		return nil, err
	}
	results := make([][]Sample, len(reqs))
	for i := range reqs {
		results[i] = make([]Sample, max(0, reqs[i].N))
	}
	q, err := m.queue(reqs, &o)
	if err != nil {
		return nil, err
	}
	if len(q.waiting) == 0 {
		return results, nil
	}
	if err := m.needPositions(q.positions); err != nil {
		return nil, err
	}
	o.MaxBatch = min(o.MaxBatch, len(q.waiting))
	s := m.pool.scope()
	defer s.release()
	d := m.decoder(s, &o)
	if s.err != nil {
		return nil, s.err
	}
	d.net, d.queue = m.net(netOptions{set: set}), q
	err = d.run(ctx, func(s *sequence) {
		results[s.request][s.sample] = s.result()
		if o.OnSample != nil {
			o.OnSample(s.request, s.sample, s.result())
		}
	})
	if err != nil {
		return nil, err
	}
	return results, nil
}

func (o GenerateOptions) withDefaults() GenerateOptions {
	if o.MaxBatch == 0 {
		o.MaxBatch = 64
	}
	if o.PrefillChunk == 0 {
		o.PrefillChunk = 256
	}
	return o
}

func (o *GenerateOptions) check() error {
	bad := func(format string, args ...any) error { return fmt.Errorf("policy: generate: "+format, args...) }
	switch {
	case o.MaxBatch < 1 || o.PrefillChunk < 1 || o.KVTokens < 0:
		return bad("max batch %d, prefill chunk %d and KV tokens %d have to be positive", o.MaxBatch, o.PrefillChunk, o.KVTokens)
	case !(o.Temperature > 0) && !(o.Greedy && o.Temperature == 0):
		return bad("temperature %g, want a positive one, or greedy", o.Temperature)
	case o.TopK < 0:
		return bad("top_k %d is negative (0 switches it off)", o.TopK)
	case !(o.TopP > 0 && o.TopP <= 1):
		return bad("top_p %g, want 0 < top_p <= 1 (1 switches it off)", o.TopP)
	case !(o.MinP >= 0 && o.MinP <= 1):
		return bad("min_p %g, want 0 <= min_p <= 1 (0 switches it off)", o.MinP)
	case !(o.RepetitionPenalty > 0):
		return bad("repetition_penalty %g, want a positive one (1 switches it off)", o.RepetitionPenalty)
	case o.MaxNewTokens < 1:
		return bad("max new tokens %d, want at least 1", o.MaxNewTokens)
	case len(o.Stop) > 0 && o.Decode == nil:
		return errors.New("policy: generate: stop strings need Decode")
	}
	for _, stop := range o.Stop {
		if stop == "" {
			return errors.New("policy: generate: an empty stop string would end every sample at once")
		}
	}
	return nil
}

// queue is the samples of a call to Generate, in the order in which they are begun.
type queue struct {
	cache     *cache
	kept      *prefixes   // what later requests may begin with; nil: nothing is kept
	running   []*sequence // oldest first
	waiting   []*sequence
	prompts   []*node // prompts in the cache whose tokens are not all fed, oldest first
	maxBatch  int
	positions int // the longest path
}

// queue checks the requests and makes the queue of their samples and the cache.
func (m *Model) queue(reqs []Request, o *GenerateOptions) (*queue, error) {
	q := &queue{maxBatch: o.MaxBatch}
	var most needs
	for i := range reqs {
		r := &reqs[i]
		if err := m.checkRequest(r); err != nil {
			return nil, fmt.Errorf("policy: request %d: %w", i, err)
		}
		n := len(r.Prompt)
		limit := r.limit(o, m.cfg.MaxPositions-n)
		if err := r.checkConstraint(min(limit, o.MaxNewTokens), &o.SamplingParams); err != nil {
			return nil, fmt.Errorf("policy: request %d: %w", i, err)
		}
		q.positions = max(q.positions, n+limit)
		most.add(n-1, limit)
		prompt := &node{tokens: r.Prompt[:n-1]}
		for k := range r.N {
			q.waiting = append(q.waiting, m.sequence(prompt, r, i, k, limit, o))
		}
	}
	if len(q.waiting) == 0 {
		return q, nil
	}
	spare := int64(0)
	if total := m.dev.Info().Memory; total > 0 {
		spare = max(1, (total-m.dev.Allocated()+m.kv.bytes())/2)
	}
	pages, err := most.pages(m.cfg, o, len(q.waiting), len(reqs), spare)
	if err != nil {
		return nil, err
	}
	q.cache, err = m.needCache(pages)
	return q, err
}

func (m *Model) sequence(prompt *node, r *Request, request, sample, limit int, o *GenerateOptions) *sequence {
	n := len(r.Prompt)
	s := &sequence{
		node: node{parent: prompt, tokens: []int32{r.Prompt[n-1]}}, request: request, sample: sample, limit: limit, params: &o.SamplingParams,
		key: device.NewKey(append(r.Stream[:len(r.Stream):len(r.Stream)], uint64(sample))...),
	}
	if o.RepetitionPenalty != 1 {
		s.have = make([]uint64, (m.cfg.Vocab+63)/64)
		s.see(r.Prompt...)
	}
	s.end, s.replier = min(limit, o.MaxNewTokens), r.Reply
	s.constrain(r, m.cfg.Vocab)
	return s
}

// limit is the most tokens of a sample that has room for so many.
func (r *Request) limit(o *GenerateOptions, room int) int {
	switch {
	case r.Reply == nil:
		return min(o.MaxNewTokens, room)
	case r.MaxTokens > 0:
		return min(r.MaxTokens, room)
	}
	return room
}

func (m *Model) checkRequest(r *Request) error {
	if r.N < 0 {
		return fmt.Errorf("%d samples", r.N)
	}
	if len(r.Prompt) == 0 {
		return errors.New("the prompt is empty")
	}
	if len(r.Prompt) >= m.cfg.MaxPositions {
		return fmt.Errorf("the prompt has %d tokens, which leaves no room in the model's context of %d: shorten it", len(r.Prompt), m.cfg.MaxPositions)
	}
	s := Segment{Parent: Root, Tokens: r.Prompt}
	return s.check(0, m.cfg.Vocab)
}

// needs are the most pages that requests need.
type needs struct{ prompt, sample, both int }

func (n *needs) add(prompt, limit int) {
	p, s := pagesFor(prompt), pagesFor(limit)
	n.prompt, n.sample, n.both = max(n.prompt, p), max(n.sample, s), max(n.both, p+s)
}

// pages is the size of the cache for a number of samples of a number of prompts. spare bounds its bytes unless o.KVTokens
// does; 0: nothing does.
func (n *needs) pages(c Config, o *GenerateOptions, samples, prompts int, spare int64) (int, error) {
	if o.KVTokens > 0 {
		if pages := o.KVTokens / pageLen; pages >= n.both {
			return pages, nil
		}
		return 0, fmt.Errorf("policy: generate: a cache of %d tokens is too small, the longest prompt and one sample of it need %d", o.KVTokens, n.both*pageLen)
	}
	samples = min(samples, o.MaxBatch)
	pages := samples*n.sample + min(prompts, samples)*n.prompt
	if spare > 0 {
		pages = min(pages, max(n.both, int(spare/c.kvBytes(pageLen))))
	}
	return pages, nil
}
