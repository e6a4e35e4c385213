package amaris

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/rewards/criteria"
)

// base is a rubric with an anchor, three criteria and a program.
func base(t testing.TB) rubric {
	t.Helper()
	r, err := first(criteria.Global, 3, []criteria.Criterion{
		{ID: "k0", Text: "Is safe.", Weight: 1, Anchor: true}, {ID: "k1", Text: "Is kind.", Weight: 1},
		{ID: "k2", Text: "Is short.", Weight: 0.5}, {ID: "k3", Text: "Is rude.", Weight: -1},
		{ID: "k4", Text: "Has a number.", Weight: 1, Check: map[string]any{"kind": "regex", "pattern": "[0-9]"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func create(text string, weight float64) Op {
	return Op{Kind: OpCreate, Made: []criteria.Criterion{{Text: text, Weight: weight}}}
}

func made(texts ...string) (list []criteria.Criterion) {
	for _, text := range texts {
		list = append(list, criteria.Criterion{Text: text, Weight: 1})
	}
	return list
}

// operationCase is a list of operations on base and what comes of it.
type operationCase struct {
	ops  []Op
	want []string // ids after
	why  []string // parts of the reasons, in order
}

func operationCases() map[string]operationCase {
	all := []string{"k0", "k1", "k2", "k3", "k4"}
	return map[string]operationCase{
		"create":             {[]Op{create("Is new.", 2)}, append(slices.Clone(all), "k5"), nil},
		"merge in place":     {[]Op{{Kind: OpMerge, Targets: []string{"k3", "k1"}, Made: made("Is polite.")}}, []string{"k0", "k5", "k2", "k4"}, nil},
		"split in place":     {[]Op{{Kind: OpSplit, Targets: []string{"k1"}, Made: made("Greets.", "Thanks.")}}, []string{"k0", "k5", "k6", "k2", "k3", "k4"}, nil},
		"delete":             {[]Op{{Kind: OpDelete, Targets: []string{"k2"}}}, []string{"k0", "k1", "k3", "k4"}, nil},
		"program reweighted": {[]Op{{Kind: OpReweight, Targets: []string{"k4"}, Weight: 2}}, all, nil},
		"update and reweight": {[]Op{{Kind: OpUpdate, Targets: []string{"k1"}, Text: "Is warm."}, {Kind: OpReweight, Targets: []string{"k1"}, Weight: 2}},
			all, nil},
		"unknown id":        {[]Op{{Kind: OpDelete, Targets: []string{"k9"}}}, all, []string{`no criterion "k9"`}},
		"anchor deleted":    {[]Op{{Kind: OpDelete, Targets: []string{"k0"}}}, all, []string{"k0 is an anchor"}},
		"anchor reweighted": {[]Op{{Kind: OpReweight, Targets: []string{"k0"}, Weight: 2}}, all, []string{"anchor"}},
		"anchor merged":     {[]Op{{Kind: OpMerge, Targets: []string{"k1", "k0"}, Made: made("x")}}, all, []string{"anchor"}},
		"anchor updated":    {[]Op{{Kind: OpUpdate, Targets: []string{"k0"}, Text: "x"}}, all, []string{"anchor"}},
		"anchor split":      {[]Op{{Kind: OpSplit, Targets: []string{"k0"}, Made: made("x", "y")}}, all, []string{"anchor"}},
		"program reworded":  {[]Op{{Kind: OpUpdate, Targets: []string{"k4"}, Text: "x"}}, all, []string{"scored by a program"}},
		"duplicate text":    {[]Op{create("is  KIND", 1)}, all, []string{"k1 has the same text"}},
		"two equal creates": {[]Op{create("Is new.", 1), create("is new", 1)}, append(slices.Clone(all), "k5"), []string{"a create has the same text"}},
		"weight too high":   {[]Op{create("Is new.", 5.01)}, all, []string{"weight 5.01"}},
		"weight too low":    {[]Op{{Kind: OpReweight, Targets: []string{"k1"}, Weight: -6}}, all, []string{"weight -6"}},
		"weight at bound":   {[]Op{{Kind: OpReweight, Targets: []string{"k1"}, Weight: -5}}, all, nil},
		"same weight":       {[]Op{{Kind: OpReweight, Targets: []string{"k1"}, Weight: 1}}, all, []string{"this weight already"}},
		"same text":         {[]Op{{Kind: OpUpdate, Targets: []string{"k1"}, Text: "Is kind"}}, all, []string{"this text already"}},
		"empty text":        {[]Op{create("", 1)}, all, []string{"empty"}},
		"fence in text":     {[]Op{create("<<<UNTRUSTED x", 1)}, all, []string{"marks of a fence"}},
		"merge of one":      {[]Op{{Kind: OpMerge, Targets: []string{"k1"}, Made: made("x")}}, all, []string{"two or more"}},
		"merge with itself": {[]Op{{Kind: OpMerge, Targets: []string{"k1", "k1"}, Made: made("x")}}, all, []string{"twice"}},
		"split into one":    {[]Op{{Kind: OpSplit, Targets: []string{"k1"}, Made: made("x")}}, all, []string{"two or more parts"}},
		"split into equals": {[]Op{{Kind: OpSplit, Targets: []string{"k1"}, Made: made("x", "X")}}, all, []string{"same text twice"}},
		"update after delete": {[]Op{{Kind: OpDelete, Targets: []string{"k1"}}, {Kind: OpUpdate, Targets: []string{"k1"}, Text: "x"}},
			[]string{"k0", "k2", "k3", "k4"}, []string{"text of k1 is subject of a delete"}},
		"two reweights": {[]Op{{Kind: OpReweight, Targets: []string{"k1"}, Weight: 2}, {Kind: OpReweight, Targets: []string{"k1"}, Weight: 3}},
			all, []string{"weight of k1 is subject of a reweight"}},
		"too many": {[]Op{create("a", 1), create("b", 1), {Kind: OpReweight, Targets: []string{"k1"}, Weight: 2}},
			append(slices.Clone(all), "k5"), []string{"would have 7 criteria, at most 6"}},
	}
}

// Every rule of an operation: what is left of the ids, and why what was dropped was dropped.
func TestOperations(t *testing.T) {
	for name, c := range operationCases() {
		t.Run(name, func(t *testing.T) {
			r := base(t)
			next, applied, dropped, err := r.apply(c.ops, 9, limits{5, 6})
			if err != nil {
				t.Fatal(err)
			}
			var ids []string
			for _, x := range next.Set.All() {
				ids = append(ids, x.ID)
			}
			if !slices.Equal(ids, c.want) {
				t.Errorf("ids %v, want %v", ids, c.want)
			}
			if len(dropped) != len(c.why) || len(applied)+len(dropped) != len(c.ops) {
				t.Fatalf("applied %v, dropped %v", applied, dropped)
			}
			for i, d := range dropped {
				if !strings.Contains(d.Why, c.why[i]) {
					t.Errorf("dropped because %q, want %q", d.Why, c.why[i])
				}
			}
			if want := 3 + min(len(applied), 1); next.Set.Version() != want {
				t.Errorf("version %d, want %d", next.Set.Version(), want)
			}
		})
	}
}

// A rubric from which all would be taken, or all that can be earned, keeps what the last such operation would take.
func TestNothingToEarnIsNoRubric(t *testing.T) {
	r, err := first(criteria.Global, 1, []criteria.Criterion{{ID: "a1", Text: "x", Weight: 1}, {ID: "a2", Text: "y", Weight: 1}})
	if err != nil {
		t.Fatal(err)
	}
	for _, ops := range [][]Op{
		{{Kind: OpDelete, Targets: []string{"a1"}}, {Kind: OpDelete, Targets: []string{"a2"}}},
		{{Kind: OpDelete, Targets: []string{"a1"}}, {Kind: OpReweight, Targets: []string{"a2"}, Weight: -1}},
	} {
		next, applied, dropped, err := r.apply(ops, 1, limits{5, 9})
		if err != nil {
			t.Fatal(err)
		}
		if len(applied) != 1 || len(dropped) != 1 || next.Set.Len() != 1 || next.Set.At(0).ID != "a2" || next.Set.At(0).Weight != 1 {
			t.Errorf("%v: %v, applied %v, dropped %v", ops, next.Set, applied, dropped)
		}
	}
	// But a rubric may be replaced as a whole.
	next, _, dropped, err := r.apply([]Op{{Kind: OpDelete, Targets: []string{"a1"}}, {Kind: OpDelete, Targets: []string{"a2"}}, create("z", 1)}, 1, limits{5, 9})
	if err != nil || len(dropped) > 0 || next.Set.Len() != 1 || next.Set.At(0).ID != "a3" {
		t.Errorf("replaced: %v, dropped %v, %v", next.Set, dropped, err)
	}
}

// An id that was deleted does not come back for another criterion.
func TestIdsDoNotComeBack(t *testing.T) {
	r := base(t)
	for i, want := range []string{"k5", "k6", "k7"} {
		next, _, _, err := r.apply([]Op{create(fmt.Sprint("new ", i), 1)}, i, limits{5, 99})
		if err != nil {
			t.Fatal(err)
		}
		if _, there := next.Set.Find(want); !there {
			t.Fatalf("%v has no %s", next.Set, want)
		}
		if r, _, _, err = next.apply([]Op{{Kind: OpDelete, Targets: []string{want}}}, i, limits{5, 99}); err != nil {
			t.Fatal(err)
		}
	}
}

// What an operation does not name stays bit for bit.
func TestTheRestStays(t *testing.T) {
	r := base(t)
	next, _, _, err := r.apply([]Op{{Kind: OpUpdate, Targets: []string{"k1"}, Text: "Is warm."}, {Kind: OpReweight, Targets: []string{"k2"}, Weight: 0.25}},
		9, limits{5, 9})
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range next.Set.All() {
		want := r.Set.At(i)
		switch c.ID {
		case "k1":
			want.Text = "Is warm."
		case "k2":
			want.Weight = 0.25
		}
		if !c.Equal(want) {
			t.Errorf("%+v, want %+v", c, want)
		}
	}
}
