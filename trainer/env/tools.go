package env

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/internal/options"
	"github.com/rubicon-rl/rubicon/policy/token"
	"github.com/rubicon-rl/rubicon/rewards/verify"
)

// ToolsOptions are the settings of the environment tools.
type ToolsOptions struct {
	Tools    []string       `json:"tools"`     // which of the tools there are; empty: all
	MaxCalls int            `json:"max_calls"` // budget: calls
	Correct  map[string]any `json:"correct"`   // check of package verify that says whether the final answer is right; empty: none
}

// toolBox is the environment of questions that are answered with tools: a turn with calls gets their results, one without is the final
// answer. Tools are shown by the model's own chat template, in OpenAI's function format. Calls are read as models write them: a JSON
// object with name and arguments (or parameters) between <tool_call> marks, or as the whole turn.
type toolBox struct {
	o     ToolsOptions
	tools map[string]tool
	specs json.RawMessage
}

// tool is a function that the policy can call.
type tool struct {
	spec string // of function, as OpenAI's API wants it
	call func(ctx context.Context, arguments json.RawMessage) (string, error)
}

var allTools = map[string]tool{
	"calculator": {
		spec: `{"name":"calculator","description":"Computes a number exactly.","parameters":{"type":"object","properties":{"expression":{"type":"string","description":"Numbers, + - * / % and parentheses."}},"required":["expression"]}}`,
		call: calculator,
	},
}

// NewTools makes the environment tools.
func NewTools(_ Run, settings map[string]any) (Environment, error) {
	e := &toolBox{o: ToolsOptions{MaxCalls: 8}, tools: map[string]tool{}}
	if err := options.Decode(settings, &e.o); err != nil {
		return nil, fmt.Errorf("env tools: %w", err)
	}
	if e.o.MaxCalls < 1 || e.o.MaxCalls > 1000 {
		return nil, fmt.Errorf("env tools: max_calls is %d: set 1 to 1000", e.o.MaxCalls)
	}
	if len(e.o.Tools) == 0 {
		e.o.Tools = []string{"calculator"}
	}
	var specs []string
	for _, name := range e.o.Tools {
		t, known := allTools[name]
		if !known {
			return nil, fmt.Errorf("env tools: there is no tool %q: use calculator", name)
		}
		e.tools[name] = t
		specs = append(specs, `{"type":"function","function":`+t.spec+`}`)
	}
	e.specs = json.RawMessage("[" + strings.Join(specs, ",") + "]")
	if len(e.o.Correct) > 0 {
		if _, err := verify.Compile(e.o.Correct, nil); err != nil {
			return nil, fmt.Errorf("env tools: correct: %w", err)
		}
	}
	return e, nil
}

// Reset implements Environment.
func (e *toolBox) Reset(_ context.Context, row *grpo.Prompt) (Episode, Observation, error) {
	ep := &toolEpisode{env: e, left: e.o.MaxCalls}
	if len(e.o.Correct) > 0 {
		var err error
		if ep.correct, err = verify.Compile(e.o.Correct, row); err != nil {
			return nil, Observation{}, err
		}
	}
	messages := row.Messages
	if len(messages) == 0 && row.Text != "" {
		messages = []grpo.Message{{Role: "user", Content: row.Text}}
	}
	if len(messages) == 0 {
		return nil, Observation{}, errors.New("the row has no prompt: set data.prompt_column")
	}
	return ep, Observation{Kind: Start, Messages: messages, Tools: e.specs, Left: ep.left}, nil
}

type toolEpisode struct {
	env     *toolBox
	correct verify.Check // nil: none
	left    int

	calls, failed float64
	answer        string
	answered      bool
}

// Step implements Episode.
func (e *toolEpisode) Step(ctx context.Context, said string) (Observation, error) {
	_, calls := token.ReadCalls(said)
	if len(calls) == 0 {
		e.answer, e.answered = token.WithoutThinking(said), true
		return Observation{Kind: End, Left: e.left, Done: true, Action: firstLine(e.answer)}, nil
	}
	if e.left == 0 {
		return Observation{Kind: Forced, Done: true, Action: firstLine(said)}, nil
	}
	o := Observation{Kind: Result, Action: firstLine(said)}
	for _, c := range calls {
		result, err := e.run(ctx, c)
		if err != nil {
			o.Kind, result = Invalid, "error: "+err.Error()
			e.failed++
		}
		o.Messages = append(o.Messages, grpo.Message{Role: "tool", Content: result})
	}
	o.Left = e.left
	return o, nil
}

var errSpent = errors.New("no calls are left: give the final answer")

// run makes a call. What the policy did wrong is an error that it is told.
func (e *toolEpisode) run(ctx context.Context, c token.Call) (string, error) {
	if e.left == 0 {
		return "", errSpent
	}
	e.left--
	e.calls++
	if c.Err != nil {
		return "", c.Err
	}
	t, known := e.env.tools[c.Name]
	if !known {
		return "", fmt.Errorf("there is no tool %q: use %s", c.Name, strings.Join(e.env.o.Tools, ", "))
	}
	return t.call(ctx, c.Arguments)
}

// Answer implements Episode.
func (e *toolEpisode) Answer() string { return e.answer }

// Outcome implements Episode.
func (e *toolEpisode) Outcome() map[string]float64 {
	out := map[string]float64{"calls": e.calls, "failed_calls": e.failed, "finished": 0}
	if e.answered {
		out["finished"] = 1
	}
	if e.correct != nil {
		out["correct"] = 0
		if e.answered {
			out["correct"], _ = e.correct(&grpo.Completion{Text: e.answer})
		}
	}
	return out
}
