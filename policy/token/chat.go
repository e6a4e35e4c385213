package token

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nikolalohinski/gonja/v2/exec"
)

// Message is one turn of a chat. In JSON it is any object: what it holds besides role and content (tool_calls,
// reasoning_content, ...) is kept, in order, for the template.
type Message struct {
	Role    string
	Content string
	JSON    json.RawMessage // the whole message as it was read; nil: role and content are all there is
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *Message) UnmarshalJSON(b []byte) error {
	var known struct {
		Role    *string         `json:"role"`
		Content json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(b, &known); err != nil {
		return fmt.Errorf("a message is an object with a role: %w", err)
	}
	if known.Role == nil {
		return errors.New("a message has no role")
	}
	*m = Message{Role: *known.Role, JSON: slices.Clone(b)}
	_ = json.Unmarshal(known.Content, &m.Content) // lists of parts and null are for the template
	return nil
}

// MarshalJSON implements json.Marshaler.
func (m Message) MarshalJSON() ([]byte, error) {
	if m.JSON != nil {
		return m.JSON, nil
	}
	return json.Marshal(struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}{m.Role, m.Content})
}

// ChatOptions are what a chat template sees besides the messages, and how its text is encoded.
type ChatOptions struct {
	AddGenerationPrompt bool            // end with the start of the assistant's turn
	Tools               json.RawMessage // list of tools; nil: none
	Kwargs              map[string]any  // more variables of the template, such as enable_thinking; values as for encoding/json
	Now                 time.Time       // what strftime_now formats; a template that asks for it unset is an error
	// TrustContent makes tokens of added tokens that stand inside messages, as transformers' apply_chat_template does
	// unless it is told otherwise. By default only what the template itself writes becomes such tokens.
	TrustContent bool
}

// Chat renders messages with the model's chat template, as transformers' apply_chat_template does, and encodes the
// text. An added token that stands inside the messages, tools or Kwargs is encoded as the text that it is; everything
// else is encoded as Encode does with the whole text, across the borders of template and content.
//
// Which parts of the text are foreign is found by rendering once more with marks around the added tokens in the
// messages. If that changes more than the marks, because the template counts or cuts characters, Chat returns an error
// rather than guess; see ChatOptions.TrustContent.
func (t *Tokenizer) Chat(messages []Message, o ChatOptions) (text string, ids []int32, err error) {
	chosen, err := t.template(len(o.Tools) > 0)
	if err != nil {
		return "", nil, err
	}
	in, err := newChatInput(messages, o)
	if err == nil && chosen.err != nil {
		err = chosen.err
	}
	var foreign []span
	if err == nil {
		text, foreign, err = t.render(chosen, in, o)
	}
	if err != nil {
		return "", nil, fmt.Errorf("chat template in %s: %w", chosen.file, err)
	}
	return text, t.encode(nil, text, foreign), nil
}

// HasChat tells whether there is a template for Chat.
func (t *Tokenizer) HasChat() bool { return len(t.templates) > 0 }

// template picks the template for chats with or without tools.
func (t *Tokenizer) template(tools bool) (*template, error) {
	if tools && t.templates["tool_use"] != nil {
		return t.templates["tool_use"], nil
	}
	if d := t.templates["default"]; d != nil {
		return d, nil
	}
	if len(t.templates) > 0 {
		return nil, fmt.Errorf("the chat templates of %s have no default: they are %q", t.from, slices.Sorted(maps.Keys(t.templates)))
	}
	return nil, fmt.Errorf("%s has no chat template: add a %s", t.from, templateFile)
}

// render returns the text of a chat and the parts of it that may not become added tokens.
func (t *Tokenizer) render(chosen *template, in *chatInput, o ChatOptions) (text string, foreign []span, err error) {
	guarded := false
	variables, err := in.variables(t.named, func(s string) string {
		guarded = guarded || !o.TrustContent && len(t.guard.spans(s)) > 0
		return s
	})
	if err != nil {
		return "", nil, err
	}
	text, err = render(chosen.compiled, variables, o.Now)
	if err != nil || !guarded {
		return text, nil, err
	}
	foreign, err = t.foreign(chosen, in, o.Now, text)
	return text, foreign, err
}

