package env

import (
	"regexp"
	"strings"

	"github.com/rubicon-rl/rubicon/policy/token"
)

// Action is what the policy does in a turn of the environment qa.
type Action struct {
	Thought string // what stood behind Thought:, if anything
	Text    string // the action as it was written
	Kind    string // Search or Finish; "": it is neither
	Arg     string
}

// The forms of actions. An argument ends at the first ] or ), in its line.
var (
	actionMark = regexp.MustCompile(`(?s)Action:(.*)`)
	thought    = regexp.MustCompile(`(?s)Thought:(.*?)(?:Action:|(?:Search|Finish)\[|\z)`)
	inLine     = regexp.MustCompile(`(?:Search|Finish)\[.*?\]|(?:Search|Finish)\[.*?\)`)
	action     = regexp.MustCompile(`(Search|Finish)\[(.+?)[\])]`)
)

// ParseAction reads what the policy said, in the forms that ARCO's public code takes: an action by itself, behind Action:, or in the
// last line that has one. Thinking is dropped.
func ParseAction(said string) Action {
	said = token.WithoutThinking(said)
	var a Action
	if m := thought.FindStringSubmatch(said); m != nil {
		a.Thought = strings.TrimSpace(m[1])
	}
	if m := actionMark.FindStringSubmatch(said); m != nil {
		a.Text = strings.TrimSpace(m[1])
	} else {
		lines := strings.Split(said, "\n")
		for i := len(lines) - 1; i >= 0 && a.Text == ""; i-- {
			a.Text = inLine.FindString(lines[i])
		}
	}
	if m := action.FindStringSubmatch(a.Text); m != nil {
		a.Kind, a.Arg = m[1], strings.TrimSpace(m[2])
	}
	if a.Arg == "" {
		a.Kind = ""
	}
	return a
}
