package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/policy"
	"github.com/rubicon-rl/rubicon/policy/token"
	"github.com/rubicon-rl/rubicon/trainer"
)

// chat is a user's conversation with one model, or with two side by side.
type chat struct {
	out, log io.Writer // of the answers; of everything else
	tok      *token.Tokenizer
	form     trainer.Conversation
	sampling policy.SamplingParams
	seed     uint64
	asked    uint64 // messages so far, those taken back included: each has random numbers of its own
	system   string
	context  int             // longest conversation, tokens
	session  *policy.Session // keeps what is computed of the conversations
	sides    []*side
	// stoppable is a context that the user can end, for one answer.
	stoppable func(context.Context) (context.Context, context.CancelFunc)
}

// side is a conversation with one model.
type side struct {
	name      string // "" if it is the only one
	adapter   string
	exchanges []exchange
}

// exchange is a message with its answer.
type exchange struct {
	user, answer string
	ids          []int32 // the whole conversation up to here as the model saw it, the answer included
	ended        bool    // the answer ends in an end token
}

func (c *chat) close() { c.session.Close() }

// say answers a message on all sides.
func (c *chat) say(ctx context.Context, user string) error {
	c.asked++
	for i, s := range c.sides {
		if err := c.answer(ctx, s, user); err != nil {
			for _, before := range c.sides[:i] { // the sides have the same messages
				before.exchanges = before.exchanges[:len(before.exchanges)-1]
			}
			return err
		}
	}
	return nil
}

// answer lets one side answer. An answer that is stopped stays as far as it got.
func (c *chat) answer(ctx context.Context, s *side, user string) error {
	prompt, err := c.prompt(s, user)
	if err != nil {
		return err
	}
	room := c.context - len(prompt)
	if room < 1 {
		return fmt.Errorf("the conversation fills its %d tokens: /undo, /reset, or begin with a larger --context", c.context)
	}
	if s.name != "" {
		fmt.Fprintf(c.out, "%s: ", s.name)
	}
	tokens, finish, err := c.sample(ctx, s, prompt, room)
	if err != nil {
		return err
	}
	switch finish {
	case "":
		fmt.Fprintln(c.log, "(stopped)")
	case policy.FinishLength:
		fmt.Fprintf(c.log, "(cut after %d tokens)\n", len(tokens))
	}
	s.exchanges = append(s.exchanges, exchange{
		user: user, answer: c.tok.Decode(tokens, true), ids: append(prompt, tokens...), ended: finish == policy.FinishEOS,
	})
	return nil
}

// sample prints the answer to a prompt as it is drawn, and returns it with how it ended; finish "": the user stopped it.
func (c *chat) sample(ctx context.Context, s *side, prompt []int32, room int) (tokens []int32, finish string, err error) {
	ctx, done := c.stoppable(ctx)
	defer done()
	stream, params := c.tok.Stream(true), c.sampling
	params.MaxNewTokens = min(params.MaxNewTokens, room)
	ticket, err := c.session.Add(policy.Asked{
		Request: policy.Request{Prompt: prompt, N: 1, Stream: []uint64{c.seed, c.asked}}, Params: params, Adapter: s.adapter, LogProbs: -1,
		Listen: func(e policy.Event) {
			fmt.Fprint(c.out, stream.Push(e.Token))
			tokens, finish = append(tokens, e.Token), e.Finish
		},
	})
	if err != nil {
		return nil, "", err
	}
	for finish == "" && ctx.Err() == nil {
		if _, err := c.session.Step(ctx); err != nil && ctx.Err() == nil {
			return nil, "", err
		}
	}
	if finish == "" {
		c.session.Cancel(ticket)
	}
	fmt.Fprintln(c.out, stream.Flush())
	return tokens, finish, nil
}

// prompt is the side's conversation with the user's next message, up to where the answer begins.
func (c *chat) prompt(s *side, user string) ([]int32, error) {
	message := grpo.Message{Role: "user", Content: user}
	if len(s.exchanges) == 0 {
		return c.form.Opening(append(c.opening(), message), nil)
	}
	last := s.exchanges[len(s.exchanges)-1]
	next, err := c.form.Following([]grpo.Message{message}, last.ended)
	return append(slices.Clone(last.ids), next...), err
}

// opening is the system message, if there is one.
func (c *chat) opening() []grpo.Message {
	if c.system == "" {
		return nil
	}
	return []grpo.Message{{Role: "system", Content: c.system}}
}

func (c *chat) reset() {
	for _, s := range c.sides {
		s.exchanges = nil
	}
}

func (c *chat) undo() error {
	for _, s := range c.sides {
		if len(s.exchanges) == 0 {
			return errors.New("there is nothing to take back")
		}
		s.exchanges = s.exchanges[:len(s.exchanges)-1]
	}
	return nil
}

// saved is a conversation as a line of training data.
type saved struct {
	Messages []savedMessage `json:"messages"`
	Side     string         `json:"side,omitempty"` // adapter or base, where they were compared
}

type savedMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// save appends a line for each side to a file.
func (c *chat) save(path string) error {
	if path == "" {
		return errors.New("/save needs the name of a file")
	}
	var text strings.Builder
	lines := json.NewEncoder(&text)
	lines.SetEscapeHTML(false)
	for _, s := range c.sides {
		if len(s.exchanges) == 0 {
			return errors.New("there is nothing to save yet")
		}
		line := saved{Side: s.name}
		for _, m := range c.opening() {
			line.Messages = append(line.Messages, savedMessage{m.Role, m.Content})
		}
		for _, e := range s.exchanges {
			line.Messages = append(line.Messages, savedMessage{"user", e.user}, savedMessage{"assistant", e.answer})
		}
		if err := lines.Encode(line); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, text.String())
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		fmt.Fprintln(c.log, "saved to", path)
	}
	return err
}