// foreign finds the parts of a rendered text that stem from added tokens, or parts of one, in the input.
func (t *Tokenizer) foreign(chosen *template, in *chatInput, now time.Time, text string) ([]span, error) {
	used := []string{chosen.source}
	if _, err := in.variables(t.named, func(s string) string { used = append(used, s); return s }); err != nil {
		return nil, err
	}
	m, ok := unusedMarks(used...)
	if !ok {
		return nil, errors.New("the messages use all noncharacters from U+FDD0 to U+FDEF: remove some")
	}
	compiled, err := compile(chosen.source, m)
	if err != nil {
		return nil, err
	}
	variables, err := in.variables(t.named, func(s string) string { return m.around(s, t.guard.spans(s)) })
	if err != nil {
		return nil, err
	}
	marked, err := render(compiled, variables, now)
	found := m.text(marked)
	if err != nil || found.clean != text {
		return nil, errors.New("special tokens stand inside the messages, and the template changes messages in a way that hides where they go: remove them, or set ChatOptions.TrustContent to let them become tokens")
	}
	return found.spans(), nil
}

// chatInput is the foreign input of a template, as JSON.
type chatInput struct {
	messages []json.RawMessage
	tools    json.RawMessage
	kwargs   map[string]json.RawMessage
	prompt   bool
}

func newChatInput(messages []Message, o ChatOptions) (*chatInput, error) {
	if len(messages) == 0 {
		return nil, errors.New("a chat needs a message")
	}
	in := &chatInput{tools: o.Tools, kwargs: map[string]json.RawMessage{}, prompt: o.AddGenerationPrompt}
	for i, m := range messages {
		b, err := m.MarshalJSON()
		if err == nil && !bytes.HasPrefix(bytes.TrimLeft(b, " \t\r\n"), []byte("{")) {
			err = errors.New("it is no object")
		}
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", i, err)
		}
		in.messages = append(in.messages, b)
	}
	for name, value := range o.Kwargs {
		b, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("template variable %s: %w", name, err)
		}
		in.kwargs[name] = b
	}
	return in, nil
}

// variables are what a template sees, each string of the input passed through text.
func (in *chatInput) variables(named map[string]string, text func(string) string) (map[string]any, error) {
	out := map[string]any{"tools": nil, "documents": nil, "add_generation_prompt": in.prompt}
	for name, token := range named {
		out[name] = token
	}
	messages := list{}
	for i, raw := range in.messages {
		value, err := decodeValue(raw, text)
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", i, err)
		}
		messages = append(messages, tidy(value.(*exec.Dict)))
	}
	out["messages"] = messages
	if len(in.tools) > 0 {
		tools, err := decodeValue(in.tools, text)
		if err != nil {
			return nil, fmt.Errorf("tools: %w", err)
		}
		out["tools"] = tools
	}
	for name, raw := range in.kwargs {
		value, err := decodeValue(raw, text)
		if err != nil {
			return nil, fmt.Errorf("template variable %s: %w", name, err)
		}
		out[name] = value
	}
	return out, nil
}

// tidy does to a message what transformers does before a template sees it: keys without a value go, and reasoning is
// found under its old and new names.
func tidy(message *exec.Dict) *exec.Dict {
	out := exec.NewDict()
	byName := map[string]*exec.Pair{}
	for _, p := range message.Pairs {
		if !p.Value.IsNil() {
			out.Pairs = append(out.Pairs, p)
			byName[p.Key.String()] = p
		}
	}
	for _, name := range []string{"reasoning_content", "thinking", "reasoning"} {
		reasoning := byName[name]
		if reasoning == nil {
			continue
		}
		if byName["thinking"] == nil {
			first := &exec.Pair{Key: exec.AsValue("thinking"), Value: reasoning.Value}
			out.Pairs = append([]*exec.Pair{first}, out.Pairs...)
		}
		if byName["reasoning_content"] == nil {
			out.Pairs = append(out.Pairs, &exec.Pair{Key: exec.AsValue("reasoning_content"), Value: reasoning.Value})
		}
		break
	}
	return out
}
