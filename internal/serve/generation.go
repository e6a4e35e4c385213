package serve

import (
	"context"
	"slices"
	"sync"

	"github.com/rubicon-rl/rubicon/policy"
)

// generation is a request for completions that is being answered: one call for each prompt, n choices of each.
type generation struct {
	s       *Server
	prompts [][]int32
	calls   []*call
	choices []*choice // prompt after prompt
	n       int
}

// ask is a request for completions.
type ask struct {
	prompts    [][]int32
	n          int
	params     policy.SamplingParams
	logProbs   int // alternatives; -1: no log-probabilities
	constraint policy.Constraint
	model      string // as the request names it
	set        string // of its adapter
	seed       *int64
}

// begin has the engine take all prompts in.
func (s *Server) begin(ctx context.Context, a ask) (*generation, error) {
	if err := s.enter(len(a.prompts) * a.n); err != nil {
		return nil, err
	}
	g := &generation{s: s, prompts: a.prompts, n: a.n}
	seed := s.seed()
	if a.seed != nil {
		seed = uint64(*a.seed)
	}
	for i, p := range a.prompts {
		c, err := s.engine.generate(ctx, policy.Asked{
			Request: policy.Request{Prompt: p, N: a.n, Stream: []uint64{seed, uint64(i) + 1}, Constraint: a.constraint},
			Params:  a.params, Adapter: a.set, LogProbs: a.logProbs,
		})
		if err != nil {
			g.end()
			if _, gone := s.set(a.model); gone != nil { // its adapter was unloaded before its turn came
				return nil, gone
			}
			if ctx.Err() == nil && err != errStopped {
				err = wrong("", "%v", err)
			}
			return nil, err
		}
		g.calls = append(g.calls, c)
		for range a.n {
			g.choices = append(g.choices, &choice{stream: s.o.Tokenizer.Stream(true), stop: a.params.Stop})
		}
	}
	return g, nil
}

// end gives up what is not finished. It has to be called once.
func (g *generation) end() {
	for _, c := range g.calls {
		g.s.engine.cancel(c)
	}
	g.s.leave(g)
}

// follow calls told whenever choices have new tokens, with their numbers, until all have ended.
func (g *generation) follow(ctx context.Context, told func(changed []int) error) error {
	ctx, cancel := context.WithCancel(ctx)
	type news struct {
		call   int
		events []policy.Event
		err    error
	}
	come := make(chan news)
	var all sync.WaitGroup
	defer func() {
		cancel()
		all.Wait()
	}()
	for i, c := range g.calls {
		all.Go(func() {
			for left := g.n; left > 0; {
				events, err := c.next(ctx)
				for _, e := range events {
					if e.Finish != "" {
						left--
					}
				}
				select {
				case come <- news{i, events, err}:
				case <-ctx.Done():
					return
				}
				if err != nil {
					return
				}
			}
		})
	}
	for !ended(g.choices) {
		select {
		case got := <-come:
			if got.err != nil {
				return got.err
			}
			var changed []int
			for _, e := range got.events {
				at := got.call*g.n + e.Sample
				g.choices[at].push(e)
				if !slices.Contains(changed, at) {
					changed = append(changed, at)
				}
			}
			if err := told(changed); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// usage is what a request took.
type usage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	TotalTokens      int `json:"total_tokens"`
	Details          struct {
		CachedTokens int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

func (g *generation) usage() *usage {
	u := &usage{}
	for i, p := range g.prompts {
		u.PromptTokens += len(p)
		u.Details.CachedTokens += g.calls[i].cached()
	}
	for _, c := range g.choices {
		u.CompletionTokens += len(c.tokens)
	}
	u.TotalTokens = u.PromptTokens + u.CompletionTokens
	return u
}
