package policy

import (
	"context"
	"fmt"
	"sync"
)

// Replier answers the turns of a request's samples. It is called when a turn has ended, for several samples at a time, while
// others are being generated; ctx ends when the generation does. turn are the tokens of the turn, finish says how it ended. An error
// ends the generation.
type Replier func(ctx context.Context, sample int, turn []int32, finish string) (Reply, error)

// Reply is what follows a turn of a sample. One without tokens, or for which the context has no room, ends the sample.
type Reply struct {
	Tokens       []int32    // what the policy sees: an observation with what the conversation's form puts around it
	MaxNewTokens int        // of the next turn; 0: as GenerateOptions say
	Constraint   Constraint // of the next turn; nil: none
}

// Turn is the tokens [Start, End) of a sample.
type Turn struct{ Start, End int }

// replies are the turns of a generation that wait for their reply.
type replies struct {
	ctx     context.Context
	waiting int
	come    chan answered
	calls   sync.WaitGroup
}

// answered is what a Replier returned for a sequence.
type answered struct {
	s     *sequence
	reply Reply
	err   error
}

// open gets ready for as many as samples calls at a time.
func (r *replies) open(ctx context.Context, samples int) (shut func()) {
	ctx, cancel := context.WithCancel(ctx)
	r.ctx, r.come = ctx, make(chan answered, samples)
	return func() {
		cancel()
		r.calls.Wait()
	}
}

// ask has the turn that s has ended replied to.
func (r *replies) ask(s *sequence) {
	s.parked = true
	r.waiting++
	turn := s.generated()[s.turn:]
	r.calls.Go(func() {
		reply, err := s.replier(r.ctx, s.sample, turn[:len(turn):len(turn)], s.finish)
		r.come <- answered{s, reply, err}
	})
}

// collect takes the replies that have come, all that do if wait says that there is nothing else to do, and returns the samples that
// end.
func (d *decoder) collect(ctx context.Context) ([]*sequence, error) {
	var ended []*sequence
	for r := &d.replies; r.waiting > 0; {
		a, ok, err := r.next(ctx, d.queue.idle())
		if err != nil || !ok {
			return ended, err
		}
		r.waiting--
		if a.err != nil {
			return nil, fmt.Errorf("policy: request %d, sample %d, reply to turn %d: %w", a.s.request, a.s.sample, len(a.s.turns), a.err)
		}
		if more, err := a.s.goOn(a.reply, d.m.cfg.Vocab); err != nil {
			return nil, err
		} else if !more {
			ended = append(ended, a.s)
			d.queue.leave(a.s, true)
		}
	}
	return ended, nil
}

// next is a reply that has come, or, if wait is set, the next one that does.
func (r *replies) next(ctx context.Context, wait bool) (a answered, ok bool, err error) {
	if !wait {
		select {
		case a := <-r.come:
			return a, true, nil
		default:
			return answered{}, false, nil
		}
	}
	select {
	case a := <-r.come:
		return a, true, nil
	case <-ctx.Done():
		return answered{}, false, fmt.Errorf("policy: generation stopped: %w", ctx.Err())
	}
}

// idle says that no running sample has anything to compute.
func (q *queue) idle() bool {
	for _, s := range q.running {
		if !s.parked {
			return false
		}
	}
	return true
}

// endTurn notes that a turn has ended.
func (s *sequence) endTurn() {
	s.turns = append(s.turns, Turn{s.turn, len(s.generated())})
}

// goOn appends a reply and begins the next turn; false: there is none.
func (s *sequence) goOn(r Reply, vocab int) (bool, error) {
	s.parked = false
	if len(r.Tokens) == 0 {
		return false, nil
	}
	segment := Segment{Parent: Root, Tokens: r.Tokens}
	if err := segment.check(0, vocab); err != nil {
		return false, fmt.Errorf("policy: request %d, sample %d, reply to turn %d: %w", s.request, s.sample, len(s.turns), err)
	}
	if len(s.generated())+len(r.Tokens) >= s.limit {
		s.finish = FinishLength
		return false, nil
	}
	s.tokens = append(s.tokens, r.Tokens...)
	for range r.Tokens {
		s.logp, s.filtered = append(s.logp, 0), append(s.filtered, 0)
	}
	if s.have != nil {
		s.see(r.Tokens...)
	}
	s.turn, s.finish = len(s.generated()), ""
	most := r.MaxNewTokens
	if most == 0 {
		most = s.params.MaxNewTokens
	}
	s.end = min(s.limit, s.turn+most)
	next := Request{Constraint: r.Constraint}
	if err := next.checkConstraint(s.end-s.turn, s.params); err != nil {
		return false, fmt.Errorf("policy: request %d, sample %d, turn %d: %w", s.request, s.sample, len(s.turns)+1, err)
	}
	s.matcher, s.allowed = nil, nil
	s.constrain(&next, vocab)
	return true, nil
}
