// Package criteria is the vocabulary of rubrics: a Criterion says what is looked for and what it weighs, a Set is a
// versioned list of them that never changes, a Log tells how sets came about. It reads the rubric formats of public data
// and knows no judge: package scoring asks one.
package criteria

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rubicon-rl/rubicon/internal/suggest"
)

// What a Set may hold at most.
const (
	MaxCriteria = 256  // criteria
	MaxText     = 4000 // characters of a criterion's text
	MaxScore    = 100  // of one criterion
	maxWeight   = 1e9  // keeps every sum of weights finite
)

// Polarities of a criterion. Under either a higher score is a better answer.
const (
	Positive = "positive" // full credit when a quality is fully there
	Negative = "negative" // full credit when a defect is absent
)

// Criterion is one thing that is looked for in a completion.
type Criterion struct {
	ID       string         `json:"id"`                  // within its Set: letters, digits, _ . and -
	Text     string         `json:"text,omitempty"`      // what the judge is told
	Weight   float64        `json:"weight"`              // below 0: a penalty; 0: only shown. Default in JSON: 1
	Category string         `json:"category,omitempty"`  // one of Categories, or empty
	Anchor   bool           `json:"anchor,omitempty"`    // no model may edit, delete, merge or reweight it
	Polarity string         `json:"polarity,omitempty"`  // Positive, Negative, or empty: not said
	MaxScore int            `json:"max_score,omitempty"` // the score is a whole number from 0 to this; credit is score / MaxScore. 0: not said
	Check    map[string]any `json:"check,omitempty"`     // a program instead of a judge: the settings of a check of rewards/verify. It must not be changed
	Origin   string         `json:"origin,omitempty"`    // where it comes from: a format's name, the id that it replaced
	Step     int            `json:"step,omitempty"`      // at which it was made
}

// Categories lists what Category may be, beside empty.
func Categories() []string {
	return []string{"correctness", "instruction_following", "safety", "communication_quality", "anti_reward_hacking", "bonus"}
}

// UnmarshalJSON reads a criterion strictly: unknown keys are errors, a missing weight is 1.
func (c *Criterion) UnmarshalJSON(data []byte) error {
	type plain Criterion // without this method
	out := plain{Weight: 1}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&out); err != nil {
		return err
	}
	*c = Criterion(out)
	return nil
}

// Equal reports whether two criteria are the same in everything. Checks are compared as JSON.
func (c Criterion) Equal(o Criterion) bool {
	return c.ID == o.ID && c.Text == o.Text && c.Weight == o.Weight && c.Category == o.Category && c.Anchor == o.Anchor &&
		c.Polarity == o.Polarity && c.MaxScore == o.MaxScore && c.Origin == o.Origin && c.Step == o.Step && sameJSON(c.Check, o.Check)
}

func sameJSON(a, b map[string]any) bool {
	if len(a) == 0 || len(b) == 0 {
		return len(a) == len(b)
	}
	x, errA := json.Marshal(a)
	y, errB := json.Marshal(b)
	return errA == nil && errB == nil && bytes.Equal(x, y)
}

// idForm is what servers of structured output take as the name of a property.
var idForm = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// normal returns c in the form in which a Set keeps it, or what is wrong with it.
func (c Criterion) normal() (Criterion, error) {
	switch {
	case c.ID == "":
		return c, errors.New("has no id: give it one")
	case !idForm.MatchString(c.ID):
		return c, fmt.Errorf("id %q: use 1 to 64 letters, digits, _ . and -", c.ID)
	case strings.TrimSpace(c.Text) == "" && len(c.Check) == 0:
		return c, errors.New("text is empty: say what is looked for, or set check")
	case !utf8.ValidString(c.Text) || !utf8.ValidString(c.Origin):
		return c, errors.New("text or origin is not UTF-8")
	case utf8.RuneCountInString(c.Text) > MaxText:
		return c, fmt.Errorf("text has %d characters: use at most %d", utf8.RuneCountInString(c.Text), MaxText)
	case math.IsNaN(c.Weight) || math.IsInf(c.Weight, 0):
		return c, fmt.Errorf("weight is %v: give a finite number", c.Weight)
	case math.Abs(c.Weight) > maxWeight:
		return c, fmt.Errorf("weight is %v: give a number between -%g and %g", c.Weight, maxWeight, maxWeight)
	case c.Category != "" && !slices.Contains(Categories(), c.Category):
		return c, unknown("category", c.Category, Categories())
	case c.Polarity != "" && c.Polarity != Positive && c.Polarity != Negative:
		return c, unknown("polarity", c.Polarity, []string{Positive, Negative})
	case c.MaxScore < 0 || c.MaxScore > MaxScore:
		return c, fmt.Errorf("max_score is %d: use 1 to %d, or 0 for the default", c.MaxScore, MaxScore)
	case c.Step < 0:
		return c, fmt.Errorf("step is %d: use 0 or more", c.Step)
	}
	if c.Weight == 0 {
		c.Weight = 0 // not -0, so that equal sets have equal bytes
	}
	if len(c.Check) == 0 {
		c.Check = nil
		return c, nil
	}
	check, err := plain(c.Check)
	if err != nil {
		return c, fmt.Errorf("check %w", err)
	}
	c.Check = check.(map[string]any) // JSON of a map is a map
	return c, nil
}

// plain returns value as encoding/json decodes its JSON: a copy made of maps, lists, texts, float64 and bool.
func plain(value any) (any, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("is not JSON (%w): numbers must be finite", err)
	}
	var out any
	err = json.Unmarshal(text, &out)
	return out, err
}

// unknown is the error for a name that is not among known.
func unknown(what, name string, known []string) error {
	if near := suggest.Nearest(name, known); near != "" {
		return fmt.Errorf("unknown %s %q: did you mean %q?", what, name, near)
	}
	return fmt.Errorf("unknown %s %q: use one of %s", what, name, strings.Join(known, ", "))
}
