package llm

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestExtract(t *testing.T) {
	for _, c := range []struct {
		text   string
		isJSON bool
		want   string // of the answer
		fault  string // of the error
	}{
		{text: ` {"a": 1} `, isJSON: true, want: `{"a": 1}`},
		{text: "```json\n{\"a\": 1}\n```", isJSON: true, want: `{"a": 1}`},
		{text: "<think>\n{\"a\": 0}\n</think>\n\n```json\n[1]\n```\n", isJSON: true, want: `[1]`},
		{text: `{"a": "</think>"}`, isJSON: true, want: `{"a": "</think>"}`},
		{text: "<think>hm</think> Yes.", want: "Yes."},
		{text: "```json\n{}\n```", want: "```json\n{}\n```"}, // text stays as it is
		{text: "<think>hm", isJSON: true, fault: "no answer"},
		{text: "<think>hm", fault: "no answer"},
		{text: "<think>hm</think>  ", fault: "no answer"},
		{text: `{"a": 1} I hope this helps!`, isJSON: true, fault: "after top-level value"},
		{text: `Sure: {"a": 1}`, isJSON: true, fault: "invalid character"},
		{text: `{"a": 1}{"a": 0}`, isJSON: true, fault: "after top-level value"},
		{text: "```json\n{\"a\": 1}\n``` Done.", isJSON: true, fault: "```json block"},
		{text: "```\n{\"a\": 1}\n```", isJSON: true, fault: "invalid character"},
		{text: `{"a": 1`, isJSON: true, fault: "unexpected end"},
		{text: `{"a": 1, "b": {"c": 1, "c": 0}}`, isJSON: true, fault: `the key "c" is there twice`},
		{text: `[{"a": 1}, {"a": 2}, {"b": [{"x": 1, "x": 1}]}]`, isJSON: true, fault: `the key "x" is there twice`},
		{text: `{"a": 1e999}`, isJSON: true, fault: "1e999"},
		{text: `{"a": NaN}`, isJSON: true, fault: "invalid character"},
	} {
		got, err := extract(c.text, c.isJSON)
		if c.fault == "" {
			if err != nil || got != c.want {
				t.Errorf("%q: %q, %v, want %q", c.text, got, err, c.want)
			}
		} else if err == nil || !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%q: %q, %v, want the error %q", c.text, got, err, c.fault)
		}
	}
}

func FuzzExtract(f *testing.F) {
	f.Add("<think>a</think>```json\n{\"a\": [1, {\"b\": null}]}\n```")
	f.Add(`{"a": 1, "a": 2}`)
	f.Fuzz(func(t *testing.T, text string) {
		got, err := extract(text, true)
		if err != nil {
			return
		}
		if !json.Valid([]byte(got)) || !strings.Contains(text, got) {
			t.Errorf("%q was read as %q", text, got)
		}
		if again, err := extract(got, true); err != nil || again != got {
			t.Errorf("%q is not read as itself: %q, %v", got, again, err)
		}
	})
}
