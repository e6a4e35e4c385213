package amaris

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/rewards/criteria"
	"github.com/rubicon-rl/rubicon/rewards/internal/scoring"
)

// digest is the summary of a step and, if it needed several passes, those of the chunks (nil: one without a usable answer).
type digest struct {
	step   *Summary
	chunks []*Summary
}

// digest summarises analyses. More than chunk_size are summarised in chunks, all at the same time, and these summaries
// become one of the same form (meta summarisation).
func (w *workshop) digest(ctx context.Context, step int, set criteria.Set, analyses []*Analysis) (d digest, err error) {
	if len(analyses) <= w.options.ChunkSize {
		d.step, err = w.summarize(ctx, step, set, analyses)
		return d, err
	}
	chunks := slices.Collect(slices.Chunk(analyses, w.options.ChunkSize))
	d.chunks = make([]*Summary, len(chunks))
	work, inner := errgroup.WithContext(ctx)
	for i, chunk := range chunks {
		work.Go(func() (err error) {
			d.chunks[i], err = w.summarize(inner, step, set, chunk)
			if unanswered(err) {
				return nil
			}
			return err
		})
	}
	if err := work.Wait(); err != nil {
		return d, err
	}
	d.step, err = w.consolidate(ctx, step, set, chunks, d.chunks)
	return d, err
}

// consolidate makes one summary of those of the chunks.
func (w *workshop) consolidate(ctx context.Context, step int, set criteria.Set, chunks [][]*Analysis, parts []*Summary) (*Summary, error) {
	p := w.packet(step, set)
	for i, s := range parts {
		if s != nil {
			p.Items = append(p.Items, item{Label: fmt.Sprintf("%d (of %d reports)", i+1, len(chunks[i])), Text: scoring.Fence(s.String())})
		}
	}
	if len(p.Items) == 0 {
		return nil, errors.Join(rewards.ErrNoAnswer, errors.New("no chunk could be summarised"))
	}
	var s Summary
	if err := w.ask(ctx, stageMeta, p, &s); err != nil {
		return nil, err
	}
	return &s, nil
}
