package rare

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/template"
	"unicode"
	"unicode/utf8"

	"github.com/rubicon-rl/rubicon/rewards/criteria"
	"github.com/rubicon-rl/rubicon/rewards/internal/scoring"
)

// How many characters are asked for, so that a weak model that is held to the schema comes to an end, and kept.
const (
	maxProposal   = 400
	maxDifference = 300
)

// reply is the form of a judge's answer: replacements for some of the labels.
type reply struct {
	labels   []string
	polarity string // the configured one
}

// update is one replacement in an answer.
type update struct {
	Replaces   string `json:"replaces"`
	Difference string `json:"difference"`
	Polarity   string `json:"polarity"`
	Criterion  string `json:"criterion"`

	label int // place of Replaces among the labels
}

// polarities are those that a replacement may have.
func (r reply) polarities() []string {
	if r.polarity == polarityBoth {
		return []string{criteria.Negative, criteria.Positive}
	}
	return []string{r.polarity}
}

// schema is the JSON Schema of an answer. The difference comes before the criterion, so that it is thought of first.
func (r reply) schema() json.RawMessage {
	names := func(list []string) []byte {
		text, _ := json.Marshal(list) // of texts
		return text
	}
	return fmt.Appendf(nil, `{"type":"object","properties":{"updates":{"type":"array","maxItems":%d,"items":{"type":"object",`+
		`"properties":{"replaces":{"type":"string","enum":%s},"difference":{"type":"string","maxLength":%d},`+
		`"polarity":{"type":"string","enum":%s},"criterion":{"type":"string","maxLength":%d}},`+
		`"required":["replaces","difference","polarity","criterion"],"additionalProperties":false}}},`+
		`"required":["updates"],"additionalProperties":false}`,
		len(r.labels), names(r.labels), maxDifference, names(r.polarities()), maxProposal)
}

// read returns an answer's updates in the order of their places. The error says what the judge must do otherwise.
func (r reply) read(answer string) ([]update, error) {
	var in struct {
		Updates []update `json:"updates"`
	}
	d := json.NewDecoder(strings.NewReader(answer))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return nil, fmt.Errorf(`the reply is not JSON of the form {"updates": [...]}: %w`, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("the reply goes on after its JSON: write nothing else")
	}
	if in.Updates == nil {
		return nil, errors.New(`the reply has no "updates": write {"updates": []} if there is nothing to replace`)
	}
	seen := map[string]bool{}
	for i := range in.Updates {
		u := &in.Updates[i]
		if err := r.check(u); err != nil {
			return nil, fmt.Errorf("update %d: %w", i+1, err)
		}
		if seen[u.Replaces] {
			return nil, fmt.Errorf("update %d: %s has a replacement already: write one for each", i+1, u.Replaces)
		}
		seen[u.Replaces] = true
	}
	slices.SortFunc(in.Updates, func(a, b update) int { return a.label - b.label })
	return in.Updates, r.mixed(in.Updates)
}

// check looks at one update by itself and tidies its texts.
func (r reply) check(u *update) error {
	u.label = slices.Index(r.labels, u.Replaces)
	u.Criterion, u.Difference = clean(u.Criterion), clean(u.Difference)
	n := utf8.RuneCountInString(u.Criterion)
	switch {
	case u.label < 0:
		return fmt.Errorf("replaces %q, which is not to be replaced: use one of %s", u.Replaces, strings.Join(r.labels, ", "))
	case !slices.Contains(r.polarities(), u.Polarity):
		return fmt.Errorf("polarity is %q: use %s", u.Polarity, strings.Join(r.polarities(), " or "))
	case !strings.ContainsFunc(u.Criterion, unicode.IsLetter), slices.Contains([]string{polarityNegative, polarityPositive, polarityBoth}, strings.ToLower(u.Criterion)):
		return errors.New("the criterion is empty: leave the update out if there is nothing to grade")
	case n > maxProposal:
		return fmt.Errorf("the criterion has %d characters: use at most %d", n, maxProposal)
	case !strings.Contains(scoring.Fence(u.Criterion), u.Criterion): // it would stand outside of fences when it is used
		return errors.New("the criterion has marks of a fence or a chat template: use plain words")
	}
	if long := []rune(u.Difference); len(long) > maxDifference {
		u.Difference = string(long[:maxDifference])
	}
	return nil
}

// mixed checks that both polarities occur where they must.
func (r reply) mixed(list []update) error {
	if r.polarity != polarityBoth || len(list) < 2 ||
		slices.ContainsFunc(list, func(u update) bool { return u.Polarity != list[0].Polarity }) {
		return nil
	}
	return fmt.Errorf("all %d updates are %s: with two or more, both polarities must occur", len(list), list[0].Polarity)
}

// clean puts a text on one line and drops what does not print.
func clean(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			return -1
		}
		return r
	}, text)
	return strings.Join(strings.Fields(text), " ")
}

//go:embed prompts/update.v1.tmpl
var updatePrompt string

// openTemplate reads a file's templates system and user, or the built-in ones, and tries them.
func openTemplate(path string) (*template.Template, error) {
	text, name := updatePrompt, "built-in update prompt"
	if path != "" {
		b, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("update_prompt: %w", err)
		}
		text, name = string(b), "update_prompt "+path
	}
	t, err := template.New("update").Option("missingkey=error").Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	example := request{
		Criteria: []graded{{Label: "c1"}}, Earlier: []string{"-"}, Requests: []asking{{Answers: []answer{{Number: 1}}}},
	}
	if _, _, err := fill(t, example); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return t, nil
}

// fill executes the templates system and user.
func fill(t *template.Template, r request) (system, user string, err error) {
	var a, b bytes.Buffer
	if err := errors.Join(t.ExecuteTemplate(&a, "system", r), t.ExecuteTemplate(&b, "user", r)); err != nil {
		return "", "", err
	}
	return strings.TrimSpace(a.String()), strings.TrimSpace(b.String()), nil
}
