package trainer

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/policy/token"
)

// Conversation writes messages as the policy sees them: by the model's chat template, or, if it has none, as plain lines.
type Conversation struct {
	Tokenizer *token.Tokenizer
	EOS       []int32           // ids that end a turn
	Chat      token.ChatOptions // variables of the template and its clock
}

// Opening are the tokens of the messages that an episode begins with, up to where the policy's first turn begins; tools are for
// the template, nil: none.
func (c *Conversation) Opening(messages []grpo.Message, tools json.RawMessage) ([]int32, error) {
	if !c.Tokenizer.HasChat() {
		return c.Tokenizer.Encode(lines(messages), token.EncodeOptions{AddSpecial: true, Plain: true}), nil
	}
	o := c.Chat
	o.AddGenerationPrompt, o.Tools = true, tools
	_, ids, err := c.Tokenizer.Chat(TokenMessages(messages), o)
	return ids, err
}

// Following are the tokens of messages after a turn of the policy, up to where its next turn begins. ended says that the turn ends
// in an end token, which then is not written again.
//
// What stands between two turns is found in a conversation made up for the purpose, behind the end token of its assistant: turns that
// were sampled are never written anew.
func (c *Conversation) Following(messages []grpo.Message, ended bool) ([]int32, error) {
	if !c.Tokenizer.HasChat() {
		return c.Tokenizer.Encode("\n"+lines(messages), token.EncodeOptions{Plain: true}), nil
	}
	made := []token.Message{{Role: "system", Content: "s"}, {Role: "user", Content: "u"}}
	_, ids, err := c.Tokenizer.Chat(made, c.Chat)
	if err != nil {
		return nil, err
	}
	skip := c.ends(ids)
	o := c.Chat
	o.AddGenerationPrompt = true
	made = append(made, token.Message{Role: "assistant", Content: "a"})
	if _, ids, err = c.Tokenizer.Chat(append(made, TokenMessages(messages)...), o); err != nil {
		return nil, err
	}
	for i, id := range ids {
		if !slices.Contains(c.EOS, id) {
			continue
		}
		if skip--; skip >= 0 {
			continue
		}
		if ended {
			i++
		}
		return slices.Clone(ids[i:]), nil
	}
	return nil, errNoEnd
}

var errNoEnd = errors.New("the chat template closes no turn with an end token, so that nothing can follow one: use a model with a template that does")

// ends counts end tokens.
func (c *Conversation) ends(ids []int32) int {
	n := 0
	for _, id := range ids {
		if slices.Contains(c.EOS, id) {
			n++
		}
	}
	return n
}

// TokenMessages are messages for a chat template.
func TokenMessages(messages []grpo.Message) []token.Message {
	out := make([]token.Message, len(messages))
	for i, m := range messages {
		out[i] = token.Message{Role: m.Role, Content: m.Content}
	}
	return out
}

// lines are messages for a model without a chat template.
func lines(messages []grpo.Message) string {
	var b strings.Builder
	for _, m := range messages {
		fmt.Fprintln(&b, m.Content)
	}
	return b.String()
}
