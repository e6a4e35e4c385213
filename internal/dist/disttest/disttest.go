// Package disttest connects groups inside one process, for tests of what is shared among ranks.
package disttest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rubicon-rl/rubicon/internal/dist"
)

// Groups are the ranks of a run of world goroutines. A collective that takes longer than a minute fails.
func Groups(world int) []*dist.Group {
	h := &hub{world: world, mail: make([][]chan []byte, world), gone: make([]chan struct{}, world), why: make([]*dist.RankError, world)}
	out := make([]*dist.Group, world)
	for r := range world {
		h.gone[r] = make(chan struct{})
		for range world {
			h.mail[r] = append(h.mail[r], make(chan []byte, 1))
		}
	}
	for r := range world {
		out[r] = dist.NewGroup(&link{hub: h, rank: r}, time.Minute)
	}
	return out
}

// Each runs do as every rank of a group of world, and waits. It returns the errors by rank.
func Each(world int, do func(g *dist.Group) error) []error {
	errs := make([]error, world)
	var all sync.WaitGroup
	for r, g := range Groups(world) {
		all.Go(func() {
			errs[r] = do(g)
			errs[r] = errors.Join(errs[r], g.Close(errs[r]))
		})
	}
	all.Wait()
	return errs
}

// hub is what the links of a group have in common.
type hub struct {
	world int
	mail  [][]chan []byte   // [to][from]
	gone  []chan struct{}   // closed by a rank that ends
	why   []*dist.RankError // nil: its work was done
}

type link struct {
	*hub
	rank int
}

func (l *link) Rank() int  { return l.rank }
func (l *link) World() int { return l.world }

// Exchange implements dist.Link.
func (l *link) Exchange(ctx context.Context, send [][]byte) ([][]byte, error) {
	for r, b := range send {
		select {
		case l.mail[r][l.rank] <- b:
		case <-l.gone[r]:
			return nil, l.ended(r)
		case <-ctx.Done():
			return nil, &dist.RankError{Rank: r, Err: context.Cause(ctx)}
		}
	}
	got := make([][]byte, l.world)
	for r := range got {
		select {
		case got[r] = <-l.mail[l.rank][r]:
			continue
		default:
		}
		select {
		case got[r] = <-l.mail[l.rank][r]:
		case <-l.gone[r]:
			select { // what it sent before it ended
			case got[r] = <-l.mail[l.rank][r]:
			default:
				return nil, l.ended(r)
			}
		case <-ctx.Done():
			return nil, &dist.RankError{Rank: r, Err: context.Cause(ctx)}
		}
	}
	return got, nil
}

func (l *link) ended(rank int) error {
	if why := l.why[rank]; why != nil {
		return why
	}
	return &dist.RankError{Rank: rank, Err: errors.New("it has ended")}
}

// Abort implements dist.Link.
func (l *link) Abort(cause *dist.RankError) { l.why[l.rank] = cause }

// Close implements dist.Link.
func (l *link) Close() error {
	close(l.gone[l.rank])
	return nil
}
