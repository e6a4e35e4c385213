package criteria

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Kinds of change.
const (
	Added      = "added"
	Removed    = "removed"
	Reweighted = "reweighted"
	Reworded   = "reworded"
	Changed    = "changed" // anything else of a criterion
	Reordered  = "reordered"
)

// Change is one difference between two sets.
type Change struct {
	Kind   string
	ID     string    // of the criterion; empty if Reordered
	Before Criterion // zero if Added or Reordered
	After  Criterion // zero if Removed or Reordered
}

// Diff lists what is different in b: what was removed, in the order of a, then what was added or became another, in the
// order of b. Criteria are told apart by id. Scope and version do not count.
func Diff(a, b Set) []Change {
	var out []Change
	var kept, order []string // ids of both, as a and as b order them
	for _, c := range a.All() {
		if _, there := b.Find(c.ID); there {
			kept = append(kept, c.ID)
		} else {
			out = append(out, Change{Kind: Removed, ID: c.ID, Before: c})
		}
	}
	for _, c := range b.All() {
		old, there := a.Find(c.ID)
		if !there {
			out = append(out, Change{Kind: Added, ID: c.ID, After: c})
			continue
		}
		order = append(order, c.ID)
		out = append(out, changes(old, c)...)
	}
	if !slices.Equal(kept, order) {
		out = append(out, Change{Kind: Reordered})
	}
	return out
}

// changes are those of one criterion.
func changes(a, b Criterion) []Change {
	var out []Change
	add := func(kind string) { out = append(out, Change{kind, b.ID, a, b}) }
	if a.Weight != b.Weight {
		add(Reweighted)
	}
	if a.Text != b.Text {
		add(Reworded)
	}
	a.Weight, a.Text = b.Weight, b.Text
	if !a.Equal(b) {
		add(Changed)
	}
	return out
}

// String words the change for people, over one line or several, without a line break at the end.
func (c Change) String() string {
	switch c.Kind {
	case Added:
		return "+ " + c.After.String()
	case Removed:
		return "- " + c.Before.String()
	case Reweighted:
		return fmt.Sprintf("~ %s reweighted %+.4g -> %+.4g", c.ID, c.Before.Weight, c.After.Weight)
	case Reworded:
		return fmt.Sprintf("~ %s reworded\n    - %s\n    + %s", c.ID, oneLine(c.Before.Text), oneLine(c.After.Text))
	case Changed:
		return "~ " + c.ID + " changed " + strings.Join(differences(c.Before, c.After), ", ")
	}
	return "~ criteria reordered"
}

// differences words what else is not the same.
func differences(a, b Criterion) []string {
	var out []string
	say := func(name string, x, y any) {
		if p, q := compact(x), compact(y); p != q {
			out = append(out, fmt.Sprintf("%s %s -> %s", name, p, q))
		}
	}
	say("category", a.Category, b.Category)
	say("anchor", a.Anchor, b.Anchor)
	say("polarity", a.Polarity, b.Polarity)
	say("max_score", a.MaxScore, b.MaxScore)
	say("check", a.Check, b.Check)
	say("origin", a.Origin, b.Origin)
	say("step", a.Step, b.Step)
	return out
}

func compact(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// String is the criterion on one line, as people read it: id (weight, what else is said of it) text.
func (c Criterion) String() string {
	about := []string{fmt.Sprintf("%+.4g", c.Weight)}
	for _, word := range []string{c.Category, c.Polarity} {
		if word != "" {
			about = append(about, word)
		}
	}
	if c.Anchor {
		about = append(about, "anchor")
	}
	if c.MaxScore > 1 {
		about = append(about, fmt.Sprintf("0 to %d", c.MaxScore))
	}
	if c.Check != nil {
		about = append(about, "check "+compact(c.Check))
	}
	return strings.TrimRight(fmt.Sprintf("%s (%s) %s", c.ID, strings.Join(about, ", "), oneLine(c.Text)), " ")
}

// oneLine is a text on one line without control characters, which may come from a data set.
func oneLine(text string) string {
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text)), " ")
}
