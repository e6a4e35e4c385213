package arco

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/rubicon-rl/rubicon/grpo"
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
type Move struct {
	Action, Observation string
	Verdict             grpo.Verdict // which diagnostics alone see
}

// role is the system message; writing follows it if criteria are to be written.
const (
	role    = `You judge single steps of an agent that works on a task.`
	writing = ` For the step that you are shown you write criteria by which it can be told whether it was a good one: short phrases about this very step, such as what a good query here has to name, or what must be known before an answer may be given. You answer with JSON and nothing else.`
)

// prompt are the tokens after which the rubric model writes the criteria of step k. What steps have in common stands first. Where the
// model's context leaves no room for the criteria, the oldest steps are left out, and then the beginning; cut says so.
func (m *Model) prompt(e Episode, k int) (ids []int32, cut bool, err error) {
	room := m.lm.Config().MaxPositions - m.reserve()
	for from := 0; ; from++ {
		ids, err = m.render(m.describe(e, from, k))
		switch {
		case err != nil || len(ids) <= room:
			return ids, from > 0, err
		case !m.o.Prefix || from >= k:
			return ids[len(ids)-room:], true, nil
		}
	}
}

// reserve is how many tokens may come behind a prompt.
func (m *Model) reserve() int {
	switch m.o.Criteria {
	case fixed:
		return len(m.fixed)
	case none:
		return 0
	}
	return m.o.MaxTokens
}

// render are the tokens of a prompt with that text.
func (m *Model) render(text string) ([]int32, error) {
	system := role
	if m.o.Criteria != none {
		system += writing
	}
	if !m.tok.HasChat() {
		return m.tok.Encode(system+"\n\n"+text+"\n", token.EncodeOptions{AddSpecial: true, Plain: true}), nil
	}
	messages := []token.Message{{Role: "system", Content: system}, {Role: "user", Content: text}}
	_, ids, err := m.tok.Chat(messages, token.ChatOptions{AddGenerationPrompt: true, Kwargs: map[string]any{"enable_thinking": false}})
	return ids, err
}

// describe shows step k, and the steps before it without the first ones.
func (m *Model) describe(e Episode, first, k int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Task:\n%s\n", indented(e.Task))
	if m.o.Prefix {
		for i := first; i < k; i++ {
			fmt.Fprintf(&b, "\nStep %d: %s\nThe agent was shown: %s\n", i+1, indented(e.Steps[i].Action), indented(e.Steps[i].Observation))
		}
	}
	fmt.Fprintf(&b, "\nStep to judge: %s\n", indented(e.Steps[k].Action))
	if m.o.Criteria == none {
		return b.String()
	}
	fmt.Fprintf(&b, "\nWrite exactly %d criteria: {\"criteria\": [\"...\"]}", m.o.K)
	return b.String()
}

// lineEnds are what a model may take for the end of a line.
var lineEnds = regexp.MustCompile(`\r\n|[\n\r\v\f\x{85}\x{2028}\x{2029}]`)

// indented is text whose lines but the first are indented, so that none can pass for one of describe's own: an agent must not write
// the steps that it is judged by.
func indented(text string) string {
	return lineEnds.ReplaceAllString(strings.TrimSpace(text), "\n  ")
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
