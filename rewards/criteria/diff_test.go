package criteria

import (
	"strings"
	"testing"
)

// AMARIS, appendix H.2: two reweights of which one criterion is also reworded, and one new criterion; and H.1: a merge.
func TestDiffOfThePapersCases(t *testing.T) {
	before := mustSet(t, Global, 1,
		Criterion{ID: "A0", Text: "Final answer is correct.", Weight: 1},
		Criterion{ID: "S1", Text: "Provides at least two relevant scientific facts.", Weight: 0.75},
		Criterion{ID: "S3", Text: "Acknowledges uncertainty when confidence is limited.", Weight: 0.4},
		Criterion{ID: "S4", Text: "Makes unsupported scientific claims.", Weight: -0.5})
	after := mustSet(t, Global, 2,
		Criterion{ID: "A0", Text: "Final answer is correct.", Weight: 1},
		Criterion{ID: "S1", Text: "Includes accurate facts\nrelevant to the question.", Weight: 0.35},
		Criterion{ID: "S3", Text: "Acknowledges uncertainty when confidence is limited.", Weight: 0.1},
		Criterion{ID: "S4", Text: "Makes unsupported scientific claims.", Weight: -0.5},
		Criterion{ID: "S5", Text: "Explanation directly justifies the selected option.", Weight: 0.75, Category: "correctness"})
	want(t, Diff(before, after), `~ S1 reweighted +0.75 -> +0.35
~ S1 reworded
    - Provides at least two relevant scientific facts.
    + Includes accurate facts relevant to the question.
~ S3 reweighted +0.4 -> +0.1
+ S5 (+0.75, correctness) Explanation directly justifies the selected option.`)

	before = mustSet(t, Global, 1,
		Criterion{ID: "C0", Text: "Correct final answer.", Weight: 1, Anchor: true},
		Criterion{ID: "C1", Text: "Final-answer block presence.", Weight: 1.2},
		Criterion{ID: "C2", Text: "Final-answer block completeness.", Weight: 1.5},
		Criterion{ID: "C4", Text: "Decorative emoji.", Weight: -4})
	after = mustSet(t, Global, 2,
		Criterion{ID: "C0", Text: "Correct final answer.", Weight: 1, Anchor: true},
		Criterion{ID: "C6", Text: "Single complete final-answer block.", Weight: 3.5, MaxScore: 5},
		Criterion{ID: "C4", Text: "Decorative emoji.", Weight: -2})
	want(t, Diff(before, after), `- C1 (+1.2) Final-answer block presence.
- C2 (+1.5) Final-answer block completeness.
+ C6 (+3.5, 0 to 5) Single complete final-answer block.
~ C4 reweighted -4 -> -2`)
}

func TestDiffOfTheRest(t *testing.T) {
	a := mustSet(t, Global, 1, Criterion{ID: "a", Text: "x", Weight: 1}, Criterion{ID: "b", Text: "y", Weight: 1})
	if got := Diff(a, mustSet(t, "other", 9, a.List()...)); got != nil {
		t.Errorf("the same criteria differ: %v", got)
	}
	b := mustSet(t, Global, 2, Criterion{ID: "b", Text: "y", Weight: 1, Anchor: true, MaxScore: 3, Check: map[string]any{"kind": "json"}, Step: 2}, a.At(0))
	want(t, Diff(a, b), `~ b changed anchor false -> true, max_score 0 -> 3, check null -> {"kind":"json"}, step 0 -> 2
~ criteria reordered`)
}

func want(t *testing.T, changes []Change, text string) {
	t.Helper()
	var lines []string
	for _, c := range changes {
		lines = append(lines, c.String())
	}
	if got := strings.Join(lines, "\n"); got != text {
		t.Errorf("got\n%s\nwant\n%s", got, text)
	}
}
