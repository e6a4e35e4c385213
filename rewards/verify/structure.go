package verify

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rubicon-rl/rubicon/grpo"
)

// jsonText is the kind json: full credit if the whole text is valid JSON.
type jsonText struct {
	Fenced bool     `json:"fenced"` // a ``` or ```json fence around it is allowed
	Keys   []string `json:"keys"`   // it must be an object; the credit is the share of these keys that it has
}

func (k *jsonText) compile(*grpo.Prompt) (check, error) {
	return func(c *grpo.Completion) (float64, string) {
		text := strings.TrimSpace(c.Text)
		if body, ok := strings.CutPrefix(text, "```"); ok && k.Fenced {
			text = strings.TrimSuffix(strings.TrimPrefix(body, "json"), "```")
		}
		if len(k.Keys) == 0 {
			ok := json.Valid([]byte(text))
			return yes(ok), verdict(ok, "valid JSON", "not valid JSON")
		}
		var object map[string]json.RawMessage
		if err := json.Unmarshal([]byte(text), &object); err != nil || object == nil {
			return 0, "not a JSON object"
		}
		missing := slices.DeleteFunc(slices.Clone(k.Keys), func(key string) bool { return object[key] != nil })
		return 1 - float64(len(missing))/float64(len(k.Keys)), fmt.Sprintf("%d keys missing %q", len(missing), missing)
	}, nil
}

// thinkFormat is the kind think_format: TRL's think_format_reward. Full credit if the text begins with <think>, has no
// other <think>, and a </think> follows.
type thinkFormat struct{}

func (*thinkFormat) compile(*grpo.Prompt) (check, error) {
	return func(c *grpo.Completion) (float64, string) {
		rest, ok := strings.CutPrefix(c.Text, "<think>")
		ok = ok && !strings.Contains(rest, "<think>") && strings.Contains(rest, "</think>")
		return yes(ok), verdict(ok, "as asked", "not <think>...</think> and an answer")
	}, nil
}

// repetition gives as credit the share of token n-grams that occurred before in the completion. With a negative weight
// it is a penalty: weight -1 (clip: signed) is TRL's get_repetition_penalty_reward with max_penalty -1.
type repetition struct {
	NGram int `json:"ngram"`
}

func (k *repetition) compile(*grpo.Prompt) (check, error) {
	if k.NGram < 1 {
		return nil, errors.New("ngram must be at least 1")
	}
	return func(c *grpo.Completion) (float64, string) {
		tokens := own(c)
		total := len(tokens) - k.NGram + 1
		if total < 1 {
			return 0, "too short to repeat anything"
		}
		seen := map[string]bool{}
		for i := range total {
			seen[fmt.Sprint(tokens[i:i+k.NGram])] = true
		}
		credit := 1 - float64(len(seen))/float64(total)
		return credit, fmt.Sprintf("%d of %d %d-grams repeated", total-len(seen), total, k.NGram)
	}, nil
}

// own lists the tokens that the policy itself wrote.
func own(c *grpo.Completion) []int32 {
	if c.Mask == nil {
		return c.Tokens
	}
	var tokens []int32
	for i, t := range c.Tokens {
		if c.Mask[i] {
			tokens = append(tokens, t)
		}
	}
	return tokens
}
