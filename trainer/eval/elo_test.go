package eval

import (
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/rewards"
)

// The Python package trueskill 0.4.5 on scipy with mu 1200, sigma 400, beta 200, tau 4 and no draws: a wins twice, then b.
func TestTrueSkill(t *testing.T) {
	a, b := skill{skillMu, skillSigma}, skill{skillMu, skillSigma}
	for i, want := range [][4]float64{
		{1401.8627124747736, 345.35119127104053, 998.1372875252262, 345.35119127104053},
		{1487.444955521748, 314.6770670954317, 912.5550444782516, 314.6770670954317},
		{1187.354841850465, 265.38056954699204, 1212.6451581495346, 265.38056954699204},
	} {
		if i < 2 {
			a.beats(&b)
		} else {
			b.beats(&a)
		}
		for k, got := range []float64{a.mu, a.sigma, b.mu, b.sigma} {
			if math.Abs(got-want[k]) > 1e-9*want[k] {
				t.Errorf("after match %d: %v, %v, want %v", i+1, a, b, want)
			}
		}
	}
}

// marked are marks that are the same for all criteria but some.
func marked(all string, but map[string]string) map[string]string {
	out := map[string]string{}
	for _, c := range eloCriteria {
		out[c.name] = all
	}
	maps.Copy(out, but)
	return out
}

// By hand: six criteria count once and three twice.
func TestEloPoints(t *testing.T) {
	for _, c := range []struct {
		marks    map[string]string
		points   int
		fraction float64
		wins     int
	}{
		{marked("A+", nil), 12, 0.5 + 12.0/90, 2},                                                     // 12·4/45 = 1.07
		{marked("B+", nil), -12, 0.5 - 12.0/90, 2},                                                    //
		{marked("A+++++", nil), 60, 1, 4},                                                             // beyond 45
		{marked("B+++++", nil), -60, 0, 4},                                                            //
		{marked("A+", map[string]string{"coherence": "B+++++", "prose": "B+"}), -2, 0.5 - 2.0/90, 1},  // 5 - 1 - 10 + 4
		{marked("A+", map[string]string{"coherence": "B+++++", "prose": "A+++"}), 2, 0.5 + 2.0/90, 1}, // 5 + 3 - 10 + 4
	} {
		diff, err := points(c.marks)
		if err != nil {
			t.Fatal(err)
		}
		f, _ := fraction(c.marks)
		if diff != c.points || math.Abs(f-c.fraction) > 1e-15 || wins(diff) != c.wins {
			t.Errorf("%v: %d points, fraction %v, %d wins; want %d, %v, %d", c.marks, diff, f, wins(diff), c.points, c.fraction, c.wins)
		}
	}
	for diff, want := range map[int]int{0: 0, 1: 1, 11: 1, 12: 2, 22: 2, 23: 3, 33: 3, 34: 4, 45: 4, -34: 4} { // quarters of 45 are 11.25 wide
		if wins(diff) != want {
			t.Errorf("%d points are %d wins, want %d", diff, wins(diff), want)
		}
	}
	for _, mark := range []string{"", "A", "C+", "A++++++", "AB+", "+A"} {
		if _, err := points(marked("A+", map[string]string{"prose": mark})); err == nil {
			t.Errorf("%q is a mark", mark)
		}
	}
}

// Three writers, of whom the judge prefers the one with more of "good": the order and the scale follow, prompt 5 is not asked, pieces are cut.
func TestElo(t *testing.T) {
	file := `{"1": {"writing_prompt": "Write <SEED>.", "seed_modifiers": ["a", "b", "c"]}, "5": {"writing_prompt": "Ignored <SEED>.", "seed_modifiers": ["a"]}}`
	asked := make(chan string, 100)
	judge := says(func(q rewards.Question) string {
		asked <- q.User
		_, pieces, _ := strings.Cut(q.User, "Piece A:")
		first, second, _ := strings.Cut(pieces, "Piece B:")
		mark := "A++"
		if strings.Count(second, "good") > strings.Count(first, "good") {
			mark = "B++"
		}
		out := `{"reason": "r"`
		for _, c := range eloCriteria {
			out += fmt.Sprintf(", %q: %q", c.name, mark)
		}
		return out + "}"
	})
	writer := func(label string, goods int) Writer {
		w := Writer{label, map[string]string{}}
		for _, key := range []string{"1/1", "1/2", "1/3", "5/1"} {
			w.Pieces[key] = strings.Repeat("good ", goods) + strings.Repeat("x", 5000)
		}
		return w
	}
	writers := []Writer{writer("llama-3.2-1b", 1), writer("mine", 2), writer("deepseek-r1", 3)}
	path := t.TempDir() + "/prompts.json"
	writeFile(t, path, file)
	s, err := Elo(t.Context(), Source{File: path, Judge: func() (rewards.Judge, error) { return judge, nil }}, writers)
	if err != nil {
		t.Fatal(err)
	}
	close(asked)
	n := 0
	for q := range asked {
		n++
		if strings.Contains(q, "Ignored") || strings.Contains(q, strings.Repeat("x", 4000)) {
			t.Error("an ignored prompt is asked, or more than 4000 characters are shown")
		}
	}
	if n != 3*3*2 || s.Judged != n || s.Unscorable != 0 { // three pieces, three pairs, two orders
		t.Errorf("%d questions, %d judged", n, s.Judged)
	}
	r := s.Ratings
	if r[0].Label != "deepseek-r1" || r[1].Label != "mine" || *r[0].Elo != 1500 || math.Abs(*r[2].Elo-200) > 1e-9 || r[0].Won != 12 || r[1].Lost != 6 {
		t.Errorf("%+v", r)
	}
	// In between: the scale is linear in mu.
	if want := 200 + 1300*(r[1].Mu-r[2].Mu)/(r[0].Mu-r[2].Mu); math.Abs(*r[1].Elo-want) > 1e-9 {
		t.Errorf("%v, want %v", *r[1].Elo, want)
	}
}
