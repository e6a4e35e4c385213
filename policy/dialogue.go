package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Dialogue is one growing text, such as a conversation, whose keys and values stay on the device between the model's
// answers: nothing that is still at the front of the text is computed again. It has a cache of its own, which Generate and
// other Dialogues of the model leave alone. Close it before the model.
type Dialogue struct {
	m       *Model
	adapter string
	limit   int // tokens that the cache has room for
	cache   *cache
	text    node
}

// NewDialogue makes a Dialogue of at most so many tokens, with an adapter set, or with the frozen weights alone if adapter
// is "".
func (m *Model) NewDialogue(adapter string, tokens int) (*Dialogue, error) {
	if tokens < 2 || tokens > m.cfg.MaxPositions {
		return nil, fmt.Errorf("policy: a dialogue of %d tokens; the model's context allows 2 to %d", tokens, m.cfg.MaxPositions)
	}
	if _, err := m.named(adapter); err != nil {
		return nil, err
	}
	own, err := m.newCache(pagesFor(tokens))
	if err != nil {
		return nil, err
	}
	return &Dialogue{m: m, adapter: adapter, limit: tokens, cache: own}, nil
}

// Close gives the memory of keys and values back.
func (d *Dialogue) Close() { d.m.dev.Free(d.cache.mem) }

// Limit is the most tokens that the text may have.
func (d *Dialogue) Limit() int { return d.limit }

// ErrDialogueFull says that a text leaves no room for an answer.
var ErrDialogueFull = errors.New("the dialogue is full")

// Continue samples a continuation of r.Prompt, the whole text so far, and calls each, if it is set, with every token as it
// is drawn. What the prompt and the text before, continuations included, begin with alike is not computed again. r.N,
// r.Reply and r.MaxTokens are not heeded. The sample depends on the prompt, r.Stream and the sampling parameters. When ctx
// is done, Continue returns what there is, with Finish "", and ctx's error.
func (d *Dialogue) Continue(ctx context.Context, r Request, p SamplingParams, each func(id int32)) (Sample, error) {
	o := GenerateOptions{SamplingParams: p, MaxBatch: 1}.withDefaults()
	if err := o.check(); err != nil {
		return Sample{}, err
	}
	s, err := d.sequence(&r, &o)
	if err != nil {
		return Sample{}, err
	}
	set, err := d.m.named(d.adapter)
	if err != nil {
		return Sample{}, err
	}
	temporary := d.m.pool.scope()
	defer temporary.release()
	dec := d.m.decoder(temporary, &o)
	if temporary.err != nil {
		return Sample{}, temporary.err
	}
	dec.net, dec.queue = d.m.net(netOptions{set: set}), &queue{cache: d.cache, running: []*sequence{s}, maxBatch: 1}
	err = dec.alone(ctx, s, each)
	d.text = s.node
	return Sample{Tokens: s.generated()[s.turn:], LogP: s.logp, Filtered: s.filtered, Finish: s.finish}, err
}

// sequence is the text r.Prompt with what of it is in the cache.
func (d *Dialogue) sequence(r *Request, o *GenerateOptions) (*sequence, error) {
	if err := d.m.checkRequest(r); err != nil {
		return nil, fmt.Errorf("policy: dialogue: %w", err)
	}
	n := len(r.Prompt)
	if n >= d.limit {
		return nil, fmt.Errorf("policy: dialogue: the text has %d tokens, which leaves no room in its %d: %w", n, d.limit, ErrDialogueFull)
	}
	if err := d.m.needPositions(d.limit); err != nil {
		return nil, err
	}
	most := min(o.MaxNewTokens, d.limit-n)
	if err := r.checkConstraint(most, &o.SamplingParams); err != nil {
		return nil, fmt.Errorf("policy: dialogue: %w", err)
	}
	s := d.m.sequence(&node{}, r, 0, 0, d.limit, o)
	s.node = d.text
	s.parent = &node{users: 1}
	s.fed = min(d.text.fed, common(d.text.tokens, r.Prompt), n-1) // the last token is fed again, for what comes after it
	s.tokens = slices.Clone(r.Prompt)
	s.turn, s.end, s.replier = n-1, n-1+most, nil
	return s, nil
}

// common is the length of what a and b begin with.
func common(a, b []int32) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// alone generates the one sequence of the queue.
func (d *decoder) alone(ctx context.Context, s *sequence, each func(id int32)) error {
	for s.finish == "" {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("policy: generation stopped: %w", err)
		}
		if err := d.compute(); err != nil {
			return err
		}
		if len(d.drawing) == 0 { // the prompt is not yet fed
			continue
		}
		id := d.out.IDs[0]
		s.take(&d.o.SamplingParams, id, d.out.LogP[0], d.out.Filtered[0])
		if each != nil {
			each(id)
		}
	}
	return nil
}
