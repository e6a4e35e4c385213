package serve

import (
	"context"
	"net/http"
	"slices"

	"github.com/rubicon-rl/rubicon/policy"
)

// textAnswer is the answer of /v1/completions, whole or a piece of it.
type textAnswer struct {
	head
	Choices []textChoice `json:"choices"`
	Usage   *usage       `json:"usage,omitempty"`
}

type textChoice struct {
	Index          int           `json:"index"`
	Text           string        `json:"text"`
	LogProbs       *textLogProbs `json:"logprobs"`
	Finish         *string       `json:"finish_reason"`
	TokenIDs       []int32       `json:"token_ids,omitempty"`
	PromptTokenIDs []int32       `json:"prompt_token_ids,omitempty"`
}

// textReply words the answer to a request for completions of texts.
type textReply struct {
	s      *Server
	q      *textRequest
	ask    ask
	scores [][]policy.TokenScore // of the prompts, if they are echoed with log-probabilities
	g      *generation           // nil: no token was asked for
}

// text answers /v1/completions.
func (s *Server) text(w http.ResponseWriter, r *http.Request) error {
	c, err := s.readText(r)
	if err != nil {
		return err
	}
	if err := c.scorePrompts(r.Context()); err != nil {
		return err
	}
	if c.ask.params.MaxNewTokens == 0 {
		return w.(*answer).json(c.whole())
	}
	if c.g, err = s.begin(r.Context(), c.ask); err != nil {
		return err
	}
	defer c.g.end()
	if c.q.Stream {
		return c.stream(w.(*answer), r)
	}
	if err := c.g.follow(r.Context(), func([]int) error { return nil }); err != nil {
		return err
	}
	return w.(*answer).json(c.whole())
}

func (s *Server) readText(r *http.Request) (*textReply, error) {
	q, err := read[textRequest](r)
	if err != nil {
		return nil, err
	}
	if q.MaxTokens == nil {
		n := min(16, s.o.MaxTokens) // OpenAI's default
		q.MaxTokens = &n
	}
	c := &textReply{s: s, q: q, ask: ask{model: q.Model, seed: q.Seed, logProbs: -1}}
	if c.ask.set, err = s.set(q.Model); err != nil {
		return nil, err
	}
	if c.ask.params, c.ask.n, err = q.params(s); err != nil {
		return nil, err
	}
	if c.ask.prompts, err = s.prompts(q.Prompt, "prompt", true); err != nil {
		return nil, err
	}
	if q.LogProbs != nil {
		c.ask.logProbs = *q.LogProbs
	}
	switch {
	case q.Suffix != "":
		err = wrong("suffix", "suffix is not supported")
	case q.BestOf != nil && *q.BestOf != c.ask.n:
		err = wrong("best_of", "best_of is not supported: leave it out")
	case q.LogProbs != nil && (*q.LogProbs < 0 || *q.LogProbs > mostLogProbs):
		err = wrong("logprobs", "logprobs is %d: give 0 to %d", *q.LogProbs, mostLogProbs)
	case *q.MaxTokens == 0 && !q.Echo:
		err = wrong("max_tokens", "max_tokens is 0, which makes sense only with echo")
	case q.Stream && q.Echo:
		err = wrong("echo", "echo cannot be streamed: leave out one of the two")
	}
	return c, err
}

// scorePrompts asks what the model says of the prompts' own tokens.
func (c *textReply) scorePrompts(ctx context.Context) error {
	if !c.q.Echo || c.ask.logProbs < 0 {
		return nil
	}
	c.scores = make([][]policy.TokenScore, len(c.ask.prompts))
	for i, p := range c.ask.prompts {
		if len(p) < 2 {
			continue
		}
		var err error
		if c.scores[i], err = c.s.engine.score(ctx, p, c.ask.set, c.ask.logProbs); err != nil {
			return wrong("prompt", "%v", err)
		}
	}
	return nil
}

// whole is the answer in one piece.
func (c *textReply) whole() textAnswer {
	out := textAnswer{head: c.s.head("cmpl", "text_completion", c.q.Model)}
	for i := range len(c.ask.prompts) * c.ask.n {
		out.Choices = append(out.Choices, c.choice(i))
	}
	if c.g != nil {
		out.Usage = c.g.usage()
		return out
	}
	out.Usage = &usage{}
	for _, p := range c.ask.prompts {
		out.Usage.PromptTokens += len(p)
	}
	out.Usage.TotalTokens = out.Usage.PromptTokens
	return out
}

func (c *textReply) choice(i int) textChoice {
	prompt, length := c.ask.prompts[i/c.ask.n], "length"
	one := textChoice{Index: i, Finish: &length}
	var said []policy.Event
	if c.g != nil {
		ch := c.g.choices[i]
		one.Text, one.Finish, said = ch.text, &ch.finish, ch.tokens
	}
	if c.q.Echo {
		one.Text = c.s.o.Tokenizer.Decode(prompt, true) + one.Text
	}
	if c.ask.logProbs >= 0 {
		one.LogProbs = &textLogProbs{}
		if c.q.Echo && len(prompt) > 0 {
			one.LogProbs.add(c.s, prompt[0], nil, nil)
			for _, score := range c.scores[i/c.ask.n] {
				one.LogProbs.add(c.s, score.Token, &score.LogP, score.Top)
			}
		}
		one.LogProbs.events(c.s, said)
	}
	if c.q.ReturnTokenIDs {
		one.PromptTokenIDs = prompt
		for _, e := range said {
			one.TokenIDs = append(one.TokenIDs, e.Token)
		}
	}
	return one
}

// stream sends the answer piece by piece.
func (c *textReply) stream(w *answer, r *http.Request) error {
	h := c.s.head("cmpl", "text_completion", c.q.Model)
	offsets := make([]int, len(c.g.choices))
	told := make([]bool, len(c.ask.prompts))
	err := c.g.follow(r.Context(), func(changed []int) error {
		for _, i := range changed {
			ch := c.g.choices[i]
			one := textChoice{Index: i, Text: ch.delta()}
			if ch.finish != "" {
				one.Finish = &ch.finish
			}
			if one.Text == "" && one.Finish == nil && c.ask.logProbs < 0 && !c.q.ReturnTokenIDs {
				continue
			}
			news := ch.news()
			if c.ask.logProbs >= 0 {
				one.LogProbs = &textLogProbs{at: offsets[i]}
				one.LogProbs.events(c.s, news)
				offsets[i] = one.LogProbs.at
			}
			if c.q.ReturnTokenIDs {
				for _, e := range news {
					one.TokenIDs = append(one.TokenIDs, e.Token)
				}
				if p := i / c.ask.n; !told[p] {
					told[p], one.PromptTokenIDs = true, slices.Clone(c.ask.prompts[p])
				}
			}
			if err := w.event(textAnswer{head: h, Choices: []textChoice{one}}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if c.q.StreamOptions.IncludeUsage {
		if err := w.event(textAnswer{head: h, Choices: []textChoice{}, Usage: c.g.usage()}); err != nil {
			return err
		}
	}
	return w.done()
}
