package token

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"
)

// Call is a call of a function that a model wrote.
type Call struct {
	Name      string
	Arguments json.RawMessage
	Err       error // it cannot be read; then there is nothing else
}

var (
	callMarks = regexp.MustCompile(`(?s)<tool_call>(.*?)(?:</tool_call>|\z)`)
	thinking  = regexp.MustCompile(`(?is)<think>.*?</think>`)
)

// WithoutThinking is what a model said but for its thoughts.
func WithoutThinking(said string) string {
	return strings.TrimSpace(thinking.ReplaceAllString(said, ""))
}

// ReadCalls finds the calls in what a model said, in order, and what stands before them; none: it is an answer. Calls are read as models
// write them: JSON between <tool_call> marks (Qwen), or a turn that is one JSON object (Llama). Thinking is left out.
func ReadCalls(said string) (before string, calls []Call) {
	said = WithoutThinking(said)
	var bodies []string
	if at := callMarks.FindStringIndex(said); at != nil {
		before = strings.TrimSpace(said[:at[0]])
	}
	for _, m := range callMarks.FindAllStringSubmatch(said, -1) {
		bodies = append(bodies, m[1])
	}
	if bodies == nil && strings.HasPrefix(strings.TrimPrefix(said, "<|python_tag|>"), "{") {
		bodies = []string{strings.TrimPrefix(said, "<|python_tag|>")}
	}
	for _, body := range bodies {
		calls = append(calls, readCall(body))
	}
	return before, calls
}

func readCall(body string) Call {
	var c struct {
		Name       string          `json:"name"`
		Arguments  json.RawMessage `json:"arguments"`
		Parameters json.RawMessage `json:"parameters"` // Llama's name for arguments
	}
	if err := json.Unmarshal([]byte(strings.TrimSpace(body)), &c); err != nil || c.Name == "" {
		return Call{Err: errors.New(`a call is {"name": ..., "arguments": {...}}`)}
	}
	if c.Arguments == nil {
		c.Arguments = c.Parameters
	}
	var text string
	if json.Unmarshal(c.Arguments, &text) == nil { // OpenAI's API has them as JSON in a string
		c.Arguments = json.RawMessage(text)
	}
	return Call{Name: c.Name, Arguments: c.Arguments}
}
