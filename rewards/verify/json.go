package verify

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/rubicon-rl/rubicon/grpo"
)

// jsonText is the kind json: full credit if the whole text is valid JSON.
type jsonText struct {
	Fenced bool            `json:"fenced"` // a ``` or ```json fence around it is allowed
	Keys   []string        `json:"keys"`   // it must be an object; the credit is the share of these keys that it has
	Schema json.RawMessage `json:"schema"` // instead of keys: a JSON Schema that it must meet (draft 2020-12 unless $schema says another)
}

func (k *jsonText) compile(*grpo.Prompt) (Check, error) {
	check := validJSON
	switch {
	case k.Schema != nil && len(k.Keys) > 0:
		return nil, errors.New("keys and schema are set: use required in the schema")
	case k.Schema != nil:
		schema, err := compileSchema(k.Schema)
		if err != nil {
			return nil, fmt.Errorf("schema: %w", err)
		}
		check = func(text string) (float64, string) { return meets(schema, text) }
	case len(k.Keys) > 0:
		check = k.keys
	}
	return func(c *grpo.Completion) (float64, string) {
		text := strings.TrimSpace(c.Text)
		if body, ok := strings.CutPrefix(text, "```"); ok && k.Fenced {
			text = strings.TrimSuffix(strings.TrimPrefix(body, "json"), "```")
		}
		return check(text)
	}, nil
}

func validJSON(text string) (float64, string) {
	ok := json.Valid([]byte(text))
	return yes(ok), verdict(ok, "valid JSON", "not valid JSON")
}

func (k *jsonText) keys(text string) (float64, string) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &object); err != nil || object == nil {
		return 0, "not a JSON object"
	}
	missing := slices.DeleteFunc(slices.Clone(k.Keys), func(key string) bool { return object[key] != nil })
	return 1 - float64(len(missing))/float64(len(k.Keys)), fmt.Sprintf("%d keys missing %q", len(missing), missing)
}

// schemaURL names a check's schema where another would stand by its address.
const schemaURL = "rubicon:///schema"

// compileSchema reads a JSON Schema that refers to nothing outside of itself.
func compileSchema(text []byte) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(nothingElse{})
	if err := c.AddResource(schemaURL, doc); err != nil {
		return nil, err
	}
	schema, err := c.Compile(schemaURL)
	if err != nil {
		return nil, errors.New(oneLine(err))
	}
	return schema, nil
}

// nothingElse refuses to load schemas: a check must not depend on files or on the network.
type nothingElse struct{}

func (nothingElse) Load(string) (any, error) {
	return nil, errors.New("only the schema itself can be referred to: put what is needed under $defs")
}

// meets gives full credit to JSON that meets a schema. Numbers are read as float64, so that one out of its range is not
// computed with.
func meets(schema *jsonschema.Schema, text string) (float64, string) {
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return 0, "not valid JSON"
	}
	if err := schema.Validate(value); err != nil {
		return 0, oneLine(err)
	}
	return 1, "meets the schema"
}

// oneLine is the message of a schema error, which comes as an indented list.
func oneLine(err error) string {
	text := strings.Join(strings.Fields(strings.ReplaceAll(err.Error(), schemaURL, "")), " ")
	if r := []rune(text); len(r) > 200 {
		text = string(r[:200]) + "…"
	}
	return text
}
