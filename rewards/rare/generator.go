package rare

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/rewards/criteria"
	"github.com/rubicon-rl/rubicon/rewards/internal/scoring"
)

// generator proposes replacements for the saturated criteria of a visit.
type generator interface {
	// propose sets v.proposals, at most one for each of v.asked and in the order of places, or v.silence. It may set v.tried,
	// if it has had its proposals scored already. What it proposes is new to the rubric. It depends on nothing but the
	// run's seed, the step and v.
	propose(ctx context.Context, step int, v *visit) error
}

// newGenerator makes the configured one; nil for a rubric that never changes.
func newGenerator(run rewards.Run, p *Provider) (generator, error) {
	switch {
	case p.options.Mode == modeStatic:
		return nil, nil
	case p.options.Generator == generatorPool:
		return &best{p.rubrics, p.options.Polarity, p.scorer}, nil
	case p.options.Generator == generatorRandom:
		return &anyone{p.rubrics, p.options.Polarity, run.Seed}, nil
	case run.Judge == nil:
		return nil, errors.New("generator judge needs a judge: configure section judge, or set generator to pool")
	}
	judge, err := run.Judge()
	if err != nil {
		return nil, err
	}
	return newAsker(p.options, judge)
}

// unused are the row's candidates that v's rubric never had, of the wanted polarity or of none.
func (r rubrics) unused(v *visit, polarity string) ([]criteria.Criterion, error) {
	list, err := r.candidates(v.groups[0].Prompt)
	if err != nil {
		return nil, err
	}
	known := v.known()
	return slices.DeleteFunc(slices.Clone(list), func(c criteria.Criterion) bool {
		other := polarity != polarityBoth && c.Polarity != "" && c.Polarity != polarity
		return other || slices.ContainsFunc(known, func(k criteria.Criterion) bool { return k.ID == c.ID || sameText(k, c) })
	}), nil
}

func sameText(a, b criteria.Criterion) bool {
	return a.Text != "" && similarity(a.Text, b.Text) == 1 && len(a.Check)+len(b.Check) == 0
}

// best chooses the unused candidates whose credits differ most within the current groups.
type best struct {
	rubrics  rubrics
	polarity string
	scorer   *scoring.Scorer
}

func (b *best) propose(ctx context.Context, _ int, v *visit) error {
	list, err := b.rubrics.unused(v, b.polarity)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		v.silence = "no candidate is left"
		return nil
	}
	tried := make([][]scoring.Verdict, len(v.groups))
	err = each(ctx, []*visit{v}, func(ctx context.Context, v *visit, g int) (err error) {
		tried[g], err = b.scorer.Credits(ctx, v.groups[g].Prompt, v.groups[g].Completions, list)
		return err
	})
	if err != nil {
		return err
	}
	if why := unscorable(tried); why != "" {
		v.silence = "the candidates could not be scored: " + why
		return nil
	}
	v.tried = tried
	b.choose(v, list)
	return nil
}

// choose gives each place the candidate with the largest spread that is left; of equals the first.
func (b *best) choose(v *visit, list []criteria.Criterion) {
	spread := make([]float64, len(list))
	for k := range list {
		spread[k] = column(v.tried, k).spread()
	}
	for _, place := range v.asked {
		top := slices.Index(spread, slices.Max(spread))
		if spread[top] <= 0 {
			v.silence = "the completions are alike on every candidate that is left"
			return
		}
		v.proposals = append(v.proposals, proposal{place, list[top], fmt.Sprintf("standard deviation %.3g", spread[top]), top})
		spread[top] = -1
	}
}

// anyone chooses among the unused candidates at random, whatever the completions show: a control.
type anyone struct {
	rubrics  rubrics
	polarity string
	seed     uint64
}

func (a *anyone) propose(_ context.Context, step int, v *visit) error {
	list, err := a.rubrics.unused(v, a.polarity)
	if err != nil {
		return err
	}
	key := sha256.Sum256(fmt.Appendf(nil, "%d %d %s", a.seed, step, v.scope))
	random := rand.New(rand.NewPCG(binary.LittleEndian.Uint64(key[:8]), binary.LittleEndian.Uint64(key[8:16])))
	for i, k := range random.Perm(len(list))[:min(len(list), len(v.asked))] {
		v.proposals = append(v.proposals, proposal{v.asked[i], list[k], "drawn at random", i})
	}
	if len(v.proposals) < len(v.asked) {
		v.silence = "no candidate is left"
	}
	return nil
}
