// Package analyst is a judge without a language model, for one purpose: to show how AMARIS (reward.kind amaris) improves a
// rubric, on the quickstart's tasks and without a network. It answers the questions of scoring and of every stage by rules:
//
//   - The credit of a criterion is arithmetic on the answer's text and on the checks of its task, which the question shows as
//     the reference answer (column pool of the embedded rows). It knows only the criteria of a fixed table, by their texts.
//   - An answer is reported as gaming if padding, repetition or excess is visible in its own text; these passages are the evidence.
//   - A summary adds up reports. Its figures travel as text from stage to stage, as a language model's would.
//   - What an update does is a fixed table too: what a criterion is split into, which criteria are created and in which
//     order. When it does it, and to which criterion, comes from the rollouts and the memory.
//
// So it shows that the method's pipeline works, and nothing about how well a language model would do in its place.
//
// It has no state: the same question gets the same answer. All that it knows of earlier steps is in the question. What
// stands in a fence is read as what the fence is for, never as a rubric, a figure or another fence.
package analyst

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/rubicon-rl/rubicon/internal/llm"
)

// URL is the judge.url that means this judge.
const URL = "embedded:quickstart"

// Transport is the judge as an llm.Client asks it.
type Transport struct{}

var (
	_ llm.Transport = Transport{}
	_ llm.Named     = Transport{}
)

// Name implements llm.Named. The number is to be raised when an answer changes.
func (Transport) Name() string { return "rule-based judge of the quickstart's tasks 1" }

// Preflight implements llm.Transport: there is nothing to reach.
func (Transport) Preflight(context.Context, string) error { return nil }

// Complete implements llm.Transport. A question that the rules do not cover is refused with a status after which none is asked
// any more; what it says tells what they cover.
func (Transport) Complete(ctx context.Context, c *llm.Call) (*llm.Reply, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if c.Schema == nil { // the client tries whether anybody answers
		return &llm.Reply{Text: "ready"}, nil
	}
	text, err := answer(c)
	if err != nil {
		return nil, &llm.StatusError{Code: http.StatusNotFound, Body: fmt.Sprintf("judge.url %s: %v", URL, err)}
	}
	return &llm.Reply{Text: text}, nil
}

// stages answer the questions of scoring and of AMARIS, by the names of their schemas.
var stages = map[string]func(*question) (any, error){
	"scores": score, "analyze": analyze, "summarize": summarize, "meta": summarize, "query": query, "update": update,
}

func answer(c *llm.Call) (string, error) {
	stage := stages[c.Name]
	if stage == nil {
		return "", fmt.Errorf("the rule-based judge has no rules for the question %s: it is for reward.kind amaris and rubric", c.Name)
	}
	for _, m := range c.Messages {
		if m.Role != "user" { // instructions; and after the first question, what was wrong with an answer
			continue
		}
		q, err := read(m.Content)
		if err != nil {
			return "", err
		}
		value, err := stage(q)
		if err != nil {
			return "", fmt.Errorf("%s: %w", c.Name, err)
		}
		text, err := json.Marshal(value)
		return string(text), err
	}
	return "", fmt.Errorf("%s: there is no question", c.Name)
}
