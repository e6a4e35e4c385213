package llm

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// extract returns the answer in a reply: what follows a leading <think> block, and for JSON what stands in a ```json fence,
// if there is one. Anything else around the JSON value is an error.
func extract(text string, isJSON bool) (string, error) {
	text = strings.TrimSpace(text)
	if inner, ok := strings.CutPrefix(text, "<think>"); ok {
		_, after, _ := strings.Cut(inner, "</think>")
		text = strings.TrimSpace(after)
	}
	if text == "" {
		return "", errors.New("there is no answer after the reasoning")
	}
	if !isJSON {
		return text, nil
	}
	if inner, ok := strings.CutPrefix(text, "```json"); ok {
		inner, closed := strings.CutSuffix(inner, "```")
		if !closed {
			return "", errors.New("something follows the ```json block, or it is not closed")
		}
		text = strings.TrimSpace(inner)
	}
	return text, oneValue(text)
}

// oneValue checks that text is one JSON value, with nothing after it and no object key twice: of two values for a key, each
// reader would take another.
func oneValue(text string) error {
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return fmt.Errorf("it is not one JSON value: %w", err)
	}
	return uniqueKeys(json.NewDecoder(strings.NewReader(text)))
}

// uniqueKeys reads one valid value from d.
func uniqueKeys(d *json.Decoder) error {
	token, err := d.Token()
	if err != nil {
		return err
	}
	open, ok := token.(json.Delim)
	if !ok {
		return nil
	}
	seen := map[json.Token]bool{}
	for d.More() {
		if open == '{' {
			name, err := d.Token()
			if err != nil {
				return err
			}
			if seen[name] {
				return fmt.Errorf("the key %q is there twice", name)
			}
			seen[name] = true
		}
		if err := uniqueKeys(d); err != nil {
			return err
		}
	}
	_, err = d.Token() // the closing bracket
	return err
}
