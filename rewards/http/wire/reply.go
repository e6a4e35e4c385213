package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/rubicon-rl/rubicon/rewards"
)

// Result is what a reply says of one item. Either Score or Rewards is given.
type Result struct {
	ID      string   `json:"id"`    // the item's
	Score   *float64 `json:"score"` // null: cannot be scored
	Reason  string   `json:"reason"`
	Parts   []Part   `json:"parts"`   // optional: what the score is made of, to be shown
	Rewards []Reward `json:"rewards"` // instead of the score: several reward functions; their weighted sum is the score
}

// Part is one criterion's share of a score.
type Part struct {
	Name   string   `json:"name"`
	Weight *float64 `json:"weight"` // absent: 1
	Credit *float64 `json:"credit"` // in [0,1]
	Reason string   `json:"reason"`
}

// Reward is the value of one of several reward functions. All results have the same functions with the same weights.
type Reward struct {
	Name   string   `json:"name"`
	Weight *float64 `json:"weight"` // absent: 1
	Value  *float64 `json:"value"`  // null: this function cannot score it
}

// Decode reads the reply to the batch: one score per completion. An error says which completion's result is wrong, or
// that the reply as a whole is.
func (b Batch) Decode(reply []byte) ([]rewards.Score, error) {
	results, err := b.results(reply)
	if err != nil {
		return nil, err
	}
	if len(results) != len(b.rows) {
		return nil, b.Wrap(fmt.Errorf("the reply has %d results for %d items: give one for each, in their order", len(results), len(b.rows)))
	}
	scores := make([]rewards.Score, len(results))
	for i, r := range results {
		if want := b.id(i); r.ID != want {
			return nil, b.at(i, fmt.Errorf("the result has the id %q, want %q: give each item's id back, in their order", r.ID, want))
		}
		if scores[i], err = r.score(); err != nil {
			return nil, b.at(i, err)
		}
	}
	return scores, nil
}

// results reads {version, error, results}, one result at a time, so that a fault can be placed.
func (b Batch) results(reply []byte) ([]Result, error) {
	d := json.NewDecoder(bytes.NewReader(reply))
	d.DisallowUnknownFields()
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, b.garbled(reply, errors.New("not a JSON object"))
	}
	var results []Result
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, b.garbled(reply, err)
		}
		switch key {
		case "version":
			var version int
			if err = d.Decode(&version); err == nil && version != Version {
				err = fmt.Errorf("its version is %d, this run speaks %d", version, Version)
			}
		case "error":
			var text string
			if err = d.Decode(&text); err == nil && text != "" {
				return nil, b.Wrap(fmt.Errorf("the scorer failed: %s", text))
			}
		case "results":
			if results, err = b.list(d); placed(err) {
				return nil, err
			}
		default:
			err = fmt.Errorf("unknown key %q: use version, results and error", key)
		}
		if err != nil {
			return nil, b.garbled(reply, err)
		}
	}
	if _, err := d.Token(); err != nil {
		return nil, b.garbled(reply, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, b.garbled(reply, errors.New("something follows it"))
	}
	return results, nil
}

// list reads the list of results.
func (b Batch) list(d *json.Decoder) ([]Result, error) {
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return nil, errors.New("results is not a list")
	}
	var results []Result
	for d.More() {
		var r Result
		if err := d.Decode(&r); err != nil {
			if i := len(results); i < len(b.rows) {
				return nil, b.at(i, fmt.Errorf("its result cannot be read: %w%s", err, hint(err)))
			}
			return nil, err
		}
		results = append(results, r)
	}
	_, err := d.Token()
	return results, err
}

// hint adds what to do about an error of JSON: NaN, Infinity and numbers out of range are not part of it.
func hint(err error) string {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return ": the reply is cut off"
	}
	if errors.As(err, &syntax) || errors.As(err, &kind) && strings.HasPrefix(kind.Value, "number ") {
		return ": numbers must be finite; write null for what has no score"
	}
	return ""
}

// placed reports whether an error names its completion.
func placed(err error) bool {
	var at *rewards.Error
	return errors.As(err, &at)
}

// garbled says that the reply as a whole is wrong, and shows it.
func (b Batch) garbled(reply []byte, err error) error {
	return b.Wrap(fmt.Errorf("the reply is not {\"results\": [...]}: %w%s: %s", err, hint(err), Excerpt(reply)))
}

// Excerpt is the beginning of something unexpected, quoted for an error message.
func Excerpt(text []byte) string { return fmt.Sprintf("%.200q", bytes.TrimSpace(text)) }

// score checks a result and takes it over.
func (r *Result) score() (s rewards.Score, err error) {
	s.Reason = r.Reason
	if s.Parts, err = r.parts(); err != nil {
		return s, err
	}
	switch {
	case r.Score != nil && r.Rewards != nil:
		return s, errors.New("score and rewards are given: leave score out, it is the weighted sum of rewards")
	case r.Rewards != nil:
		if s.Columns, err = r.columns(); err != nil {
			return s, err
		}
		s.Value, s.Unscorable = sum(s.Columns)
	case r.Score != nil:
		s.Value = *r.Score
	default:
		s.Value, s.Unscorable = math.NaN(), true
	}
	s.NotMeant = s.Unscorable
	if s.Unscorable && s.Reason == "" {
		s.Reason = "the scorer gave no score and no reason"
	}
	if !s.Unscorable && (math.IsNaN(s.Value) || math.IsInf(s.Value, 0)) {
		return s, errors.New("the weighted sum of its rewards is not finite")
	}
	return s, nil
}

func (r *Result) parts() ([]rewards.Part, error) {
	var parts []rewards.Part
	for _, p := range r.Parts {
		switch {
		case p.Name == "":
			return nil, errors.New("a part has no name")
		case p.Credit == nil || *p.Credit < 0 || *p.Credit > 1:
			return nil, fmt.Errorf("part %s has no credit between 0 and 1", p.Name)
		}
		parts = append(parts, rewards.Part{Name: p.Name, Weight: orOne(p.Weight), Credit: *p.Credit, Reason: p.Reason})
	}
	return parts, nil
}

func (r *Result) columns() ([]rewards.Column, error) {
	if len(r.Rewards) == 0 {
		return nil, errors.New("rewards is empty: give at least one, or a score")
	}
	var columns []rewards.Column
	for _, w := range r.Rewards {
		if w.Name == "" {
			return nil, errors.New("a reward has no name")
		}
		c := rewards.Column{Name: w.Name, Weight: orOne(w.Weight), Value: math.NaN()}
		if w.Value != nil {
			c.Value = *w.Value
		}
		columns = append(columns, c)
	}
	return columns, nil
}

// sum is the weighted sum of the columns that have a value; none: NaN.
func sum(columns []rewards.Column) (value float64, none bool) {
	none = true
	for _, c := range columns {
		if !math.IsNaN(c.Value) {
			value += c.Weight * c.Value
			none = false
		}
	}
	if none {
		return math.NaN(), true
	}
	return value, false
}

func orOne(x *float64) float64 {
	if x == nil {
		return 1
	}
	return *x
}
