package data

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/rubicon-rl/rubicon/grpo"
)

// prompt reads a row as a prompt to answer.
func (o Options) prompt(id string, row map[string]any) (grpo.Prompt, error) {
	p := grpo.Prompt{ID: id}
	column := o.PromptColumn
	if row[column] == nil && row[o.MessagesColumn] != nil {
		column = o.MessagesColumn
	}
	if row[column] == nil && o.NoPrompt {
		p.Columns = row
		return p, nil
	}
	text, messages, err := textOrMessages(row, column)
	if err != nil {
		return p, err
	}
	p.Text, p.Messages = o.asChat(text, messages)
	if n := len(p.Messages); n > 0 && p.Messages[n-1].Role == "assistant" {
		return p, fmt.Errorf("%s ends with an assistant's message, want one to answer", column)
	}
	p.Columns = without(row, column)
	return p, nil
}

// example reads a row as something to learn.
func (o Options) example(id string, row map[string]any) (Example, error) {
	if row[o.CompletionColumn] == nil && row[o.MessagesColumn] != nil {
		_, messages, err := textOrMessages(row, o.MessagesColumn)
		if err == nil && messages == nil {
			err = fmt.Errorf("%s is text, want a list of {role, content}", o.MessagesColumn)
		}
		if err == nil {
			_, messages = o.asChat("", messages)
			err = learnable(messages, o.MessagesColumn)
		}
		return Example{ID: id, Messages: messages, Columns: without(row, o.MessagesColumn)}, err
	}
	if row[o.CompletionColumn] == nil {
		return Example{}, fmt.Errorf("has neither %s nor %s", o.CompletionColumn, o.MessagesColumn)
	}
	text, prompt, err := textOrMessages(row, o.PromptColumn)
	if err != nil {
		return Example{}, err
	}
	e := Example{ID: id, Columns: without(row, o.PromptColumn, o.CompletionColumn)}
	e.Prompt, prompt = o.asChat(text, prompt)
	text, completion, err := textOrMessages(row, o.CompletionColumn)
	switch {
	case err != nil:
		return e, err
	case prompt == nil && completion != nil:
		return e, fmt.Errorf("%s is a conversation but %s is text: make both the same, or set data.chat", o.CompletionColumn, o.PromptColumn)
	case prompt == nil:
		e.Completion = text
		return e, nil
	case completion == nil:
		completion = []grpo.Message{{Role: "assistant", Content: text}}
	}
	e.Messages, e.Given = append(prompt, completion...), len(prompt)
	return e, learnable(completion, o.CompletionColumn)
}

// asChat makes a conversation of text if that is wanted, and puts the system prompt before it.
func (o Options) asChat(text string, messages []grpo.Message) (string, []grpo.Message) {
	if messages == nil && !o.Chat && o.SystemPrompt == "" {
		return text, nil
	}
	if messages == nil {
		messages = []grpo.Message{{Role: "user", Content: text}}
	}
	if o.SystemPrompt != "" && messages[0].Role != "system" {
		messages = append([]grpo.Message{{Role: "system", Content: o.SystemPrompt}}, messages...)
	}
	return "", messages
}

// learnable returns an error unless an assistant says something in messages.
func learnable(messages []grpo.Message, column string) error {
	for _, m := range messages {
		if m.Role == "assistant" {
			return nil
		}
	}
	return fmt.Errorf("%s has no assistant's message to learn", column)
}

// textOrMessages reads a column that is text, or a conversation (then the messages are not nil).
func textOrMessages(row map[string]any, column string) (string, []grpo.Message, error) {
	switch v := row[column].(type) {
	case nil:
		return "", nil, fmt.Errorf("has no %s", column)
	case string:
		if strings.TrimSpace(v) == "" {
			return "", nil, fmt.Errorf("%s is empty", column)
		}
		return v, nil, nil
	case []any:
		if len(v) == 0 {
			return "", nil, fmt.Errorf("%s is empty", column)
		}
		messages := make([]grpo.Message, len(v))
		for i, item := range v {
			m, err := message(item)
			if err != nil {
				return "", nil, fmt.Errorf("%s: message %d: %w", column, i+1, err)
			}
			messages[i] = m
		}
		return "", messages, nil
	default:
		return "", nil, fmt.Errorf("%s is %s, want text or a list of {role, content}", column, kind(v))
	}
}

// message reads one turn. What it cannot keep is an error, so that nothing of a conversation is lost in silence.
func message(v any) (grpo.Message, error) {
	fields, ok := v.(map[string]any)
	if !ok {
		return grpo.Message{}, fmt.Errorf("is %s, want {role, content}", kind(v))
	}
	role, ok := fields["role"].(string)
	if !ok || role == "" {
		return grpo.Message{}, errors.New("has no role")
	}
	content, ok := fields["content"].(string)
	if !ok {
		return grpo.Message{}, fmt.Errorf("content is %s, want text", kind(fields["content"]))
	}
	for key, x := range fields {
		if key != "role" && key != "content" && x != nil {
			return grpo.Message{}, fmt.Errorf("%s is not supported in a message, only role and content", key)
		}
	}
	return grpo.Message{Role: role, Content: content}, nil
}

func without(row map[string]any, columns ...string) map[string]any {
	out := maps.Clone(row)
	for _, c := range columns {
		delete(out, c)
	}
	return out
}

// kind is what people call the type of a value.
func kind(v any) string {
	switch v.(type) {
	case nil:
		return "nothing"
	case bool:
		return "true or false"
	case string:
		return "text"
	case int64, float64, json.Number:
		return "a number"
	case []any:
		return "a list"
	}
	return "an object"
}
