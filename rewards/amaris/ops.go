package amaris

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rubicon-rl/rubicon/rewards/criteria"
)

// Kinds of operation (sec. 2.3).
const (
	OpCreate   = "create"
	OpUpdate   = "update"
	OpDelete   = "delete"
	OpReweight = "reweight"
	OpMerge    = "merge"
	OpSplit    = "split"
)

// Op is one operation on a rubric.
type Op struct {
	Kind    string               `json:"kind"`
	Targets []string             `json:"targets,omitempty"` // ids of what it works on; none for create
	Text    string               `json:"text,omitempty"`    // update: the new text
	Weight  float64              `json:"weight,omitempty"`  // reweight: the new weight
	Before  *float64             `json:"before,omitempty"`  // reweight: the old weight, once it is applied
	Made    []criteria.Criterion `json:"made,omitempty"`    // create, merge, split; with ids once they are applied
	Reason  string               `json:"reason,omitempty"`
}

// Dropped is an operation that was not applied.
type Dropped struct {
	Op  Op     `json:"op"`
	Why string `json:"why"`
}

// limits are what operations must keep to.
type limits struct {
	weight float64 // magnitude
	count  int     // of criteria
}

// changed lists the ids that an applied operation changed or took away, and those that it changed or made.
func (o Op) changed() (before, after []string) {
	for _, c := range o.Made {
		after = append(after, c.ID)
	}
	if o.Kind == OpUpdate || o.Kind == OpReweight {
		after = o.Targets
	}
	return o.Targets, after
}

// claims are what an operation takes of its targets, so that another must not: their text, their weight, or all.
func (o Op) claims() []string {
	var out []string
	for _, id := range o.Targets {
		switch o.Kind {
		case OpUpdate:
			out = append(out, "text of "+id)
		case OpReweight:
			out = append(out, "weight of "+id)
		default:
			out = append(out, "text of "+id, "weight of "+id)
		}
	}
	return out
}

// check says what is wrong with an operation on set by itself.
func (o Op) check(set criteria.Set, l limits) error {
	for _, id := range o.Targets {
		c, there := set.Find(id)
		if !there {
			return fmt.Errorf("there is no criterion %q", id)
		}
		if c.Anchor {
			return fmt.Errorf("%s is an anchor", id)
		}
		if o.Kind == OpUpdate && sameText(c.Text, o.Text) {
			return fmt.Errorf("%s has this text already", id)
		}
		if o.Kind == OpReweight && c.Weight == o.Weight {
			return fmt.Errorf("%s has this weight already", id)
		}
		if c.Check != nil && (o.Kind == OpUpdate || o.Kind == OpMerge || o.Kind == OpSplit) {
			return fmt.Errorf("%s is scored by a program: it can only be reweighted or deleted", id)
		}
	}
	return errors.Join(o.counts(), o.texts(), o.weights(l))
}

// counts checks how many criteria an operation takes and makes.
func (o Op) counts() error {
	distinct := len(slices.Compact(slices.Sorted(slices.Values(o.Targets))))
	switch {
	case distinct < len(o.Targets):
		return errors.New("it names a criterion twice")
	case o.Kind == OpMerge && len(o.Targets) < 2:
		return errors.New("a merge needs two or more criteria")
	case o.Kind == OpSplit && len(o.Made) < 2:
		return errors.New("a split needs two or more parts")
	}
	return nil
}

func (o Op) texts() error {
	texts := []string{o.Text}
	if o.Kind != OpUpdate {
		texts = nil
	}
	for _, c := range o.Made {
		texts = append(texts, c.Text)
	}
	for i, text := range texts {
		switch {
		case text == "":
			return errors.New("a text is empty")
		case !plain(text):
			return errors.New("a text has marks of a fence or a chat template")
		case slices.ContainsFunc(texts[:i], func(t string) bool { return sameText(t, text) }):
			return errors.New("it has the same text twice")
		}
	}
	return nil
}

func (o Op) weights(l limits) error {
	var weights []float64
	if o.Kind == OpReweight {
		weights = append(weights, o.Weight)
	}
	for _, c := range o.Made {
		weights = append(weights, c.Weight)
	}
	for _, w := range weights {
		if math.Abs(w) > l.weight || math.IsNaN(w) {
			return fmt.Errorf("weight %v is not within -%g and %g", w, l.weight, l.weight)
		}
	}
	return nil
}

// written are the texts that an operation brings into the rubric.
func (o Op) written() []string {
	var out []string
	if o.Kind == OpUpdate {
		out = append(out, o.Text)
	}
	for _, c := range o.Made {
		out = append(out, c.Text)
	}
	return out
}

// sameText compares texts as a reader would: letters, digits and signs, not case, blanks or a final stop.
func sameText(a, b string) bool { return bare(a) == bare(b) }

func bare(text string) string {
	return strings.TrimRight(strings.ToLower(strings.Join(strings.Fields(text), " ")), ".")
}
