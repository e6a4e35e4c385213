package rare

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"

	"github.com/rubicon-rl/rubicon/rewards/criteria"
)

// state is a rubric that has changed at least once. It never changes itself; follow makes the next one. A nil state is that of a
// rubric as it was at first, which is not kept: its row has it.
type state struct {
	Set      criteria.Set         `json:"set"`
	Visits   int                  `json:"visits"`   // since its first switch, that one included
	Switched []int                `json:"switched"` // the visit of each place's last switch; 0: none yet
	Retired  []criteria.Criterion `json:"retired"`  // what was replaced, the oldest first
}

// retired are the criteria that were replaced.
func (s *state) retired() []criteria.Criterion {
	if s == nil {
		return nil
	}
	return s.Retired
}

// rested is how many visits after its last switch place k is at the next one.
func (s *state) rested(k int) int {
	if s == nil || s.Switched[k] == 0 {
		return math.MaxInt
	}
	return s.Visits + 1 - s.Switched[k]
}

// follow is the rubric's state after a visit.
func (s *state) follow(v *visit) *state {
	if s == nil && len(v.switches) == 0 {
		return nil
	}
	if s == nil {
		s = &state{Switched: make([]int, v.set.Len())}
	}
	next := &state{Set: v.next, Visits: s.Visits + 1, Switched: append([]int{}, s.Switched...)}
	next.Retired = append(next.Retired, s.Retired...)
	for _, w := range v.switches {
		next.Switched[w.place] = next.Visits
		next.Retired = append(next.Retired, w.old)
	}
	return next
}

// states are the rubrics of a run that have changed, as they are and, of those that the latest step looked at, as they were
// before it, so that the step can be made once more.
type states struct {
	step int // the latest
	now  map[string]*state
	was  map[string]*state // before the step; nil: a first rubric
}

func newStates() states {
	return states{step: -1, now: map[string]*state{}, was: map[string]*state{}}
}

// before is a rubric as it was before a step.
func (s *states) before(step int, scope string) *state {
	if was, ok := s.was[scope]; ok && step == s.step {
		return was
	}
	return s.now[scope]
}

// begin makes step the latest.
func (s *states) begin(step int) {
	if step != s.step {
		s.step, s.was = step, map[string]*state{}
	}
}

// set keeps what a visit of the latest step made of a rubric.
func (s *states) set(scope string, next *state) {
	if _, ok := s.was[scope]; !ok {
		s.was[scope] = s.now[scope]
	}
	if next == nil {
		delete(s.now, scope)
	} else {
		s.now[scope] = next
	}
}

// digest identifies a list of criteria.
func digest(list []criteria.Criterion) (string, error) {
	text, err := json.Marshal(list)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}
