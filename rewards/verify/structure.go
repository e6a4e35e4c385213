package verify

import (
	"errors"
	"fmt"
	"strings"

	"github.com/rubicon-rl/rubicon/grpo"
)

// thinkFormat is the kind think_format: TRL's think_format_reward. Full credit if the text begins with <think>, has no
// other <think>, and a </think> follows.
type thinkFormat struct{}

func (*thinkFormat) compile(*grpo.Prompt) (Check, error) {
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

func (k *repetition) compile(*grpo.Prompt) (Check, error) {
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
