// Package track carries a run's metrics to people and programs: metrics.jsonl always, the console besides.
package track

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Record is what one log line holds. Names are TRL's.
type Record struct {
	Step   int
	Values map[string]float64 // NaN is written as null
}

// Tracker receives the records of a run in order.
type Tracker interface {
	Log(Record) error
}

// Multi sends every record to all of its trackers.
type Multi []Tracker

// Log sends r on; the errors of all trackers are joined.
func (m Multi) Log(r Record) error {
	var errs []error
	for _, t := range m {
		errs = append(errs, t.Log(r))
	}
	return errors.Join(errs...)
}

// leading is the order in which TRL prints its metrics; other names follow in alphabetical order.
var leading = []string{"loss", "grad_norm", "learning_rate", "num_tokens", "completions/", "rewards/", "reward", "reward_std",
	"frac_reward_zero_std", "criteria/", "sampling/", "kl", "entropy", "clip_ratio/", "cispo_clip_ratio", "vespo/phi_seq_mean", "step_time", "epoch"}

func rank(name string) int {
	name = strings.TrimPrefix(name, "eval_")
	for i, p := range leading {
		if name == p || strings.HasSuffix(p, "/") && strings.HasPrefix(name, p) {
			return i
		}
	}
	return len(leading)
}

// Names returns the record's metric names in the order in which they are shown.
func (r Record) Names() []string {
	names := make([]string, 0, len(r.Values))
	for n := range r.Values {
		names = append(names, n)
	}
	slices.SortFunc(names, func(a, b string) int {
		if d := rank(a) - rank(b); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	return names
}

// MarshalJSON writes one object: the step, then the values in the order of Names.
func (r Record) MarshalJSON() ([]byte, error) {
	b := fmt.Appendf(nil, `{"step": %d`, r.Step)
	for _, n := range r.Names() {
		key, err := json.Marshal(n)
		if err != nil {
			return nil, err
		}
		b = append(append(append(b, ", "...), key...), ": "...)
		if v := r.Values[n]; math.IsNaN(v) || math.IsInf(v, 0) {
			b = append(b, "null"...)
		} else if b, err = appendFloat(b, v); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

func appendFloat(b []byte, v float64) ([]byte, error) {
	f, err := json.Marshal(v)
	return append(b, f...), err
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (r *Record) UnmarshalJSON(b []byte) error {
	var raw map[string]*float64
	if err := json.Unmarshal(b, &raw); err != nil {
		return err
	}
	r.Values = make(map[string]float64, len(raw))
	for n, v := range raw {
		switch {
		case n == "step" && v != nil:
			r.Step = int(*v)
		case v == nil:
			r.Values[n] = math.NaN()
		default:
			r.Values[n] = *v
		}
	}
	return nil
}
