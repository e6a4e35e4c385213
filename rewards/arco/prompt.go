package arco

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/rubicon-rl/rubicon/policy/token"
)

// Episode is what the rubric model sees of one: its task, and in order what the agent did and what it was shown then.
type Episode struct {
	ID     string
	Task   string
	Steps  []Move
	Reward float64 // R, in [0,1]
}

// Move is a step of an episode.
type Move struct{ Action, Observation string }

// role is the system message.
const role = `You judge single steps of an agent that works on a task. For the step that you are shown you write criteria by which it can be told whether it was a good one: short phrases about this very step, such as what a good query here has to name, or what must be known before an answer may be given. You answer with JSON and nothing else.`

// prompt are the tokens after which the rubric model writes the criteria of step k. What steps have in common stands first.
func (m *Model) prompt(e Episode, k int) ([]int32, error) {
	text := m.describe(e, k)
	if !m.tok.HasChat() {
		return m.tok.Encode(role+"\n\n"+text+"\n", token.EncodeOptions{AddSpecial: true, Plain: true}), nil
	}
	messages := []token.Message{{Role: "system", Content: role}, {Role: "user", Content: text}}
	_, ids, err := m.tok.Chat(messages, token.ChatOptions{AddGenerationPrompt: true, Kwargs: map[string]any{"enable_thinking": false}})
	return ids, err
}

func (m *Model) describe(e Episode, k int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Task:\n%s\n", strings.TrimSpace(e.Task))
	if m.o.Prefix {
		for i, s := range e.Steps[:k] {
			fmt.Fprintf(&b, "\nStep %d: %s\nThe agent was shown: %s\n", i+1, s.Action, strings.TrimSpace(s.Observation))
		}
	}
	fmt.Fprintf(&b, "\nStep to judge: %s\n", e.Steps[k].Action)
	fmt.Fprintf(&b, "\nWrite exactly %d criteria: {\"criteria\": [\"...\"]}", m.o.K)
	return b.String()
}

// encode are the tokens of text in which nothing stands for a special token.
func (m *Model) encode(text string) []int32 {
	return m.tok.Encode(text, token.EncodeOptions{Plain: true})
}

// writeRubric is how criteria are written.
func writeRubric(criteria []string) (string, error) {
	text, err := json.Marshal(map[string][]string{"criteria": criteria})
	return string(text), err
}
