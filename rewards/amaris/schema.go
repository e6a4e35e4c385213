package amaris

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rubicon-rl/rubicon/rewards/internal/scoring"
)

// schema is the part of JSON Schema that the stages' schemas use. Lengths of texts are asked for, but a longer text is
// cut rather than refused.
type schema struct {
	Type       string
	Properties map[string]*schema
	Required   []string
	Items      *schema
	MaxItems   *int
	MaxLength  int
	Enum       []string
}

// form is the form of a stage's replies.
type form struct {
	text   json.RawMessage
	schema *schema
}

// openForms reads the schemas. meta has summarize's.
func openForms() (map[string]form, error) {
	out := map[string]form{}
	for _, stage := range []string{stageAnalyze, stageSummarize, stageQuery, stageUpdate} {
		text, err := files.ReadFile("schemas/" + stage + ".json")
		if err != nil {
			return nil, err
		}
		f := form{schema: &schema{}}
		var packed bytes.Buffer
		if err := errors.Join(json.Compact(&packed, text), json.Unmarshal(text, f.schema)); err != nil {
			return nil, fmt.Errorf("schema of %s: %w", stage, err)
		}
		f.text = packed.Bytes()
		out[stage] = f
	}
	out[stageMeta] = out[stageSummarize]
	return out, nil
}

// read decodes an answer into dst, strictly: it must have the form's fields, no others, and their types. Texts lose
// what does not print. The error says what the judge must do otherwise.
func (f form) read(answer string, dst any) error {
	d := json.NewDecoder(strings.NewReader(answer))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return fmt.Errorf("the reply is not JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("the reply goes on after its JSON: write nothing else")
	}
	tidy, err := f.schema.check("the reply", value)
	if err != nil {
		return err
	}
	text, err := json.Marshal(tidy)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, dst)
}

// check returns value with tidied texts, or what is wrong with it.
func (s *schema) check(at string, value any) (any, error) {
	switch s.Type {
	case "object":
		return s.object(at, value)
	case "array":
		return s.array(at, value)
	case "boolean":
		if _, ok := value.(bool); !ok {
			return nil, fmt.Errorf("%s is not true or false", at)
		}
	case "number":
		n, ok := value.(json.Number)
		if !ok {
			return nil, fmt.Errorf("%s is not a number", at)
		}
		if _, err := n.Float64(); err != nil {
			return nil, fmt.Errorf("%s is not a number of a sensible size", at)
		}
	case "string":
		text, ok := value.(string)
		if !ok {
			return nil, fmt.Errorf("%s is not a text", at)
		}
		if len(s.Enum) > 0 && !slices.Contains(s.Enum, text) {
			return nil, fmt.Errorf("%s is %q: use one of %s", at, clip(text, 60), strings.Join(s.Enum, ", "))
		}
		return clip(clean(text), max(s.MaxLength, 64)), nil
	}
	return value, nil
}

func (s *schema) object(at string, value any) (any, error) {
	fields, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s is not an object", at)
	}
	for _, name := range s.Required {
		if _, there := fields[name]; !there {
			return nil, fmt.Errorf("%s has no %q: every field must be there, empty if there is nothing to say", at, name)
		}
	}
	out := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		inner, known := s.Properties[name]
		if !known {
			return nil, fmt.Errorf("%s has a field %q: leave it out", at, clip(name, 60))
		}
		var err error
		if out[name], err = inner.check(name+" of "+at, fields[name]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (s *schema) array(at string, value any) (any, error) {
	list, ok := value.([]any)
	if !ok {
		return nil, fmt.Errorf("%s is not a list", at)
	}
	if s.MaxItems != nil && len(list) > *s.MaxItems {
		return nil, fmt.Errorf("%s has %d entries: write at most %d", at, len(list), *s.MaxItems)
	}
	out := make([]any, len(list))
	for i, entry := range list {
		var err error
		if out[i], err = s.Items.check(fmt.Sprintf("entry %d of %s", i+1, at), entry); err != nil {
			return nil, err
		}
	}
	return out, nil
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

// clip cuts a text to at most n characters.
func clip(text string, n int) string {
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	return string([]rune(text)[:n])
}

// plain reports whether a text has no marks of a fence or a chat template, so that it may stand outside of fences.
func plain(text string) bool { return strings.Contains(scoring.Fence(text), "\n"+text+"\n") }
