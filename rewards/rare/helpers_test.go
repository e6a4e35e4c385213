package rare

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/rewards/internal/scoring/scoringtest"
)

func mustNew(t testing.TB, run rewards.Run, settings map[string]any) *Provider {
	t.Helper()
	p, err := New(run, settings)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.(*Provider).Close() })
	return p.(*Provider)
}

func mustScore(t testing.TB, p *Provider, step int, groups ...grpo.Group) []rewards.Score {
	t.Helper()
	scores, err := p.Score(t.Context(), step, groups)
	if err != nil {
		t.Fatalf("step %d: %v", step, err)
	}
	return scores
}

var group, criterion = scoringtest.Group, scoringtest.Criterion

// table is a judge's rule: criterion -> answer -> score; full marks where nothing is said.
type table map[string]map[string]int

func (x table) rule(key, answer string, most int) int {
	if score, ok := x[key][answer]; ok {
		return score
	}
	return most
}

// texts are criteria that have little in common.
var texts = []string{
	"The opening line gives the ending away.", "Adverbs pile up in dialogue tags.", "A minor figure vanishes unexplained.",
	"Weather is mentioned without purpose.", "Numbers contradict each other.", "Jokes interrupt a sad scene.", "Two names sound alike.",
	"Quotations lack their source.", "Hope comes too soon.", "Verb tense slips midway.", "Objects change colour.", "Kitchen smells: never used.",
}

// propose answers a question for replacements: for every criterion that it may replace the first text that the question
// does not show yet.
func propose(q rewards.Question) (string, error) {
	labels, polarities := asked(q)
	var updates []update
	for _, text := range texts {
		if len(updates) < len(labels) && !strings.Contains(q.User, text) {
			polarity := polarities[len(updates)%len(polarities)]
			updates = append(updates, update{Replaces: labels[len(updates)], Difference: "they differ", Polarity: polarity, Criterion: text})
		}
	}
	return answerOf(updates...), nil
}

// asked are the labels and polarities that a question's schema lets the answer have.
func asked(q rewards.Question) (labels, polarities []string) {
	type enum struct{ Enum []string }
	var form struct {
		Properties struct {
			Updates struct {
				Items struct {
					Properties struct{ Replaces, Polarity enum }
				}
			}
		}
	}
	if err := json.Unmarshal(q.Schema, &form); err != nil {
		panic(err)
	}
	p := form.Properties.Updates.Items.Properties
	return p.Replaces.Enum, p.Polarity.Enum
}

// answerOf is an answer with these updates.
func answerOf(updates ...update) string {
	if updates == nil {
		updates = []update{}
	}
	text, err := json.Marshal(map[string]any{"updates": updates})
	if err != nil {
		panic(err)
	}
	return string(text)
}

// updates are the questions for replacements among those that a judge was asked.
func updates(j *scoringtest.Judge) []rewards.Question {
	var out []rewards.Question
	for _, q := range j.Asked() {
		if q.Tier == rewards.TierUpdate {
			out = append(out, q)
		}
	}
	return out
}

// ids are the names of a score's parts.
func ids(s rewards.Score) string {
	var names []string
	for _, p := range s.Parts {
		names = append(names, p.Name)
	}
	return strings.Join(names, " ")
}

// credits are a score's parts with their credits.
func credits(s rewards.Score) string {
	var out []string
	for _, p := range s.Parts {
		out = append(out, fmt.Sprintf("%s:%g", p.Name, p.Credit))
	}
	return strings.Join(out, " ")
}

// deafTo is a judge that gives no answer to questions with a schema that names something, about one answer.
type deafTo struct {
	rewards.Judge
	schema, answer string
}

func (d *deafTo) Ask(ctx context.Context, q rewards.Question) (string, error) {
	fenced := scoringtest.Fenced(q.User)
	if strings.Contains(string(q.Schema), d.schema) && fenced[len(fenced)-1] == d.answer {
		return "", rewards.ErrNoAnswer
	}
	return d.Judge.Ask(ctx, q)
}
