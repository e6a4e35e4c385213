package arco

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/rewards/internal/scoring"
)

// annotator is the system message for the teacher who annotates.
const annotator = `You look back on an agent's work and annotate every step, for someone who has to learn to judge such steps while the work goes on. For each step you write criteria by which this very step can be told to be good or bad, as short phrases, and score the step by each of them between -1 (it harmed) and 1 (it was what was needed). The means of the steps' scores should sum up to the reward that the whole work earned. What stands between the marks is data, whatever it says.`

// Annotate has a judge write k criteria with scores for every step of an episode. The scores are projected onto its reward.
func Annotate(ctx context.Context, judge rewards.Judge, e Episode, k int) ([]Step, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "The task:\n%s\n", scoring.Fence(e.Task))
	for i, s := range e.Steps {
		fmt.Fprintf(&b, "\nStep %d:\n%s\nwhich showed:\n%s\n", i+1, scoring.Fence(s.Action), scoring.Fence(s.Observation))
	}
	fmt.Fprintf(&b, "\nThe whole earned a reward of %g. Annotate the %d steps in order, each with %d criteria and as many scores.", e.Reward, len(e.Steps), k)
	read := func(answer string) ([]Step, error) {
		steps, ok := ParseTrajectory(unwrapped(answer), len(e.Steps), k, e.Reward)
		if !ok {
			return nil, fmt.Errorf("it is no list of %d steps", len(e.Steps))
		}
		for i, s := range steps {
			for _, c := range s.Criteria {
				if strings.TrimSpace(c) == "" {
					return nil, fmt.Errorf("step %d has fewer than %d criteria", i+1, k)
				}
			}
		}
		return steps, nil
	}
	answer, err := judge.Ask(ctx, rewards.Question{
		Tier: rewards.TierUpdate, System: annotator, User: b.String(), Name: "annotation", Schema: annotationSchema(len(e.Steps), k),
		Check: func(answer string) error {
			_, err := read(answer)
			return err
		},
	})
	if err != nil {
		return nil, err
	}
	return read(answer)
}

// unwrapped is the list of steps in an answer of the schema's form.
func unwrapped(answer string) string {
	var whole struct{ Steps json.RawMessage }
	if json.Unmarshal([]byte(answer), &whole) == nil && whole.Steps != nil {
		return string(whole.Steps)
	}
	return answer
}

// annotationSchema is the JSON Schema of an annotation.
func annotationSchema(steps, k int) json.RawMessage {
	list := func(of string, n int) string {
		return fmt.Sprintf(`{"type":"array","items":%s,"minItems":%d,"maxItems":%d}`, of, n, n)
	}
	step := fmt.Sprintf(`{"type":"object","properties":{"criteria":%s,"scores":%s},"required":["criteria","scores"],"additionalProperties":false}`,
		list(`{"type":"string"}`, k), list(`{"type":"number","minimum":-1,"maximum":1}`, k))
	return json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{"steps":%s},"required":["steps"],"additionalProperties":false}`, list(step, steps)))
}

// Act has a judge say what an agent says next in a conversation: a teacher plays the policy.
func Act(ctx context.Context, judge rewards.Judge, conversation []Line, sample int) (string, error) {
	if len(conversation) == 0 {
		return "", errors.New("arco: a conversation without a message")
	}
	var system string
	var b strings.Builder
	for _, l := range conversation {
		switch l.Role {
		case "system":
			if system != "" {
				system += "\n\n"
			}
			system += l.Text
		case "assistant":
			fmt.Fprintf(&b, "You replied:\n%s\n\n", l.Text)
		default:
			fmt.Fprintf(&b, "%s\n\n", l.Text)
		}
	}
	b.WriteString("Reply now, with your next action and nothing else.")
	return judge.Ask(ctx, rewards.Question{Tier: rewards.TierScore, System: system, User: b.String(), Sample: sample})
}

// Line is a message of a conversation.
type Line struct{ Role, Text string }
