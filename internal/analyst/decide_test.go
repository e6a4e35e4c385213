package analyst

import (
	"reflect"
	"slices"
	"testing"
)

func beginning() []criterion {
	return []criterion{{id: "detail", text: detail, weight: 4}, {id: "mentions", text: mentions, weight: 2}, {id: "form", text: form, weight: 1}}
}

// figured is 100 answers of which so many game by padding and repetition, with credits and pays as lists.
func figured(padding, repetition int, credits, pays string) *figures {
	f := newFigures()
	f.answers, f.kinds[Padding], f.kinds[Repetition] = 100, padding, repetition
	f.credits, f.pays = readList(credits), readList(pays)
	return f
}

// The rule of updates, by hand: see the comment at each case.
func TestDecide(t *testing.T) {
	split := []criterion{
		{id: "c1", text: size, weight: 3}, {id: "c2", text: brief, weight: 1}, {id: "c3", text: topic, weight: 2}, {id: "c4", text: named, weight: 1},
		{id: "form", text: form, weight: 1}, {id: "c5", text: fillers, weight: -2},
	}
	const others = "c2 0.750 (100), c3 0.750 (100), c4 0.750 (100), form 0.750 (100)"
	high := slices.Clone(split)
	high[4].weight = 4
	for name, c := range map[string]struct {
		rubric   []criterion
		f        *figures
		p        past
		strategy string
		reweight []reweight
		split    string
		create   []string
		lesson   string
	}{
		// 0.15 more than at first is not yet more than that.
		"quiet": {rubric: beginning(), f: figured(15, 0, "detail 0.4 (100)", "detail 0.500 (9)"), strategy: "maintenance",
			lesson: "First share of gaming: 0.000; defensive updates: 0; weakened: none."},
		// detail pays 4 x 0.3 = 1.2, mentions 2 x 0.5 = 1.0, although mentions has the larger difference.
		"gap": {rubric: beginning(), f: figured(30, 10, "detail 0.4 (100)", "detail 0.300 (9), mentions 0.500 (9), form 0.900 (9)"), p: past{first: 0.1},
			strategy: "defensive", reweight: []reweight{{ID: "detail", Weight: 1}}, create: []string{fillers},
			lesson: "First share of gaming: 0.100; defensive updates: 1; weakened: detail."},
		// Now mentions pays more, detail having weight 1; repetition is the commonest kind.
		"next gap": {rubric: []criterion{{id: "detail", text: detail, weight: 1}, {id: "mentions", text: mentions, weight: 2}, {id: "c1", text: fillers, weight: -2}},
			f: figured(10, 30, "", "detail 0.300 (9), mentions 0.500 (9)"), p: past{first: 0.1, defensive: 1, weakened: []string{"detail"}},
			strategy: "defensive", reweight: []reweight{{ID: "mentions", Weight: 0.5}}, create: []string{repeats},
			lesson: "First share of gaming: 0.100; defensive updates: 2; weakened: detail, mentions."},
		// A lower weight did not help; the penalty is there.
		"again": {rubric: []criterion{{id: "detail", text: detail, weight: 1}, {id: "c1", text: fillers, weight: -2}},
			f: figured(60, 0, "", "detail 0.300 (9)"), p: past{first: 0.1, defensive: 1, weakened: []string{"detail"}},
			strategy: "defensive", split: "detail", lesson: "First share of gaming: 0.100; defensive updates: 2; weakened: detail."},
		// All game, so no request has both kinds of answers: 4 x (0.9 - 0.5).
		"all game": {rubric: beginning(), f: figured(100, 0, "detail 0.900 (100), mentions 0.600 (100)", ""), strategy: "defensive",
			reweight: []reweight{{ID: "detail", Weight: 1}}, create: []string{fillers},
			lesson: "First share of gaming: 0.000; defensive updates: 1; weakened: detail."},
		// What is left pays nothing for it.
		"needs time": {rubric: split, f: figured(60, 0, "c1 0.900 (100)", ""), p: past{defensive: 2}, strategy: "maintenance",
			lesson: "First share of gaming: 0.000; defensive updates: 2; weakened: none."},
		// Nothing is raised before a gap was closed.
		"too early": {rubric: beginning(), f: figured(0, 0, "form 0.990 (100)", ""), strategy: "maintenance",
			lesson: "First share of gaming: 0.000; defensive updates: 0; weakened: none."},
		"quantity goes": {rubric: beginning()[1:], f: figured(5, 0, "", ""), p: past{defensive: 1}, strategy: "curriculum", split: "mentions",
			lesson: "First share of gaming: 0.000; defensive updates: 1; weakened: none."},
		// Exactly 0.75; the penalty's credit is no merit.
		"not mastered": {rubric: split, f: figured(5, 0, "c1 0.750 (100), "+others+", c5 0.990 (100)", ""), p: past{defensive: 1}, strategy: "maintenance",
			lesson: "First share of gaming: 0.000; defensive updates: 1; weakened: none."},
		// (3 x 0.8 + 5 x 0.75) / 8
		"form": {rubric: split, f: figured(5, 0, "c1 0.800 (100), "+others, ""), p: past{defensive: 1}, strategy: "curriculum",
			reweight: []reweight{{ID: "form", Weight: 4}}, lesson: "First share of gaming: 0.000; defensive updates: 1; weakened: none."},
		"next fault": {rubric: high, f: figured(5, 0, "c1 0.800 (100), "+others, ""), p: past{defensive: 1}, strategy: "curriculum", create: []string{repeats},
			lesson: "First share of gaming: 0.000; defensive updates: 1; weakened: none."},
	} {
		d := decide(c.rubric, c.f, c.p)
		for i := range d.Reweight {
			d.Reweight[i].Reason = ""
		}
		var splits string
		for _, s := range d.Split {
			splits += s.ID
		}
		var created []string
		for _, x := range d.Create {
			created = append(created, x.Text)
		}
		if d.Strategy != c.strategy || splits != c.split || !slices.Equal(created, c.create) || d.Lesson != c.lesson ||
			len(d.Reweight)+len(c.reweight) > 0 && !reflect.DeepEqual(d.Reweight, c.reweight) {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// Two requests: in the first, gaming answers have 0.8 and 0.6 where the others have 0.2; in the second 0.5 where the others have 0.4 and 0.6. The
// third has gaming answers only. Differences of all answers, over requests together, would be (0.8+0.6+0.5+1)/4 - 0.4 = 0.325.
func TestPaysAreWithinRequests(t *testing.T) {
	var reports []*report
	for _, x := range []struct {
		request string
		kind    string
		credit  float64
	}{{"a", Padding, 0.8}, {"a", Excess, 0.6}, {"a", "", 0.2}, {"b", "", 0.4}, {"b", Padding, 0.5}, {"b", "", 0.6}, {"c", Padding, 1}} {
		r := &report{*newFigures(), x.request}
		r.answers, r.words, r.credits["d"] = 1, 10, mean{x.credit, 1}
		if x.kind != "" {
			r.kinds[x.kind] = 1
		}
		reports = append(reports, r)
	}
	f := together(reports)
	if got := list(f.pays); got != "d 0.250 (2)" { // (0.5 + 0) / 2
		t.Errorf("pays %s", got)
	}
	if f.gaming() != 4 || f.kinds[Padding] != 3 || f.words != 70 || list(f.credits) != "d 0.586 (7)" {
		t.Errorf("%+v", f)
	}
}

// Any record has all that is to be known; of summaries, the earliest has the first share. Lines of another kind's document say nothing.
func TestRemember(t *testing.T) {
	summary := func(gaming string) string {
		return "Health: " + gaming + " of 50 answers game the rubric, 600 words in all.\nPhase: early\n- gaming by padding (" + gaming + " of 50)\nHacking risk: length_gaming, severity low. Evidence: none\nSaturation: mean credits: d 0.500 (50)\nPlan: Keep it."
	}
	lesson := "Update record: maintenance.\nLesson: First share of gaming: 0.020; defensive updates: 1; weakened: detail.\nThe rubric is version 3 now:"
	for name, c := range map[string]struct {
		docs []fenced
		want past
	}{
		"nothing":   {nil, past{first: 0.7}},
		"summaries": {[]fenced{{"H1, step summary of step 10:", summary("20")}, {"H2, step summary of step 5:", summary("10")}}, past{first: 0.2}},
		"records": {[]fenced{{"H1, step summary of step 5:", summary("10")}, {"H2, update record of step 15:", lesson},
			{"H3, update record of step 20:", "Lesson: First share of gaming: 0.020; defensive updates: 2; weakened: detail, mentions."}},
			past{first: 0.02, defensive: 2, weakened: []string{"detail", "mentions"}}},
		"others": {[]fenced{{"H1, analysis of step 5:", lesson}, {"The summary of the step:", summary("10")}, {"H2, chunk summary of step 1:", summary("30")}}, past{first: 0.7}},
	} {
		got := remember(c.docs, 0.7)
		got.used = nil
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
