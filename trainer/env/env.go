// Package env holds tasks of several turns: what the policy says in a turn is an action, what the environment answers is an
// observation. The rollout engine plays many episodes at a time; observations are in the sequence, and never trained on.
//
//	qa     multi-hop questions over the paragraphs of each row: Search[words] and Finish[answer]
//	tools  a question that is answered with the help of tools in OpenAI's function format
package env

import (
	"context"
	"encoding/json"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/rewards"
)

// Environment makes episodes of one kind of task. It is safe for use by several goroutines.
type Environment interface {
	// Reset begins an episode on a row: what the policy is told first depends on the row alone. An error says what is wrong
	// with the row.
	Reset(ctx context.Context, row *grpo.Prompt) (Episode, Observation, error)
}

// Episode is one run through a task.
type Episode interface {
	// Step plays what the policy said in a turn. Whatever it says is an action, though perhaps an invalid one; an error means
	// that the environment itself failed. The episode is then as it was, and the turn may be played again.
	Step(ctx context.Context, said string) (Observation, error)
	// Outcome is what has become of the episode, by name: what rewards and metrics are made of. It may be asked at any time,
	// also if the policy was cut off before the end.
	Outcome() map[string]float64
	// Answer is the final answer that the policy gave; "" if there is none.
	Answer() string
}

// Kind is what an observation is.
type Kind string

// The kinds.
const (
	Start   Kind = "start"   // the task
	Result  Kind = "result"  // what an action found or did
	Invalid Kind = "invalid" // the action was none
	Forced  Kind = "forced"  // the budget is spent: there is one more action, the final one; or it followed, and was another
	End     Kind = "end"     // the action was the final one
)

// Observation is what an environment shows the policy.
type Observation struct {
	Kind     Kind
	Messages []grpo.Message  // none at the end
	Tools    json.RawMessage // at the start: tools for the chat template, as OpenAI's API lists them; nil: none
	Left     int             // actions of the budget that are left
	Done     bool            // there is no further turn
	Action   string          // how the environment understood what was said, in one line; "" at the start
	Verdict  grpo.Verdict    // on the action, for diagnostics; 0: the row does not tell
}

// Run is what an environment knows of the run that it plays in.
type Run struct {
	// Embedder opens what turns texts into vectors, as rewards.Run's.
	Embedder func(name string) (rewards.Embedder, error)
}

// Kinds are the values of env.kind. A new environment is a file here and a line.
var Kinds = map[string]func(run Run, settings map[string]any) (Environment, error){
	"qa":    NewQA,
	"tools": NewTools,
}
