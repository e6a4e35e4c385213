package trainer

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/rubicon-rl/rubicon/grpo"
)

// badStep writes down the step's batch and decides whether the run can go on.
func (c *core) badStep(loss, norm float64) error {
	c.state.BadSteps++
	c.state.Latest["bad_steps"] = float64(c.state.BadSteps)
	path := c.dir.join("bad", fmt.Sprintf("step_%d.json", c.state.Step))
	if c.leads() {
		dump := map[string]any{"step": c.state.Step, "loss": number(loss), "grad_norm": number(norm), "batch": c.batch()}
		if err := writeJSON(path, dump); err != nil {
			return fmt.Errorf("write down a batch that went wrong: %w", err)
		}
	}
	fmt.Fprintf(c.Console, "step %d: loss %v, gradient norm %v: nothing was changed, the batch is in %s\n", c.state.Step, loss, norm, path)
	if c.state.BadSteps >= c.Config.Optim.MaxBadSteps {
		return fmt.Errorf("%w %d steps in a row (optim.max_bad_steps): lower optim.learning_rate or optim.max_grad_norm and go on from an earlier checkpoint",
			ErrDiverged, c.state.BadSteps)
	}
	return nil
}

// badRow is a row of a batch that went wrong.
type badRow struct {
	ID         string   `json:"id"`
	Prompt     []int32  `json:"prompt_ids"`
	Completion []int32  `json:"completion_ids"`
	Text       string   `json:"completion"`
	Mask       []bool   `json:"mask"` // null: every token is trained on
	Rewards    []number `json:"rewards"`
	Advantage  number   `json:"advantage"`
	LogP       []number `json:"sampling_logps"`
	Old        []number `json:"old_logps"`
	Ref        []number `json:"ref_logps"`
}

func badRows(rows []grpo.Row) []badRow {
	out := make([]badRow, len(rows))
	for i, r := range rows {
		c := r.Completion
		out[i] = badRow{r.Prompt.ID, r.Prompt.Tokens, c.Tokens, c.Text, r.Mask, numbers(c.Rewards), number(c.Advantage),
			numbers(c.LogP), numbers(c.Old), numbers(c.Ref)}
	}
	return out
}

// number is a float64 whose JSON form may be "NaN", "+Inf" or "-Inf".
type number float64

// MarshalJSON implements json.Marshaler.
func (n number) MarshalJSON() ([]byte, error) {
	if x := float64(n); math.IsNaN(x) || math.IsInf(x, 0) {
		return json.Marshal(fmt.Sprint(x))
	}
	return json.Marshal(float64(n))
}

func numbers[T float32 | float64](x []T) []number {
	if x == nil {
		return nil
	}
	out := make([]number, len(x))
	for i, v := range x {
		out[i] = number(v)
	}
	return out
}
