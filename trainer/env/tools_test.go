package env

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/grpo"
)

func toolEpisodeOf(t *testing.T, settings map[string]any) (Episode, Observation) {
	t.Helper()
	e, err := NewTools(Run{}, settings)
	if err != nil {
		t.Fatal(err)
	}
	ep, o, err := e.Reset(t.Context(), &grpo.Prompt{Text: "What is 12 times 13?", Columns: map[string]any{"answer": "156"}})
	if err != nil {
		t.Fatal(err)
	}
	return ep, o
}

func TestToolEpisode(t *testing.T) {
	settings := map[string]any{"max_calls": 3, "correct": map[string]any{"kind": "number", "column": "answer"}}
	ep, o := toolEpisodeOf(t, settings)
	var tools []struct {
		Type     string
		Function struct {
			Name       string
			Parameters struct{ Required []string }
		}
	}
	if err := json.Unmarshal(o.Tools, &tools); err != nil || len(tools) != 1 || tools[0].Type != "function" || tools[0].Function.Name != "calculator" || len(tools[0].Function.Parameters.Required) != 1 {
		t.Errorf("tools %s: %+v, %v", o.Tools, tools, err)
	}
	for _, m := range []struct{ said, kind, want string }{
		{"<think>{}</think><tool_call>\n{\"name\": \"calculator\", \"arguments\": {\"expression\": \"12*13\"}}\n</tool_call>", "result", "156"},
		{`{"name": "calculator", "parameters": {"expression": "1/0"}}`, "invalid", "error: division by zero"},
		{`<tool_call>{"name": "oracle", "arguments": {}}</tool_call><tool_call>{"name": "calculator", "arguments": "{\"expression\": \"1\"}"}`, "invalid", "error: there is no tool \"oracle\": use calculator\nerror: no calls are left"},
	} {
		got, err := ep.Step(t.Context(), m.said)
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		for _, message := range got.Messages {
			texts = append(texts, message.Content)
			if message.Role != "tool" {
				t.Errorf("role %s", message.Role)
			}
		}
		if text := strings.Join(texts, "\n"); string(got.Kind) != m.kind || !strings.HasPrefix(text, m.want) {
			t.Errorf("%q: %s %q, want %s %q", m.said, got.Kind, text, m.kind, m.want)
		}
	}
	if o, err := ep.Step(t.Context(), "It is 156."); err != nil || !o.Done || o.Kind != End {
		t.Errorf("the answer: %+v, %v", o, err)
	}
	outcome(t, ep, map[string]float64{"calls": 3, "failed_calls": 3, "finished": 1, "correct": 1})
}

// A call after the budget ends the episode without an answer.
func TestToolBudget(t *testing.T) {
	ep, _ := toolEpisodeOf(t, map[string]any{"max_calls": 1, "correct": map[string]any{"kind": "number", "column": "answer"}})
	const said = `<tool_call>{"name": "calculator", "arguments": {"expression": "156"}}</tool_call>`
	if o, err := ep.Step(t.Context(), said); err != nil || o.Done || o.Left != 0 {
		t.Errorf("first: %+v, %v", o, err)
	}
	if o, err := ep.Step(t.Context(), said); err != nil || !o.Done || o.Kind != Forced {
		t.Errorf("second: %+v, %v", o, err)
	}
	outcome(t, ep, map[string]float64{"finished": 0, "correct": 0})
}

func TestCalculator(t *testing.T) {
	for expression, want := range map[string]string{
		"1+2*3": "7", "(1+2)*3": "9", "-4/8": "-0.5", "1/3": "0.333333333333", "7 % 4": "3", "0.1+0.2": "0.3", "010": "10", "100": "100", "2-2": "0",
		"1/0": "!division by zero", "2**3": "!no", "1e9": "!no number", "x": "!only numbers", "1 << 3": "!there is no operation <<", "0x10": "!no number",
		strings.Repeat("9", 1001): "!at most", strings.Repeat("(", 400) + "1" + strings.Repeat(")", 400): "1", "1.5 % 2": "!whole numbers", "": "!arguments",
		strings.Repeat("9", 400) + "*" + strings.Repeat("9", 400): "", strings.Repeat("99999999*", 110) + "9": "",
	} {
		text, err := json.Marshal(map[string]string{"expression": expression})
		if err != nil {
			t.Fatal(err)
		}
		got, err := calculator(t.Context(), text)
		if says, bad := strings.CutPrefix(want, "!"); bad {
			if err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%.40q: %q, error %v, want %q", expression, got, err, says)
			}
		} else if err != nil || want != "" && got != want {
			t.Errorf("%.40q is %q, %v, want %q", expression, got, err, want)
		}
	}
}

func TestToolsRefuse(t *testing.T) {
	for want, settings := range map[string]map[string]any{
		"max_calls is 0":       {"max_calls": 0},
		`there is no tool "x"`: {"tools": []any{"x"}},
		"correct":              {"correct": map[string]any{"kind": "nothing"}},
	} {
		if _, err := NewTools(Run{}, settings); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v, want %q", settings, err, want)
		}
	}
}
