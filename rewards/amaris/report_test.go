package amaris

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/rewards/criteria"
)

// A log of ten steps, written by hand: phases are steps 1-2, 3-4, 5-6, 7-8, 9-10.
func handMade(t *testing.T) []criteria.Event {
	set := func(version int, list ...criteria.Criterion) *criteria.Set {
		s, err := criteria.NewSet(criteria.Global, version, list)
		if err != nil {
			t.Fatal(err)
		}
		return &s
	}
	c := func(id string, weight float64) criteria.Criterion {
		return criteria.Criterion{ID: id, Text: "Text of " + id + ".", Weight: weight, Category: "bonus"}
	}
	anchor, safe := c("a0", 1), c("c1", 1)
	anchor.Anchor, safe.Category = true, "safety"
	back := c("c4", 1)
	back.Text = "text of c2"
	event := func(step int, strategy, focus string, s *criteria.Set, ops ...criteria.Op) criteria.Event {
		return criteria.Event{
			Step: step, Scope: criteria.Global, Kind: criteria.Update, Set: s, Ops: ops,
			Note: map[string]any{"strategy": strategy, "focus": focus, "learnt_step": step - 1},
		}
	}
	heavy, light := safe, safe
	heavy.Weight, light.Weight = 2, 1.4
	return []criteria.Event{
		{Step: 0, Scope: criteria.Global, Kind: criteria.Init, Set: set(1, anchor, safe)},
		event(2, Defensive, "length_gaming", set(2, anchor, heavy, c("c2", 1)), // learnt from step 1
			criteria.Op{Kind: OpReweight, Before: []string{"c1"}, After: []string{"c1"}}, criteria.Op{Kind: OpCreate, After: []string{"c2"}}),
		event(3, Curriculum, "conciseness", nil),
		event(4, Defensive, "length_gaming", set(3, anchor, light), // c1 back by 0.6 and c2 gone after 2 steps: two reversals
			criteria.Op{Kind: OpReweight, Before: []string{"c1"}, After: []string{"c1"}}, criteria.Op{Kind: OpDelete, Before: []string{"c2"}}),
		event(9, Maintenance, "already_compact", set(4, anchor, light, back), // c2's text is back after 5 steps: a third
			criteria.Op{Kind: OpCreate, After: []string{"c4"}}),
	}
}

// Every figure of the report by hand.
func TestReport(t *testing.T) {
	r, err := NewReport(handMade(t), 10)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		got  any
		want string
	}{
		{"strategies", r.Strategies, "map[curriculum:[1 0 0 0 0] defensive:[1 1 0 0 0] maintenance:[0 0 0 1 0]]"},
		{"focuses", r.Focuses, "map[curriculum:map[conciseness:[1 0 0 0 0]] defensive:map[length_gaming:[1 1 0 0 0]] maintenance:map[already_compact:[0 0 0 1 0]]]"},
		// c2 is there in steps 2 and 3 (from 0), which are the second phase; c4 in step 9, half of the fifth.
		{"composition", r.Composition, "map[bonus:[0 1 0 0 0.5] safety:[1 1 1 1 1]]"},
		{"operations", r.Ops, "map[create:map[defensive:1 maintenance:1] delete:map[defensive:1] reweight:map[defensive:2]]"},
		{"created", r.Created, "map[bonus:2]"},
		{"reversals", r.Reversals, "3"},
		{"updates", r.Updates, "4"},
	} {
		if got := fmt.Sprint(c.got); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	var text strings.Builder
	if err := r.Print(&text); err != nil {
		t.Fatal(err)
	}
	if !contains(text.String(), "4 updates in 10 steps, 3 reversals", "| strategy | 1-2 | 3-4 | 5-6 | 7-8 | 9-10 |", "| defensive | 1 | 1 | 0 | 0 | 0 |",
		"| reweight | 2 | 0 | 0 |", "| bonus | 0 | 1 | 0 | 0 | 0.5 |") {
		t.Error(text.String())
	}
}

// Nine steps later is no reversal, and neither is a smaller move.
func TestNoReversal(t *testing.T) {
	events := handMade(t)
	for i := range events[3:] {
		events[3+i].Note["learnt_step"] = 10 + 9*i
	}
	r, err := NewReport(events, 0)
	if err != nil || r.Reversals != 0 {
		t.Errorf("%d reversals, %v", r.Reversals, err)
	}
}

// A weight that goes on in its direction is no reversal.
func TestTheSameDirectionIsNoReversal(t *testing.T) {
	events := handMade(t)
	list := events[3].Set.List()
	list[1].Weight = 3 // after 1 and 2
	set, err := criteria.NewSet(criteria.Global, 3, list)
	if err != nil {
		t.Fatal(err)
	}
	events[3].Set = &set
	r, err := NewReport(events, 10)
	if err != nil || r.Reversals != 2+1 { // c2 gone and back, and c1 from 3 back to 1.4
		t.Errorf("%d reversals, %v", r.Reversals, err)
	}
	list = events[4].Set.List()
	list[1].Weight = 3
	if set, err = criteria.NewSet(criteria.Global, 4, list); err != nil {
		t.Fatal(err)
	}
	events[4].Set = &set
	if r, err = NewReport(events, 10); err != nil || r.Reversals != 2 {
		t.Errorf("%d reversals, %v", r.Reversals, err)
	}
}

// The log that a run writes is one that the report reads.
func TestReportOfARun(t *testing.T) {
	run, _ := scripted(nil)
	run.Dir = t.TempDir()
	p := mustNew(t, run, map[string]any{"rubric": easy, "execution": "sync"})
	for step := range 6 {
		mustStep(t, p, step, group("p", nil, "x"))
	}
	events, err := criteria.ReadLog(criteria.LogPath(run.Dir))
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewReport(events, 0)
	if err != nil || r.Updates != 5 || r.Ops[OpCreate][Curriculum] != 5 || r.Created["bonus"] != 5 || r.Focuses[Curriculum]["reasoning_depth"] == nil {
		t.Errorf("%+v, %v", r, err)
	}
}
