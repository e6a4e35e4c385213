package serve

import (
	"fmt"
	"unicode/utf8"

	"github.com/rubicon-rl/rubicon/policy"
)

// tokenText is a token as clients are shown it; one that is no whole characters is shown as its bytes.
func (s *Server) tokenText(id int32) string {
	b := s.o.Tokenizer.Bytes(id)
	if utf8.Valid(b) {
		return string(b)
	}
	out := "bytes:"
	for _, c := range b {
		out += fmt.Sprintf("\\x%02x", c)
	}
	return out
}

// chatLogProb is a token in the form of /v1/chat/completions.
type chatLogProb struct {
	Token   string        `json:"token"`
	LogProb float32       `json:"logprob"`
	Bytes   []int         `json:"bytes"`
	Top     []chatLogProb `json:"top_logprobs,omitempty"`
}

func (s *Server) chatLogProb(t policy.TokenLogP) chatLogProb {
	out := chatLogProb{Token: s.tokenText(t.Token), LogProb: t.LogP, Bytes: []int{}}
	for _, b := range s.o.Tokenizer.Bytes(t.Token) {
		out.Bytes = append(out.Bytes, int(b))
	}
	return out
}

// chatLogProbs are tokens in the form of /v1/chat/completions.
func (s *Server) chatLogProbs(events []policy.Event) map[string][]chatLogProb {
	list := []chatLogProb{}
	for _, e := range events {
		one := s.chatLogProb(policy.TokenLogP{Token: e.Token, LogP: e.Raw})
		for _, t := range e.Top {
			one.Top = append(one.Top, s.chatLogProb(t))
		}
		list = append(list, one)
	}
	return map[string][]chatLogProb{"content": list}
}

// textLogProbs are tokens in the form of /v1/completions.
type textLogProbs struct {
	Tokens   []string             `json:"tokens"`
	LogProbs []*float32           `json:"token_logprobs"`
	Top      []map[string]float32 `json:"top_logprobs"`
	Offsets  []int                `json:"text_offset"` // characters
	at       int
}

// add appends a token; logp is nil for the first of a prompt.
func (l *textLogProbs) add(s *Server, id int32, logp *float32, top []policy.TokenLogP) {
	text := s.tokenText(id)
	l.Tokens, l.LogProbs, l.Offsets = append(l.Tokens, text), append(l.LogProbs, logp), append(l.Offsets, l.at)
	l.at += utf8.RuneCountInString(text)
	if logp == nil {
		l.Top = append(l.Top, nil)
		return
	}
	m := map[string]float32{text: *logp} // as OpenAI does, the token itself even if it is not among the likeliest
	for _, t := range top {
		m[s.tokenText(t.Token)] = t.LogP
	}
	l.Top = append(l.Top, m)
}

func (l *textLogProbs) events(s *Server, events []policy.Event) {
	for _, e := range events {
		l.add(s, e.Token, &e.Raw, e.Top)
	}
}
