package policy

import (
	"errors"
	"fmt"
)

// Constraint limits what samples may say, such as to JSON of one schema (policy/grammar). It may serve several requests
// at once.
type Constraint interface {
	// Least is the fewest tokens that a sample needs, its end-of-sequence token included.
	Least() int
	// Begin returns the state of a sample that has no token yet.
	Begin() Matcher
}

// Matcher follows one sample.
type Matcher interface {
	// Mask makes allowed, a bit set over the vocabulary, the ids that may come next if at most remaining more tokens can
	// be generated, the next one included: those after which the sample can still be finished.
	Mask(allowed []uint64, remaining int) error
	// Accept moves behind id, one of those that Mask allowed last.
	Accept(id int32)
}

// checkConstraint refuses a constraint that limit tokens cannot satisfy.
func (r *Request) checkConstraint(limit int, p *SamplingParams) error {
	switch {
	case r.Constraint == nil:
		return nil
	case len(p.Stop) > 0:
		return errors.New("a constrained sample ends by itself, a stop string would cut it: leave one of them out")
	case r.Constraint.Least() > limit:
		return fmt.Errorf("the constraint needs at least %d tokens and there is room for %d: raise max new tokens or shorten the prompt", r.Constraint.Least(), limit)
	}
	return nil
}

// constrain makes the sequence one of r's, whose constraint it follows.
func (s *sequence) constrain(r *Request, vocab int) {
	if r.Constraint != nil {
		s.matcher, s.allowed = r.Constraint.Begin(), make([]uint64, (vocab+63)/64)
	}
}

// mask brings the sequence's allowed ids up to date; nil: all are.
func (s *sequence) mask() ([]uint64, error) {
	if s.matcher == nil {
		return nil, nil
	}
	err := s.matcher.Mask(s.allowed, s.end-len(s.generated()))
	if err != nil {
		return nil, fmt.Errorf("policy: request %d, sample %d: %w", s.request, s.sample, err)
	}
	return s.allowed, nil
}
