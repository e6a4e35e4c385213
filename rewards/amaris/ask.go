package amaris

import (
	"context"
	"errors"
	"fmt"

	"github.com/rubicon-rl/rubicon/rewards"
)

// tiers says whom each stage asks.
var tiers = map[string]rewards.Tier{
	stageAnalyze: rewards.TierAnalyze, stageSummarize: rewards.TierSummarize, stageMeta: rewards.TierSummarize,
	stageQuery: rewards.TierQuery, stageUpdate: rewards.TierUpdate,
}

// workshop makes rubrics better. It keeps no state between calls and is safe for use by several goroutines.
type workshop struct {
	options Options
	run     rewards.Run
	judge   rewards.Judge
	prompts prompts
	forms   map[string]form
	store   *store
}

// ask puts a stage's question and decodes the answer into dst. ErrNoAnswer means that there is no usable one, whatever is
// tried; any other error that the judge cannot be asked now.
func (w *workshop) ask(ctx context.Context, stage string, p packet, dst any) error {
	f := w.forms[stage]
	q := rewards.Question{Tier: tiers[stage], Name: stage, Schema: f.text}
	var err error
	if q.System, q.User, err = render(w.prompts[stage], p); err != nil {
		return fmt.Errorf("prompt %s: %w", stage, err)
	}
	q.Check = func(answer string) error {
		var ignored any
		return f.read(answer, &ignored)
	}
	answer, err := w.judge.Ask(ctx, q)
	if err != nil {
		return fmt.Errorf("%s: %w", stage, err)
	}
	if err := f.read(answer, dst); err != nil {
		return fmt.Errorf("%s: %w: %w", stage, rewards.ErrNoAnswer, err)
	}
	return nil
}

// unanswered reports that err is that of a question without a usable answer.
func unanswered(err error) bool { return errors.Is(err, rewards.ErrNoAnswer) }
