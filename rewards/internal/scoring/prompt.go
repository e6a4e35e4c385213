package scoring

import (
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"text/template"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/rewards/criteria"
)

//go:embed prompts
var prompts embed.FS

// promptFiles names each mode's template. The number is raised when the words change, so that runs can be told apart.
var promptFiles = map[string]string{
	Explicit: "explicit.v1.tmpl", PerCriterion: "explicit.v1.tmpl", Implicit: "implicit.v1.tmpl", Goal: "goal.v1.tmpl", GoalRef: "goal.v1.tmpl",
}

// view is what a template sees. Conversation, Completion and Reference are fenced.
type view struct {
	Conversation, Completion string
	Reference                string // empty: there is none
	Criteria                 []shown
	Keys                     string // of the reply, in order
	Goal                     string
	Max                      int // of the one number
}

// shown is a criterion as a template sees it.
type shown struct {
	ID, Text string
	Scores   string // "0 or 1", "0 to 5"
	Max      int
	Weight   float64
	Defect   bool // the text names a flaw, whose absence earns the credit
}

// loadPrompt reads the mode's template, or the one that the options name, and tries it.
func loadPrompt(o Options) (*template.Template, error) {
	var text []byte
	var err error
	name := "template of mode " + o.Mode
	if o.Prompt != "" {
		name = "prompt " + o.Prompt
		text, err = os.ReadFile(o.Prompt)
	} else {
		text, err = prompts.ReadFile("prompts/" + promptFiles[o.Mode])
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	t, err := template.New("").Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if err := tryPrompt(t, o); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return t, nil
}

// tryPrompt makes sure that a template has its two parts and shows what the judge must see.
func tryPrompt(t *template.Template, o Options) error {
	for _, part := range []string{"system", "user"} {
		if t.Lookup(part) == nil {
			return fmt.Errorf(`there is no {{define "%s"}}: a template defines system and user`, part)
		}
	}
	v := view{Conversation: "\x01", Completion: "\x02", Reference: "\x03", Keys: "\x04", Goal: "\x05", Max: scalarScore,
		Criteria: []shown{{ID: "a", Text: "\x06", Scores: "0 or 1", Max: 1}}}
	system, user, err := render(t, v)
	if err != nil {
		return err
	}
	need := []string{"Conversation", v.Conversation, "Completion", v.Completion}
	if o.ReferenceColumn != "" {
		need = append(need, "Reference", v.Reference)
	}
	if o.ByGoal() {
		need = append(need, "Goal", v.Goal)
	} else {
		need = append(need, "Text}} of {{.Criteria", v.Criteria[0].Text)
	}
	for i := 0; i < len(need); i += 2 {
		if !strings.Contains(system+user, need[i+1]) {
			return fmt.Errorf("it does not show {{.%s}}, which the judge must see", need[i])
		}
	}
	return nil
}

func render(t *template.Template, v view) (system, user string, err error) {
	var parts [2]strings.Builder
	for i, name := range []string{"system", "user"} {
		if err := t.ExecuteTemplate(&parts[i], name, v); err != nil {
			return "", "", err
		}
	}
	return parts[0].String(), parts[1].String(), nil
}

// show makes criteria ready for a template. A text of several lines is indented, so that no line of it looks like another
// criterion.
func (s *Scorer) show(list []criteria.Criterion) []shown {
	out := make([]shown, len(list))
	for i, c := range list {
		most := s.max(c)
		scores := fmt.Sprintf("0 to %d", most)
		if most == 1 {
			scores = "0 or 1"
		}
		text := strings.ReplaceAll(strings.TrimSpace(c.Text), "\n", "\n    ")
		out[i] = shown{c.ID, text, scores, most, c.Weight, c.Polarity == criteria.Negative}
	}
	return out
}

// reference is the row's reference answer; empty: it has none.
func (s *Scorer) reference(p *grpo.Prompt) (string, error) {
	if s.options.ReferenceColumn == "" {
		return "", nil
	}
	value, there := p.Columns[s.options.ReferenceColumn]
	if !there {
		return "", fmt.Errorf("the row has no column %s: set reference_column to the one with the reference answer, or write null where there is none",
			s.options.ReferenceColumn)
	}
	switch v := value.(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	default:
		text, err := json.Marshal(v)
		if err != nil {
			return "", fmt.Errorf("column %s: %w", s.options.ReferenceColumn, err)
		}
		return string(text), nil
	}
}

// max is the highest score of a criterion.
func (s *Scorer) max(c criteria.Criterion) int { return cmp.Or(c.MaxScore, s.options.MaxScore, 1) }
