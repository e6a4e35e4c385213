// Package grpo is the vocabulary and the arithmetic of group-relative policy optimisation: groups of
// completions, their advantages, and the objective as a Gorgonia expression graph over per-token
// log-probabilities. It knows no device, no model and no I/O.
//
// Axes: P prompts, G completions per prompt, B = P*G rows, T tokens.
package grpo

import "math"

// Completion is one sampled answer: a list of tokens, of which those with Mask true are the policy's own.
type Completion struct {
	Tokens   []int32
	Mask     []bool    // nil: all are the policy's own; false: observations (tool output, environment), never trained on
	LogP     []float32 // log-probability of each token when it was sampled, full distribution at the run's temperature
	Filtered []float32 // the same under the filtered distribution that the token was drawn from
	Old      []float32 // log-probabilities of the trained tokens under the policy that sampled, as the trainer computes them; nil: LogP serves
	Ref      []float32 // log-probabilities under the reference policy; nil unless the objective needs them
	Text     string

	// Truncated: the last token is not an end-of-sequence token (the length limit cut it).
	Truncated bool

	Rewards   []float64 // one per reward function; NaN: that function could not score it
	Reward    float64   // the weighted sum; NaN: unscorable
	Advantage float64
	Turns     []float64 // optional advantage per turn (multi-step episodes); nil: Advantage for every token

	Episode *Episode // what happened in a completion of several turns; nil: it has one
}

// Episode is a completion as turns of the policy and what an environment answered.
type Episode struct {
	Steps   []Step
	Outcome map[string]float64 // what the environment says has become of it, by name
	Valued  bool               // the steps have values
	Lost    string             // why the environment could not play it to its end; then it is not scored. "": it could
}

// Step is a turn of the policy, its tokens [Start, End) of the completion, and what followed it.
type Step struct {
	Start, End  int     `json:"-"`
	Said        string  `json:"said"`
	Action      string  `json:"action"` // as the environment understood it
	Kind        string  `json:"kind"`   // of the observation
	Observation string  `json:"observation,omitempty"`
	Value       float64 `json:"value"`             // of the turn, if the reward gives each its own
	Verdict     Verdict `json:"verdict,omitempty"` // of the environment on the action, for diagnostics; nothing learns from it
}

// Verdict is whether an action was the right one; 0: it is not known.
type Verdict int8

// The verdicts.
const (
	Wrong Verdict = -1
	Right Verdict = 1
)

// Unscorable reports whether no reward function could score c.
func (c *Completion) Unscorable() bool {
	for _, r := range c.Rewards {
		if !math.IsNaN(r) {
			return false
		}
	}
	return true
}

// Own is the number of tokens that may be trained on.
func (c *Completion) Own() int {
	if c.Mask == nil {
		return len(c.Tokens)
	}
	n := 0
	for _, m := range c.Mask {
		if m {
			n++
		}
	}
	return n
}

// Message is one turn of a conversation.
type Message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// Prompt is one row of the training or held-out data.
type Prompt struct {
	ID       string         // stable: the row's id column, or file name and line
	Text     string         // set if the prompt is plain text
	Messages []Message      // set if it is a conversation
	Tokens   []int32        // as the policy sees it
	Columns  map[string]any // every other column of the row, as decoded JSON
}

// Group is one prompt and the completions sampled for it.
type Group struct {
	Prompt      *Prompt
	Completions []*Completion
}
