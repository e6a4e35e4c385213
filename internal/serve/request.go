package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/rubicon-rl/rubicon/policy"
	"github.com/rubicon-rl/rubicon/policy/grammar"
	"github.com/rubicon-rl/rubicon/policy/token"
)

// sampling is what both kinds of completions say of sampling: OpenAI's fields, and vLLM's where OpenAI has none.
type sampling struct {
	Model             string             `json:"model"`
	N                 *int               `json:"n"`
	MaxTokens         *int               `json:"max_tokens"`
	Temperature       *float64           `json:"temperature"`
	TopP              *float64           `json:"top_p"`
	TopK              *int               `json:"top_k"` // 0 or -1: all
	MinP              *float64           `json:"min_p"`
	RepetitionPenalty *float64           `json:"repetition_penalty"`
	Seed              *int64             `json:"seed"`
	Stop              texts              `json:"stop"`
	Stream            bool               `json:"stream"`
	StreamOptions     streamOptions      `json:"stream_options"`
	ReturnTokenIDs    bool               `json:"return_token_ids"`
	PresencePenalty   float64            `json:"presence_penalty"`
	FrequencyPenalty  float64            `json:"frequency_penalty"`
	LogitBias         map[string]float64 `json:"logit_bias"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

// texts is a text or a list of them.
type texts []string

// UnmarshalJSON implements json.Unmarshaler.
func (t *texts) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		if string(b) != "null" {
			*t = texts{one}
		}
		return nil
	}
	var list []string
	err := json.Unmarshal(b, &list)
	*t = list
	return err
}

// chatRequest is the body of /v1/chat/completions.
type chatRequest struct {
	sampling
	Messages            []token.Message `json:"messages"`
	MaxCompletionTokens *int            `json:"max_completion_tokens"`
	LogProbs            bool            `json:"logprobs"`
	TopLogProbs         int             `json:"top_logprobs"`
	Tools               json.RawMessage `json:"tools"`
	ToolChoice          json.RawMessage `json:"tool_choice"`
	ResponseFormat      responseFormat  `json:"response_format"`
	ChatTemplateKwargs  map[string]any  `json:"chat_template_kwargs"`
}

type responseFormat struct {
	Type       string `json:"type"`
	JSONSchema struct {
		Schema json.RawMessage `json:"schema"`
	} `json:"json_schema"`
}

// textRequest is the body of /v1/completions.
type textRequest struct {
	sampling
	Prompt   json.RawMessage `json:"prompt"`
	Echo     bool            `json:"echo"`
	LogProbs *int            `json:"logprobs"`
	BestOf   *int            `json:"best_of"`
	Suffix   string          `json:"suffix"`
}

// read decodes a request's body.
func read[T any](r *http.Request) (*T, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	v := new(T)
	if err := json.Unmarshal(body, v); err != nil {
		var field *json.UnmarshalTypeError
		if errors.As(err, &field) && field.Field != "" {
			name := field.Field[strings.LastIndexByte(field.Field, '.')+1:]
			return nil, wrong(name, "%s is a JSON %s: another type is wanted", name, field.Value)
		}
		return nil, wrong("", "the body is not the JSON object that was expected: %v", err)
	}
	return v, nil
}

const (
	mostChoices  = 128
	mostLogProbs = 20
)

// params checks the sampling fields. Zero values are OpenAI's defaults.
func (q *sampling) params(s *Server) (p policy.SamplingParams, n int, err error) {
	p = policy.SamplingParams{Temperature: 1, TopP: 1, RepetitionPenalty: 1, MaxNewTokens: s.o.MaxTokens, EOS: s.o.EOS, Stop: q.Stop}
	if len(q.Stop) > 0 {
		p.Decode = func(ids []int32) string { return s.o.Tokenizer.Decode(ids, true) }
	}
	n = 1
	if q.N != nil {
		n = *q.N
	}
	if q.MaxTokens != nil {
		p.MaxNewTokens = *q.MaxTokens
	}
	if q.Temperature != nil {
		p.Temperature = float32(*q.Temperature)
	}
	if p.Greedy = p.Temperature == 0; p.Greedy {
		p.Temperature = 1
	}
	set := func(to *float32, from *float64) {
		if from != nil {
			*to = float32(*from)
		}
	}
	set(&p.TopP, q.TopP)
	set(&p.MinP, q.MinP)
	set(&p.RepetitionPenalty, q.RepetitionPenalty)
	if q.TopK != nil && *q.TopK > 0 {
		p.TopK = *q.TopK
	}
	switch {
	case n < 1 || n > mostChoices:
		err = wrong("n", "n is %d: give 1 to %d", n, mostChoices)
	case p.MaxNewTokens > s.o.MaxTokens:
		err = wrong("max_tokens", "max_tokens is %d: this server gives at most %d", p.MaxNewTokens, s.o.MaxTokens)
	case q.PresencePenalty != 0 || q.FrequencyPenalty != 0:
		err = wrong("presence_penalty", "presence_penalty and frequency_penalty are not supported: use repetition_penalty")
	case len(q.LogitBias) > 0:
		err = wrong("logit_bias", "logit_bias is not supported")
	case len(q.Stop) > 16:
		err = wrong("stop", "there are %d stop strings: give at most 16", len(q.Stop))
	}
	return p, n, err
}

// chatPrompt writes the messages by the model's template.
func (q *chatRequest) chatPrompt(s *Server) ([]int32, error) {
	if len(q.Messages) == 0 {
		return nil, wrong("messages", "messages is empty")
	}
	messages := make([]token.Message, len(q.Messages))
	for i, m := range q.Messages {
		var err error
		if messages[i], err = plainContent(m); err != nil {
			return nil, wrong("messages", "message %d: %v", i, err)
		}
	}
	kwargs := map[string]any{}
	for _, of := range []map[string]any{s.o.Kwargs, q.ChatTemplateKwargs} {
		for k, v := range of {
			kwargs[k] = v
		}
	}
	o := token.ChatOptions{AddGenerationPrompt: true, Kwargs: kwargs, Now: s.o.Now()}
	if q.tools() {
		o.Tools = q.Tools
	}
	_, ids, err := s.o.Tokenizer.Chat(messages, o)
	if err != nil {
		return nil, wrong("messages", "%v", err)
	}
	return ids, nil
}

// tools says whether the policy may call tools.
func (q *chatRequest) tools() bool {
	empty := func(b json.RawMessage) bool {
		t := strings.TrimSpace(string(b))
		return t == "" || t == "null" || t == "[]"
	}
	return !empty(q.Tools) && string(q.ToolChoice) != `"none"`
}

// plainContent joins the text parts of a message whose content is a list of parts, which templates of text models do not know.
func plainContent(m token.Message) (token.Message, error) {
	var fields map[string]json.RawMessage
	var parts []struct {
		Type string  `json:"type"`
		Text *string `json:"text"`
	}
	if m.JSON == nil || json.Unmarshal(m.JSON, &fields) != nil || json.Unmarshal(fields["content"], &parts) != nil || parts == nil {
		return m, nil
	}
	text := ""
	for _, p := range parts {
		if p.Type != "text" || p.Text == nil {
			return m, fmt.Errorf("it has a part of type %q: only text is supported", p.Type)
		}
		text += *p.Text
	}
	content, err := json.Marshal(text)
	if err != nil {
		return m, err
	}
	fields["content"], m.Content = content, text
	m.JSON, err = json.Marshal(fields)
	return m, err
}

// constraint is what response_format holds completions to; nil: nothing.
func (q *chatRequest) constraint(s *Server) (policy.Constraint, error) {
	var schema json.RawMessage
	switch q.ResponseFormat.Type {
	case "", "text":
		return nil, nil
	case "json_object":
		schema = json.RawMessage(`{"type": "object"}`)
	case "json_schema":
		schema = q.ResponseFormat.JSONSchema.Schema
	default:
		return nil, wrong("response_format", "response_format.type is %q: use text, json_object or json_schema", q.ResponseFormat.Type)
	}
	g, err := grammar.Compile(schema)
	if err != nil {
		return nil, wrong("response_format", "the JSON Schema cannot be used: %v", err)
	}
	vocab, err := s.vocab()
	if err != nil {
		return nil, err
	}
	c, err := g.For(vocab)
	if err != nil {
		return nil, wrong("response_format", "the JSON Schema cannot be used: %v", err)
	}
	return c, nil
}

// prompts are a text, tokens, or a list of either.
func (s *Server) prompts(raw json.RawMessage, param string, special bool) ([][]int32, error) {
	encode := func(text string) []int32 {
		return s.o.Tokenizer.Encode(text, token.EncodeOptions{AddSpecial: special})
	}
	var one string
	var many []string
	var ids []int32
	var lists [][]int32
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return nil, wrong(param, "%s is missing", param)
	case json.Unmarshal(raw, &one) == nil:
		return [][]int32{encode(one)}, nil
	case json.Unmarshal(raw, &many) == nil && len(many) > 0:
		for _, text := range many {
			lists = append(lists, encode(text))
		}
	case json.Unmarshal(raw, &ids) == nil && len(ids) > 0:
		lists = [][]int32{ids}
	case json.Unmarshal(raw, &lists) == nil && len(lists) > 0:
	default:
		return nil, wrong(param, "%s is neither a text, a list of tokens, nor a list of either", param)
	}
	if len(lists) > mostChoices {
		return nil, wrong(param, "%s has %d parts: give at most %d", param, len(lists), mostChoices)
	}
	for i, l := range lists {
		for _, id := range l {
			if id < 0 || int(id) >= s.o.Model.Config().Vocab {
				return nil, wrong(param, "token %d of part %d is not in the vocabulary", id, i)
			}
		}
	}
	return lists, nil
}
