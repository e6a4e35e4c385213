package amaris

import (
	"fmt"
	"strings"
)

// String words the record for the memory and for later updates.
func (r Record) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Update record: %s", r.Strategy)
	if r.Focus != "" {
		fmt.Fprintf(&b, ", because of %s", strings.ReplaceAll(r.Focus, "_", " "))
	}
	b.WriteString(".\n")
	if r.Missing != "" {
		fmt.Fprintf(&b, "No change: the judge gave no usable answer (%s).\n", r.Missing)
	}
	if r.Asked != "" {
		fmt.Fprintf(&b, "A %s update was wanted, but no operation of it was valid.\n", r.Asked)
	}
	if r.Reasoning != "" {
		fmt.Fprintf(&b, "Reasoning: %s\n", r.Reasoning)
	}
	for _, o := range r.Ops {
		fmt.Fprintf(&b, "- %s\n", o)
	}
	for _, d := range r.Dropped {
		fmt.Fprintf(&b, "- not done, because %s: %s\n", d.Why, d.Op)
	}
	if r.Lesson != "" {
		fmt.Fprintf(&b, "Lesson: %s\n", r.Lesson)
	}
	fmt.Fprintf(&b, "The rubric is version %d now:", r.Version)
	for _, c := range r.Rubric {
		fmt.Fprintf(&b, "\n%s", c)
	}
	return b.String()
}

// String words the operation on one line.
func (o Op) String() string {
	var b strings.Builder
	b.WriteString(o.Kind)
	if len(o.Targets) > 0 {
		b.WriteString(" " + strings.Join(o.Targets, ", "))
	}
	switch o.Kind {
	case OpUpdate:
		fmt.Fprintf(&b, ": %s", o.Text)
	case OpReweight:
		if o.Before != nil {
			fmt.Fprintf(&b, " from %+.4g", *o.Before)
		}
		fmt.Fprintf(&b, " to %+.4g", o.Weight)
	}
	for i, c := range o.Made {
		sign := ", "
		if i == 0 && o.Kind == OpCreate {
			sign = " "
		} else if i == 0 {
			sign = " into "
		}
		fmt.Fprintf(&b, "%s%s (%+.4g) %s", sign, c.ID, c.Weight, c.Text)
	}
	if o.Reason != "" {
		fmt.Fprintf(&b, " [%s]", o.Reason)
	}
	return b.String()
}
