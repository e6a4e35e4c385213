package amaris

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rubicon-rl/rubicon/rewards/criteria"
	"github.com/rubicon-rl/rubicon/rubricmem"
)

// job is what one training step gives the pipeline. Its exported fields are its inputs: they are in checkpoints, so that an
// unfinished job is run again after a crash, with the same result.
type job struct {
	Tick     int                     `json:"tick"` // the number of the Learn that made it, from 1; 0: the cold start
	Step     int                     `json:"step"`
	Closes   bool                    `json:"closes"` // an update is made from it and the open ones before it
	Rollouts []rollout               `json:"rollouts"`
	Sets     map[string]criteria.Set `json:"sets"` // that scored the rollouts, by scope

	done     chan struct{} // closed when there is a result
	result   *result       // nil: there is none yet
	failures int
}

func newJob(tick, step int, closes bool) *job {
	return &job{Tick: tick, Step: step, Closes: closes, Sets: map[string]criteria.Set{}, done: make(chan struct{})}
}

// result is what a job came to.
type result struct {
	analyses []*Analysis // of the rollouts; nil: one without a usable answer
	took     float64     // seconds, by the analyses
	changes  []change    // of every scope, if the job closes
	end      mark        // of the memory after it, if the job closes
}

// change is one scope's update.
type change struct {
	scope         string
	before, after rubric
	record        Record
	evidence      string // id of the step summary; empty: there is none
	took          seconds
	docs          []rubricmem.Doc
}

// seconds are how long the stages of an update took.
type seconds struct{ summarize, query, retrieve, update float64 }

// since returns the seconds since *began, which becomes now.
func since(began *time.Time) float64 {
	now := time.Now()
	took := now.Sub(*began).Seconds()
	*began = now
	return took
}

// pooled are the rollouts and analyses of one scope that an update is made from.
type pooled struct {
	scope    string
	now      rubric
	prompts  []string
	analyses []*Analysis
}

// improveAll runs the last of jobs; the others are the open ones before it, which have results. now gives the newest rubric of
// a scope, from is the end of the memory before it.
func (w *workshop) improveAll(ctx context.Context, jobs []*job, now func(scope string) rubric, from mark) (*result, error) {
	j := jobs[len(jobs)-1]
	out := &result{}
	began := time.Now()
	var err error
	out.analyses, err = w.analyze(ctx, j.Step, j.Rollouts, j.Sets)
	out.took = time.Since(began).Seconds()
	if err != nil || !j.Closes {
		return out, err
	}
	if err := w.store.rewind(from); err != nil {
		return nil, err
	}
	pools := pool(jobs, out.analyses, now)
	out.changes = make([]change, len(pools))
	work, inner := errgroup.WithContext(ctx)
	for i, p := range pools {
		work.Go(func() (err error) {
			out.changes[i], err = w.improve(inner, j, p)
			return err
		})
	}
	if err := work.Wait(); err != nil {
		return nil, err
	}
	var docs []rubricmem.Doc
	for _, c := range out.changes {
		docs = append(docs, c.docs...)
	}
	out.end, err = w.store.add(ctx, docs)
	return out, err
}

// pool sorts the analyses of jobs by scope, in the order in which the scopes first occur; latest are those of the last job.
func pool(jobs []*job, latest []*Analysis, now func(scope string) rubric) []*pooled {
	var out []*pooled
	for i, j := range jobs {
		analyses := latest
		if i < len(jobs)-1 {
			analyses = j.result.analyses
		}
		for k, r := range j.Rollouts {
			at := slices.IndexFunc(out, func(p *pooled) bool { return p.scope == r.Scope })
			if at < 0 {
				at = len(out)
				out = append(out, &pooled{scope: r.Scope, now: now(r.Scope)})
			}
			if analyses[k] != nil {
				out[at].prompts = append(out[at].prompts, r.Prompt)
				out[at].analyses = append(out[at].analyses, analyses[k])
			}
		}
	}
	return out
}

// improve is the method for one scope: summarise, look into the memory, update. A stage without a usable answer ends it; the
// rubric then stays, and the record says so.
func (w *workshop) improve(ctx context.Context, j *job, p *pooled) (change, error) {
	c := change{scope: p.scope, before: p.now, after: p.now, record: Record{Strategy: Maintenance}}
	err := c.note(j, p)
	if err != nil {
		return c, err
	}
	if len(p.analyses) == 0 {
		c.record.Missing = stageAnalyze
		return c, c.conclude(j)
	}
	set, began := p.now.Set, time.Now()
	d, err := w.digest(ctx, j.Step, set, p.analyses)
	c.took.summarize = since(&began)
	if unanswered(err) {
		c.record.Missing = stageSummarize
		return c, errors.Join(c.summaries(j, d), c.conclude(j))
	}
	if err != nil {
		return c, err
	}
	if err := c.summaries(j, d); err != nil {
		return c, err
	}
	h, err := w.retrieve(ctx, j.Step, set, p.scope, d.step)
	c.took.query, c.took.retrieve = h.asking, since(&began)-h.asking
	if err != nil {
		return c, err
	}
	after, record, err := w.update(ctx, j.Step, p.now, d.step, h)
	c.took.update = since(&began)
	switch {
	case unanswered(err):
		c.record.Missing, c.record.Queries = stageUpdate, h.queries
	case err != nil:
		return c, err
	default:
		c.after, c.record = after, record
	}
	return c, c.conclude(j)
}

// note keeps the analyses as documents.
func (c *change) note(j *job, p *pooled) error {
	for i, a := range p.analyses {
		if err := c.keep(rubricmem.Analysis, j, i, a); err != nil {
			return err
		}
		c.docs[len(c.docs)-1].Prompt = p.prompts[i]
	}
	return nil
}

// summaries keeps those of the chunks and that of the step.
func (c *change) summaries(j *job, d digest) error {
	for i, s := range d.chunks {
		if s == nil {
			continue
		}
		if err := c.keep(rubricmem.ChunkSummary, j, i, s); err != nil {
			return err
		}
	}
	if d.step == nil {
		return nil
	}
	if err := c.keep(rubricmem.StepSummary, j, 0, d.step); err != nil {
		return err
	}
	c.evidence = c.docs[len(c.docs)-1].ID
	return nil
}

// conclude completes the record and keeps it.
func (c *change) conclude(j *job) error {
	c.record.Version, c.record.Rubric = c.after.Set.Version(), c.after.Set.List()
	return c.keep(rubricmem.UpdateRecord, j, 0, c.record)
}

func (c *change) keep(kind rubricmem.Kind, j *job, place int, value fmt.Stringer) error {
	doc, err := document(kind, j, c.scope, place, value)
	if err != nil {
		return err
	}
	doc.Version = c.before.Set.Version()
	c.docs = append(c.docs, doc)
	return nil
}

// String names the job in errors.
func (j *job) String() string {
	if j.Tick == 0 {
		return "the first rubric"
	}
	return "the update after step " + strconv.Itoa(j.Step)
}
