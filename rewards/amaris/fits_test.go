package amaris

import (
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/rewards/criteria"
)

// A checkpoint is of one scope, and of a run that began with a rubric or made its first one; another run does not go on from it.
func TestACheckpointOfAnotherRunIsRefused(t *testing.T) {
	set := func(scope string) []rubric {
		s, err := criteria.NewSet(scope, 1, []criteria.Criterion{{ID: "a", Text: "x", Weight: 1}})
		if err != nil {
			t.Fatal(err)
		}
		return []rubric{{Set: s}}
	}
	given := []any{map[string]any{"id": "a", "text": "x"}}
	for _, c := range []struct {
		options Options
		in      saved
		says    string
	}{
		{Options{Scope: scopeGlobal, Rubric: given}, saved{Rubrics: set(criteria.Global)}, ""},
		{Options{Scope: scopeGlobal, Rubric: given}, saved{Rubrics: set("p1")}, "not of scope global"},
		{Options{Scope: scopeInstance, Column: "c"}, saved{Rubrics: set(criteria.Global)}, "not of scope instance"},
		{Options{Scope: scopeInstance, Column: "c"}, saved{Rubrics: set("p1")}, ""},
		{Options{Scope: scopeGlobal}, saved{Rubrics: set(criteria.Global)}, "began with a rubric"},
		{Options{Scope: scopeGlobal}, saved{Rubrics: set(criteria.Global), Start: &coldStart{}}, ""},
		{Options{Scope: scopeGlobal}, saved{}, ""},
	} {
		c.options.Format, c.options.MaxCriteria = "auto", 1
		o, err := newOrigin(c.options)
		if err != nil {
			t.Fatal(err)
		}
		err = (&Provider{options: c.options, origin: o}).fits(c.in)
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: error %v, want %q", c.options, err, c.says)
		}
	}
}
