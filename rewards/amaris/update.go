package amaris

import (
	"context"
	"slices"

	"github.com/rubicon-rl/rubicon/rewards/criteria"
	"github.com/rubicon-rl/rubicon/rewards/internal/scoring"
)

// Strategies of an update (sec. 2.3).
const (
	Defensive   = "defensive"   // close a gap through which the policy earns reward
	Curriculum  = "curriculum"  // raise the standard
	Maintenance = "maintenance" // keep the rubric stable
)

// focuses are the main reasons of updates: the paper's Tables 17, 18 and 19, and other.
func focuses() []string {
	return []string{
		"length_gaming", "superficial_format", "over_refusal", "claims_without_evidence", "sycophancy", "keyword_stuffing",
		"reasoning_depth", "conciseness", "justification", "trade_off_handling", "multi_constraint_prioritization", "output_style",
		"no_dominant_behaviour", "recent_patch_under_evaluation", "already_compact", "held_out_improving", "mixed_evidence", "other",
	}
}

// Consulted is a document of the memory that an update rests on.
type Consulted struct {
	Document string `json:"document"` // its id
	Use      string `json:"use"`
	Source   string `json:"source"` // static, or the query that found it
}

// Record is what an update leaves in the memory.
type Record struct {
	Strategy  string               `json:"strategy"`
	Asked     string               `json:"asked,omitempty"` // the strategy that the judge chose, if nothing valid was left of it
	Focus     string               `json:"focus,omitempty"`
	Reasoning string               `json:"reasoning,omitempty"`
	History   []Consulted          `json:"history"`
	Queries   []Query              `json:"queries"`
	Ops       []Op                 `json:"ops"`
	Dropped   []Dropped            `json:"dropped"`
	Lesson    string               `json:"lesson,omitempty"`
	Missing   string               `json:"missing,omitempty"` // the stage that got no usable answer
	Version   int                  `json:"version"`           // of the rubric after it
	Rubric    []criteria.Criterion `json:"rubric"`            // after it
}

// reply is a judge's answer to the update question.
type reply struct {
	Reasoning, Strategy, Focus, Lesson string
	History                            []struct{ Document, Use string }
	Create                             []struct {
		fresh
		Reason string
	}
	Update []struct{ ID, Text, Reason string }
	Delete []struct{ ID, Reason string }

	Reweight []struct {
		ID     string
		Weight float64
		Reason string
	}
	Merge []struct {
		IDs []string
		fresh
		Reason string
	}
	Split []struct {
		ID     string
		Into   []fresh
		Reason string
	}
}

// fresh is a criterion that a judge proposes.
type fresh struct {
	Text     string
	Weight   float64
	Category string
}

func (f fresh) criterion() criteria.Criterion {
	return criteria.Criterion{Text: f.Text, Weight: f.Weight, Category: f.Category}
}

// ops are the operations of an answer in the order in which they are looked at.
func (r reply) ops() []Op {
	var out []Op
	for _, x := range r.Update {
		out = append(out, Op{Kind: OpUpdate, Targets: []string{x.ID}, Text: x.Text, Reason: x.Reason})
	}
	for _, x := range r.Reweight {
		out = append(out, Op{Kind: OpReweight, Targets: []string{x.ID}, Weight: x.Weight, Reason: x.Reason})
	}
	for _, x := range r.Delete {
		out = append(out, Op{Kind: OpDelete, Targets: []string{x.ID}, Reason: x.Reason})
	}
	for _, x := range r.Merge {
		out = append(out, Op{Kind: OpMerge, Targets: x.IDs, Made: []criteria.Criterion{x.criterion()}, Reason: x.Reason})
	}
	for _, x := range r.Split {
		op := Op{Kind: OpSplit, Targets: []string{x.ID}, Reason: x.Reason}
		for _, f := range x.Into {
			op.Made = append(op.Made, f.criterion())
		}
		out = append(out, op)
	}
	for _, x := range r.Create {
		out = append(out, Op{Kind: OpCreate, Made: []criteria.Criterion{x.criterion()}, Reason: x.Reason})
	}
	return out
}

// update asks for the next rubric and applies what is valid of it. If nothing is, the rubric stays and the strategy is
// Maintenance. The record has no version yet.
func (w *workshop) update(ctx context.Context, step int, now rubric, s *Summary, h history) (rubric, Record, error) {
	p := w.packet(step, now.Set)
	p.Summary, p.Items, p.Cold = scoring.Fence(s.String()), h.items(), now.Set.Version() == 0
	var r reply
	if err := w.ask(ctx, stageUpdate, p, &r); err != nil {
		return now, Record{}, err
	}
	limits := limits{w.options.MaxWeight, w.options.MaxCriteria}
	next, applied, dropped, err := now.apply(r.ops(), step, limits)
	if err != nil {
		return now, Record{}, err
	}
	record := Record{
		Strategy: r.Strategy, Focus: r.Focus, Reasoning: r.Reasoning, Lesson: r.Lesson, Queries: h.queries,
		Ops: applied, Dropped: dropped,
	}
	if len(applied) == 0 && r.Strategy != Maintenance {
		record.Strategy, record.Asked = Maintenance, r.Strategy
	}
	for i, d := range h.docs {
		k := slices.IndexFunc(r.History, func(c struct{ Document, Use string }) bool { return c.Document == label(i) })
		if k >= 0 {
			record.History = append(record.History, Consulted{d.ID, r.History[k].Use, h.sources[i]})
		}
	}
	return next, record, nil
}
