package criteria

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

// maxFile is the largest rubric file that Load reads, bytes.
const maxFile = 16 << 20

// Load reads a rubric from a JSON file in one of the formats that Parse knows. Rubicon's own form keeps its scope and
// version; what has none becomes version 1 of scope Global.
func Load(path, format string) (Set, error) {
	s, err := load(path, format)
	if err != nil {
		return Set{}, fmt.Errorf("rubric file %s: %w", path, err)
	}
	return s, nil
}

func load(path, format string) (Set, error) {
	f, err := os.Open(path)
	if err != nil {
		return Set{}, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return Set{}, err
	}
	if len(text) > maxFile {
		return Set{}, fmt.Errorf("is larger than %d MiB, so it is no rubric", maxFile>>20)
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return Set{}, fmt.Errorf("is not JSON: %w", err)
	}
	list, err := Parse(value, format)
	if err != nil {
		return Set{}, err
	}
	head, err := header(text, value)
	if err != nil {
		return Set{}, err
	}
	return NewSet(head.Scope, head.Version, list)
}

// heading is what rubicon's own form says before the criteria.
type heading struct {
	Scope    string            `json:"scope"`
	Version  int               `json:"version"`
	Criteria []json.RawMessage `json:"criteria"`
}

// header reads scope and version of a rubric, or their defaults.
func header(text []byte, value any) (heading, error) {
	h := heading{Scope: Global, Version: 1}
	m, _ := value.(map[string]any)
	if _, own := m["criteria"].([]any); !own {
		return h, nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err := d.Decode(&h)
	return h, err
}

// Parse reads the criteria in value, the decoded JSON of a data column or a file. Weights are kept as they are; criteria
// without an id are called c1, c2, ... by their place. What Parse returns is checked by NewSet.
//
// The formats are listed by Formats; auto, or an empty format, tells by the names of the fields. Value is a list of
// entries, an object that holds such a list under criteria, rubric, rubrics or checklist, a single entry, or a text with
// the JSON of one of these. In the format openrubrics, and for auto, it may also be plain text with one criterion a line,
// numbered or bulleted.
func Parse(value any, format string) ([]Criterion, error) {
	value, err := plain(value)
	if err != nil {
		return nil, fmt.Errorf("the rubric %w", err)
	}
	if text, ok := value.(string); ok {
		if value, err = parseText(text); err != nil {
			return nil, err
		}
	}
	entries, err := entriesOf(value)
	if err != nil {
		return nil, err
	}
	if format == "" || format == "auto" {
		if format, err = detect(entries[0]); err != nil {
			return nil, err
		}
	}
	read, ok := readers[format]
	if !ok {
		return nil, unknown("rubric format", format, Formats())
	}
	list := make([]Criterion, len(entries))
	for i, entry := range entries {
		if list[i], err = read(entry); err != nil {
			return nil, fmt.Errorf("criterion %d: %w", i+1, err)
		}
		if list[i].ID == "" {
			list[i].ID = fmt.Sprintf("c%d", i+1)
		}
	}
	return list, nil
}

// parseText reads the text of a column: JSON, or lines.
func parseText(text string) (any, error) {
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, "[") && !strings.HasPrefix(text, "{") {
		return textItems(text)
	}
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil { // it may be a line that begins with [Hard Rule]
		items, e := textItems(text)
		if e != nil {
			return nil, fmt.Errorf("the rubric is a text that is no JSON (%w) and no list of lines", err)
		}
		return items, nil
	}
	return value, nil
}

// entriesOf returns the entries of a rubric, one or more.
func entriesOf(value any) ([]any, error) {
	if m, ok := value.(map[string]any); ok {
		value = []any{m}
		for _, key := range []string{"criteria", "rubric", "rubrics", "checklist"} {
			if list, ok := m[key].([]any); ok {
				value = list
			}
		}
		if items := ruleItems(m); items != nil {
			value = items
		}
	}
	list, ok := value.([]any)
	switch {
	case value == nil:
		return nil, errors.New("there is no rubric: the value is null")
	case !ok:
		return nil, fmt.Errorf("the rubric is %s: give a list of criteria", describe(value))
	case len(list) == 0:
		return nil, errors.New("the rubric is an empty list: give at least one criterion")
	}
	return list, nil
}

// Formats lists the rubric formats, auto first.
func Formats() []string {
	return append([]string{"auto"}, slices.Sorted(maps.Keys(readers))...)
}

// describe words the type of decoded JSON.
func describe(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case string:
		return "a text"
	case bool:
		return "true or false"
	case float64:
		return "a number"
	case []any:
		return "a list"
	}
	return "an object"
}
