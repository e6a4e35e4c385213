package serve

import (
	"fmt"
	"net/http"

	"github.com/rubicon-rl/rubicon/policy/token"
)

// head is what every answer with completions begins with.
type head struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	Model   string `json:"model"`
}

func (s *Server) head(prefix, object, model string) head {
	if model == "" {
		model = s.o.Name
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	return head{ID: fmt.Sprintf("%s-%x-%d", prefix, s.o.Seed, s.asked), Object: object, Created: s.o.Now().Unix(), Model: model}
}

// chatAnswer is the answer of /v1/chat/completions, whole or a piece of it.
type chatAnswer struct {
	head
	Choices        []chatChoice `json:"choices"`
	Usage          *usage       `json:"usage,omitempty"`
	PromptTokenIDs []int32      `json:"prompt_token_ids,omitempty"`
}

type chatChoice struct {
	Index    int          `json:"index"`
	Message  *chatMessage `json:"message,omitempty"`
	Delta    *chatMessage `json:"delta,omitempty"`
	LogProbs any          `json:"logprobs"`
	Finish   *string      `json:"finish_reason"`
	TokenIDs []int32      `json:"token_ids,omitempty"`
}

type chatMessage struct {
	Role      string     `json:"role,omitempty"`
	Content   *string    `json:"content,omitempty"`
	ToolCalls []toolCall `json:"tool_calls,omitempty"`
}

type toolCall struct {
	Index    *int   `json:"index,omitempty"` // in a stream
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// chat answers /v1/chat/completions.
func (s *Server) chat(w http.ResponseWriter, r *http.Request) error {
	q, err := read[chatRequest](r)
	if err != nil {
		return err
	}
	if q.MaxCompletionTokens != nil {
		q.MaxTokens = q.MaxCompletionTokens
	}
	a := ask{model: q.Model, seed: q.Seed, logProbs: -1}
	if a.set, err = s.set(q.Model); err != nil {
		return err
	}
	if a.params, a.n, err = q.params(s); err != nil {
		return err
	}
	if q.TopLogProbs < 0 || q.TopLogProbs > mostLogProbs {
		return wrong("top_logprobs", "top_logprobs is %d: give 0 to %d", q.TopLogProbs, mostLogProbs)
	}
	if q.LogProbs || q.TopLogProbs > 0 {
		a.logProbs = q.TopLogProbs
	}
	if a.constraint, err = q.constraint(s); err != nil {
		return err
	}
	prompt, err := q.chatPrompt(s)
	if err != nil {
		return err
	}
	a.prompts = [][]int32{prompt}
	g, err := s.begin(r.Context(), a)
	if err != nil {
		return err
	}
	defer g.end()
	reply := &chatReply{s: s, q: q, g: g, logProbs: a.logProbs >= 0}
	if q.Stream {
		return reply.stream(w.(*answer), r)
	}
	if err := g.follow(r.Context(), func([]int) error { return nil }); err != nil {
		return err
	}
	return w.(*answer).json(reply.whole())
}

// chatReply words the answer to a chat request.
type chatReply struct {
	s        *Server
	q        *chatRequest
	g        *generation
	logProbs bool
}

// whole is the answer in one piece.
func (c *chatReply) whole() chatAnswer {
	out := chatAnswer{head: c.s.head("chatcmpl", "chat.completion", c.q.Model), Usage: c.g.usage()}
	if c.q.ReturnTokenIDs {
		out.PromptTokenIDs = c.g.prompts[0]
	}
	for i, ch := range c.g.choices {
		m, finish := c.message(ch)
		m.Role = "assistant"
		one := chatChoice{Index: i, Message: m, Finish: &finish}
		c.tokens(&one, ch)
		out.Choices = append(out.Choices, one)
	}
	return out
}

// message is what was said, with the calls of tools that are in it.
func (c *chatReply) message(ch *choice) (*chatMessage, string) {
	text := ch.text
	if !c.q.tools() {
		return &chatMessage{Content: &text}, ch.finish
	}
	before, calls := token.ReadCalls(text)
	m := &chatMessage{}
	for i, call := range calls {
		if call.Err != nil {
			return &chatMessage{Content: &text}, ch.finish // not a call that a client could make
		}
		t := toolCall{ID: fmt.Sprintf("call_%d_%d", len(ch.tokens), i), Type: "function"}
		t.Function.Name, t.Function.Arguments = call.Name, string(call.Arguments)
		m.ToolCalls = append(m.ToolCalls, t)
	}
	if len(calls) == 0 {
		return &chatMessage{Content: &text}, ch.finish
	}
	if before != "" {
		m.Content = &before
	}
	return m, "tool_calls"
}

// tokens adds to a choice what is told of its new tokens.
func (c *chatReply) tokens(one *chatChoice, ch *choice) {
	news := ch.news()
	if c.logProbs {
		one.LogProbs = c.s.chatLogProbs(news)
	}
	if c.q.ReturnTokenIDs {
		for _, e := range news {
			one.TokenIDs = append(one.TokenIDs, e.Token)
		}
	}
}

// stream sends the answer piece by piece. With tools the text of a choice waits for its end, since calls may be in it.
func (c *chatReply) stream(w *answer, r *http.Request) error {
	h := c.s.head("chatcmpl", "chat.completion.chunk", c.q.Model)
	empty := ""
	for i := range c.g.choices {
		first := chatAnswer{head: h, Choices: []chatChoice{{Index: i, Delta: &chatMessage{Role: "assistant", Content: &empty}}}}
		if i == 0 && c.q.ReturnTokenIDs {
			first.PromptTokenIDs = c.g.prompts[0]
		}
		if err := w.event(first); err != nil {
			return err
		}
	}
	err := c.g.follow(r.Context(), func(changed []int) error {
		for _, i := range changed {
			if one, ok := c.piece(i); ok {
				if err := w.event(chatAnswer{head: h, Choices: []chatChoice{one}}); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if c.q.StreamOptions.IncludeUsage {
		if err := w.event(chatAnswer{head: h, Choices: []chatChoice{}, Usage: c.g.usage()}); err != nil {
			return err
		}
	}
	return w.done()
}

// piece is what is new of a choice; false: nothing yet.
func (c *chatReply) piece(i int) (chatChoice, bool) {
	ch := c.g.choices[i]
	one := chatChoice{Index: i, Delta: &chatMessage{}}
	finish := ch.finish
	if c.q.tools() {
		if finish == "" {
			return one, false
		}
		one.Delta, finish = c.message(ch)
		for k := range one.Delta.ToolCalls {
			one.Delta.ToolCalls[k].Index = &k
		}
	} else if text := ch.delta(); text != "" {
		one.Delta.Content = &text
	}
	if finish != "" {
		one.Finish = &finish
	}
	if one.Delta.Content == nil && one.Finish == nil && !c.logProbs && !c.q.ReturnTokenIDs {
		return one, false
	}
	c.tokens(&one, ch)
	return one, true
}
