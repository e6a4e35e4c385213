package amaris

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/rewards/criteria"
)

// origin is where first rubrics come from.
type origin struct {
	options Options
	anchors []criteria.Criterion
	common  []criteria.Criterion    // of every rubric, after the anchors
	last    map[string]criteria.Set // scope -> the last rubric of the run that options name
}

func newOrigin(o Options) (origin, error) {
	out := origin{options: o}
	var err error
	if o.Anchors != nil {
		if out.anchors, err = parse(o.Anchors, o.Format); err != nil {
			return out, fmt.Errorf("anchors: %w", err)
		}
		for i := range out.anchors {
			out.anchors[i].Anchor = true
		}
	}
	if o.Rubric != nil {
		if out.common, err = parse(o.Rubric, o.Format); err != nil {
			return out, fmt.Errorf("rubric: %w", err)
		}
	}
	if o.File != "" {
		set, err := criteria.Load(o.File, o.Format)
		if err != nil {
			return out, fmt.Errorf("file: %w", err)
		}
		out.common = set.List()
	}
	if o.FromRun != "" {
		if out.last, err = lastSets(o.FromRun); err != nil {
			return out, fmt.Errorf("from_run: %w", err)
		}
	}
	return out, out.check()
}

func (o origin) check() error {
	if o.options.FromRun != "" && o.options.Scope == scopeGlobal && o.last[criteria.Global].Len() == 0 {
		return fmt.Errorf("from_run: the log of %s has no global rubric: set scope to instance, or name another run", o.options.FromRun)
	}
	if n := len(o.anchors) + len(o.common); n == 0 {
		return nil
	} else if n > o.options.MaxCriteria {
		return fmt.Errorf("anchors and rubric have %d criteria together, max_criteria is %d: set max_criteria=%d or more, or shorten the rubric", n, o.options.MaxCriteria, n)
	}
	if _, err := criteria.NewSet("", 1, slices.Concat(o.anchors, o.common)); err != nil {
		return fmt.Errorf("anchors and rubric together: %w", err)
	}
	return nil
}

// parse reads a list of criteria and checks it.
func parse(value any, format string) ([]criteria.Criterion, error) {
	list, err := criteria.Parse(value, format)
	if err != nil {
		return nil, err
	}
	set, err := criteria.NewSet("", 1, list)
	return set.List(), err
}

// lastSets are the rubrics that a run ended with, by scope, from its log.
func lastSets(dir string) (map[string]criteria.Set, error) {
	events, err := criteria.ReadLog(criteria.LogPath(dir))
	if err != nil && !errors.Is(err, criteria.ErrTorn) {
		return nil, err
	}
	out := map[string]criteria.Set{}
	for _, e := range events {
		if e.Set != nil {
			out[e.Set.Scope()] = *e.Set
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("the rubric log of %s has no rubrics: name the folder of a run that had some", dir)
	}
	return out, nil
}

// cold reports that the first global rubric is to be made from the first step's completions.
func (o origin) cold() bool {
	return o.options.Scope == scopeGlobal && len(o.common) == 0 && o.last[criteria.Global].Len() == 0
}

// global is the first global rubric: version 0, and only the anchors, if it is to be made.
func (o origin) global() (rubric, error) {
	if set := o.last[criteria.Global]; set.Len() > 0 {
		return first(criteria.Global, 1, set.List())
	}
	list := slices.Concat(o.anchors, o.common)
	if o.cold() {
		if len(list) == 0 {
			return rubric{}, nil
		}
		return first(criteria.Global, 0, list)
	}
	return first(criteria.Global, 1, list)
}

// rowPrefix stands before the ids of a row's own criteria where the configuration has some too.
const rowPrefix = "row."

// instance is the first rubric of a row.
func (o origin) instance(row *grpo.Prompt) (rubric, error) {
	if set := o.last[row.ID]; set.Len() > 0 {
		return first(row.ID, 1, set.List())
	}
	list := slices.Concat(o.anchors, o.common)
	own, err := o.own(row, len(list) > 0)
	if err != nil {
		return rubric{}, err
	}
	if len(list) > 0 {
		for i := range own {
			own[i].ID = rowPrefix + own[i].ID
		}
	}
	r, err := first(row.ID, 1, append(list, own...))
	if err != nil && o.options.Column != "" {
		err = fmt.Errorf("column %s: %w", o.options.Column, err)
	}
	return r, err
}

// own reads the criteria in a row's column. It may be null if there are others.
func (o origin) own(row *grpo.Prompt, others bool) ([]criteria.Criterion, error) {
	if o.options.Column == "" {
		return nil, nil
	}
	value, there := row.Columns[o.options.Column]
	if !there {
		return nil, fmt.Errorf("the row has no column %s: set the option to the one that holds the criteria", o.options.Column)
	}
	if value == nil && others {
		return nil, nil
	}
	list, err := criteria.Parse(value, o.options.Format)
	if err != nil {
		return nil, fmt.Errorf("column %s: %w", o.options.Column, err)
	}
	return list, nil
}

// Check implements rewards.Checker: it reads what a row is scored and analysed with.
func (p *Provider) Check(row *grpo.Prompt) error {
	if err := p.check(row); err != nil {
		return fmt.Errorf("amaris: %w", &rewards.Error{Prompt: row.ID, Completion: -1, Err: err})
	}
	return nil
}

func (p *Provider) check(row *grpo.Prompt) error {
	r, err := p.firstOf(row)
	if err != nil {
		return err
	}
	if _, err := p.reference(row); err != nil {
		return err
	}
	return p.scorer.Check(row, r.Set.List())
}

// scopeOf names the rubric of a row.
func (p *Provider) scopeOf(row *grpo.Prompt) string {
	if p.options.Scope == scopeGlobal {
		return criteria.Global
	}
	return row.ID
}

// firstOf is the rubric that a row's scope begins with.
func (p *Provider) firstOf(row *grpo.Prompt) (rubric, error) {
	if p.options.Scope == scopeGlobal {
		return p.origin.global()
	}
	return p.origin.instance(row)
}

// reference is what the analyst is shown of a row; empty: nothing.
func (p *Provider) reference(row *grpo.Prompt) (string, error) {
	column := p.options.AnalysisColumn
	if column == "" {
		return "", nil
	}
	value, there := row.Columns[column]
	if !there {
		return "", fmt.Errorf("the row has no column %s: set analysis_column to the one with the reference answer, or write null where there is none", column)
	}
	switch v := value.(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	}
	text, err := json.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("column %s: %w", column, err)
	}
	return string(text), nil
}
