package local

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/rubicon-rl/rubicon/policy"
	"github.com/rubicon-rl/rubicon/policy/token"
)

// embedTokens are computed together at most; of a text that has more only so many are seen.
const embedTokens = 2048

// Embedder turns texts into vectors with a model in this process: the mean of the last hidden states, after the final norm, of
// the run's frozen base without any adapter. Vectors of a step can be compared with those of any other, however the policy
// has changed. Of a text that is longer than 2048 tokens, or than the model's context, only the beginning is seen. A vector
// depends on its text alone. It is safe for use by several goroutines.
type Embedder struct {
	// Lock, if it is set before the first call, is held while the model computes. Whoever else uses the model at the same
	// time holds it too: its owner, and a Transport. Embed waits for it even when its context has ended.
	Lock sync.Locker

	tok *token.Tokenizer

	mu    sync.Mutex // held while the model computes
	model *policy.Model
}

// NewEmbedder makes an embedder for a model that is bound later, and the tokenizer that goes with it.
func NewEmbedder(tok *token.Tokenizer) *Embedder { return &Embedder{tok: tok} }

// Bind sets the model that embeds from now on. Its weights have to be frozen: where all of them are trained, a frozen copy.
func (e *Embedder) Bind(m *policy.Model) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.model = m
}

// Name identifies the model; "": there is none yet.
func (e *Embedder) Name() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.model == nil {
		return ""
	}
	return "policy " + e.model.Fingerprint()
}

// Embed returns a vector for each text.
func (e *Embedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.model == nil {
		return nil, errors.New("the run's model cannot embed texts yet: they have to wait until it is loaded")
	}
	list := make([][]float32, 0, len(texts))
	for len(list) < len(texts) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		f, err := e.batch(texts[len(list):])
		if err != nil {
			return nil, err
		}
		vectors, err := e.compute(f)
		if err != nil {
			return nil, fmt.Errorf("embedding %d texts with the run's model: %w", len(f.Segments), err)
		}
		list = append(list, vectors...)
	}
	return list, nil
}

// batch makes a forest of as many texts as are computed together, one at least.
func (e *Embedder) batch(texts []string) (*policy.Forest, error) {
	limit, f := min(embedTokens, e.model.Config().MaxPositions), &policy.Forest{}
	for _, text := range texts {
		ids := e.tok.Encode(text, token.EncodeOptions{AddSpecial: true, Plain: true})
		if len(ids) == 0 {
			return nil, errors.New("a text without tokens has no vector")
		}
		ids = ids[:min(len(ids), limit)]
		if f.Tokens()+len(ids) > embedTokens && len(f.Segments) > 0 {
			break
		}
		f.Segments = append(f.Segments, policy.Segment{Parent: policy.Root, Tokens: ids})
	}
	return f, nil
}

// compute returns a vector for each segment of a forest of roots.
func (e *Embedder) compute(f *policy.Forest) ([][]float32, error) {
	if e.Lock != nil {
		e.Lock.Lock()
		defer e.Lock.Unlock()
	}
	pool := make([]bool, len(f.Segments))
	for i := range pool {
		pool[i] = true
	}
	p, err := e.model.Forward(f, policy.ForwardOptions{Pool: pool})
	if err != nil {
		return nil, err
	}
	defer p.Release()
	return p.Output.Pooled, nil
}
