package token

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
)

// TestTemplatesAreBounded: loops and growth without end, each in a way of its own, end in an error. Without its bound each
// runs for hours or takes all memory.
func TestTemplatesAreBounded(t *testing.T) {
	shared := "{% set ns = namespace(x=[1]) %}{% for i in range(40) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}"
	for source, want := range map[string]string{
		"{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}":                             "more time or memory",
		"{% for a in range(1000) %}{% for b in range(100000) if false %}{% endfor %}{% endfor %}":                      "more time or memory",
		"{% macro f(n) %}{% for i in range(100000) %}{{ f(n - 1) if n else '' }}{% endfor %}{% endmacro %}{{ f(50) }}": "more time or memory",
		grow("'xx'", "{% set ns.x = ns.x ~ ns.x %}"):                                                                   "more time or memory",
		grow("'xx'", "{% set ns.x = ns.x + ns.x %}"):                                                                   "more time or memory",
		grow("'xx'", "{% set ns.x = ns.x * 9 %}"):                                                                      "more time or memory",
		grow("'xx'", "{% set ns.x = ns.x.replace('x', 'xxx') %}"):                                                      "more",
		grow("'xx'", "{% set ns.x = ns.x | replace('x', 'xxx') %}"):                                                    "more",
		grow("'xx'", "{% set ns.x = [ns.x, ns.x] | join %}"):                                                           "more",
		grow("'xx'", "{% set ns.x = ns.x.join([ns.x, ns.x]) %}"):                                                       "more",
		grow("'xx'", "{% set x %}{{ ns.x }}{{ ns.x }}{% endset %}{% set ns.x = x %}"):                                  "more time or memory",
		grow("[1]", "{% set ns.x = ns.x + ns.x %}"):                                                                    "more time or memory",
		shared + "{{ ns.x }}":          "more time or memory",
		shared + "{{ ns.x == ns.x }}":  "more time or memory",
		shared + "{{ ns.x | tojson }}": "more time or memory",
		"{% set ns = namespace(x=[1]) %}{% for i in range(2000) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x }}": "nested deeper",
		"{{ 'x' * 1000000000000 }}":                                                "more time or memory",
		"{{ 'x'.ljust(1000000000000) }}":                                           "more than",
		"{{ 'x' | center(1000000000000) }}":                                        "more than",
		"{{ 'x' | indent(1000000000000, true) }}":                                  "more than",
		"{{ '" + strings.Repeat("%999999d", 10000) + "' | format(1) }}":            "more than",
		"{{ lipsum(1000000) }}":                                                    "lipsum",
		"{% for a in range(2000) %}" + strings.Repeat("x", 1<<17) + "{% endfor %}": "more time or memory",
	} {
		compiled, err := compile(source, marks{})
		if err == nil {
			_, err = render(compiled, map[string]any{"messages": list{"x"}}, time.Time{})
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.90s: error %v, want %q", source, err, want)
		}
	}
}

// grow is 100,000 rounds in which a variable grows.
func grow(start, statement string) string {
	return "{% set ns = namespace(x=" + start + ") %}{% for i in range(100000) %}" + statement + "{% endfor %}"
}

// TestLongChatsFit: conversations longer than any model's context stay within the budget, with the templates of real models.
func TestLongChatsFit(t *testing.T) {
	var cases []struct{ Model, Template string }
	if err := json.NewDecoder(unzip(t, "chat_template_cases.json.gz")).Decode(&cases); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{"syn": true}
	for _, c := range cases {
		if seen[c.Model] {
			continue
		}
		seen[c.Model] = true
		compiled, err := compile(c.Template, marks{})
		if err != nil {
			t.Fatal(err)
		}
		for turns, words := range map[int]int{4000: 200, 2000: 1, 2: 500000} {
			text, err := render(compiled, longChat(t, turns, words), time.Time{})
			if errors.Is(err, errBudget) || len(text) < 5*turns*words {
				t.Errorf("%s: %d turns of %d words: %d bytes, %v", c.Model, turns, words, len(text), err)
			}
		}
	}
}

// longChat are a template's variables for a conversation of so many turns.
func longChat(t *testing.T, turns, words int) map[string]any {
	t.Helper()
	var messages []Message
	for i := range turns {
		messages = append(messages, Message{Role: []string{"user", "assistant"}[i%2], Content: strings.Repeat("word ", words)})
	}
	in, err := newChatInput(messages, ChatOptions{})
	if err != nil {
		t.Fatal(err)
	}
	variables, err := in.variables(nil, strings.Clone)
	if err != nil {
		t.Fatal(err)
	}
	return variables
}
