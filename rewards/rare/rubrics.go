package rare

import (
	"fmt"
	"slices"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/rewards/criteria"
)

// rubrics is where first rubrics and candidates come from.
type rubrics struct {
	common     []criteria.Criterion // nil: rows must have their own
	pool       []criteria.Criterion
	column     string
	poolColumn string
	format     string
}

func newRubrics(o Options) (rubrics, error) {
	r := rubrics{column: o.Column, poolColumn: o.PoolColumn, format: o.Format}
	var err error
	if o.File != "" {
		set, err := criteria.Load(o.File, o.Format)
		if err != nil {
			return r, err
		}
		r.common = set.List()
	}
	if o.Rubric != nil {
		if r.common, err = parse(o.Rubric, o.Format); err != nil {
			return r, fmt.Errorf("rubric: %w", err)
		}
	}
	if o.Pool != nil {
		if r.pool, err = candidates(o.Pool, o.Format); err != nil {
			return r, fmt.Errorf("pool: %w", err)
		}
	}
	return r, nil
}

// parse reads a rubric and checks it.
func parse(value any, format string) ([]criteria.Criterion, error) {
	list, err := criteria.Parse(value, format)
	if err != nil {
		return nil, err
	}
	set, err := criteria.NewSet("", 1, list)
	return set.List(), err
}

// candidates reads a pool. Its weights do not matter, because a replacement takes the old criterion's.
func candidates(value any, format string) ([]criteria.Criterion, error) {
	list, err := criteria.Parse(value, format)
	if err != nil {
		return nil, err
	}
	for i := range list {
		list[i].Weight = 1
	}
	set, err := criteria.NewSet("", 1, list)
	return set.List(), err
}

// rowPrefix stands before the ids of a row's own criteria where the configuration has some too.
const rowPrefix = "row."

// first is a row's first rubric: the common criteria, then its own.
func (r rubrics) first(row *grpo.Prompt) ([]criteria.Criterion, error) {
	if r.column == "" {
		return r.common, nil
	}
	own, err := r.own(row, r.column, len(r.common) > 0)
	if err != nil {
		return nil, err
	}
	if len(r.common) > 0 {
		for i := range own {
			own[i].ID = rowPrefix + own[i].ID
		}
	}
	return joined(r.column, r.common, own)
}

// candidates are those that a row may get replacements from: its own, then the common ones.
func (r rubrics) candidates(row *grpo.Prompt) ([]criteria.Criterion, error) {
	if r.poolColumn == "" {
		return r.pool, nil
	}
	own, err := r.own(row, r.poolColumn, len(r.pool) > 0)
	if err != nil {
		return nil, err
	}
	for i := range own {
		own[i].Weight = 1
	}
	return joined(r.poolColumn, own, r.pool)
}

// own reads the criteria in a column of a row. It may be null if there are others.
func (r rubrics) own(row *grpo.Prompt, column string, others bool) ([]criteria.Criterion, error) {
	value, there := row.Columns[column]
	if !there {
		return nil, fmt.Errorf("the row has no column %s: set the option to the one that holds the criteria", column)
	}
	if value == nil && others {
		return nil, nil
	}
	list, err := criteria.Parse(value, r.format)
	if err != nil {
		return nil, fmt.Errorf("column %s: %w", column, err)
	}
	return list, nil
}

// joined checks two lists as one.
func joined(column string, a, b []criteria.Criterion) ([]criteria.Criterion, error) {
	set, err := criteria.NewSet("", 1, slices.Concat(a, b))
	if err != nil {
		return nil, fmt.Errorf("column %s: %w", column, err)
	}
	return set.List(), nil
}

// Check implements rewards.Checker: it reads a row's rubric, candidates and task. All rows of a task must have the same.
func (p *Provider) Check(row *grpo.Prompt) error {
	if err := p.check(row); err != nil {
		return fmt.Errorf("rare: %w", &rewards.Error{Prompt: row.ID, Completion: -1, Err: err})
	}
	return nil
}

func (p *Provider) check(row *grpo.Prompt) error {
	scope, err := p.scope(row)
	if err != nil {
		return err
	}
	list, err := p.rubrics.first(row)
	if err != nil {
		return err
	}
	pool, err := p.rubrics.candidates(row)
	if err != nil {
		return err
	}
	all := slices.Concat(list, pool)
	if err := p.scorer.Check(row, all); err != nil || p.options.Mode != modeTask {
		return err
	}
	return p.sameTask(scope, all)
}

// sameTask refuses a row whose rubric and candidates differ from those of the first row of its task.
func (p *Provider) sameTask(task string, list []criteria.Criterion) error {
	hash, err := digest(list)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if before, ok := p.tasks[task]; ok && before != hash {
		return fmt.Errorf("its rubric or candidates are not those of the first row of task %q: give all rows of a task the same, or set mode to sample", task)
	}
	p.tasks[task] = hash
	return nil
}

// scope names the rubric that a row belongs to.
func (p *Provider) scope(row *grpo.Prompt) (string, error) {
	if p.options.Mode != modeTask {
		return row.ID, nil
	}
	if p.options.TaskColumn == "" {
		return criteria.Global, nil
	}
	task, _ := row.Columns[p.options.TaskColumn].(string)
	if task == "" {
		return "", fmt.Errorf("column %s must name the row's task: it is %v", p.options.TaskColumn, row.Columns[p.options.TaskColumn])
	}
	return task, nil
}
