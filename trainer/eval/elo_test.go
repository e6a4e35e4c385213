package eval

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/rewards"
)

func near(t *testing.T, name string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got-want) > tolerance {
		t.Errorf("%s is %v, want %v", name, got, want)
	}
}

// Ratings are those of the package trueskill 0.4.5 (mu=1200, sigma=400, beta=200, tau=4, draw_probability=0): a beats b four times,
// b beats c once, c beats a once. Its error function has a relative error of 1e-7, hence the tolerance.
func TestRatingsAreTrueSkills(t *testing.T) {
	ratings, err := Rate([]Duel{
		{First: "a", Second: "b", Share: 1}, {First: "c", Second: "b", Share: 0.4}, {First: "a", Second: "c", Share: 0.45},
		{First: "a", Second: "c", Share: 0.5}, {First: "c", Second: "a", Unscorable: "no answer", Share: 1},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []Rating{
		{"a", 1276.5473707223305, 241.89508828366675, 0, 3}, {"c", 1211.179418447979, 259.0916302333819, 0, 3}, {"b", 1008.0947642390316, 253.18085904518225, 0, 2},
	}
	for i, w := range want {
		r := ratings[i]
		if r.Name != w.Name || r.Duels != w.Duels {
			t.Errorf("place %d: %+v, want %+v", i+1, r, w)
		}
		near(t, w.Name+" mu", r.Mu, w.Mu, 1e-4)
		near(t, w.Name+" sigma", r.Sigma, w.Sigma, 1e-4)
	}
}

// The anchors have the Elo that is given; between them it is linear.
func TestAnchorsGiveTheScale(t *testing.T) {
	ratings := []Rating{{Name: "strong", Mu: 1300}, {Name: "new", Mu: 1200}, {Name: "weak", Mu: 1100}}
	if err := (Anchors{"strong": 1500, "weak": 200}).scale(ratings); err != nil {
		t.Fatal(err)
	}
	near(t, "strong", ratings[0].Elo, 1500, 1e-9)
	near(t, "new", ratings[1].Elo, 850, 1e-9)
	near(t, "weak", ratings[2].Elo, 200, 1e-9)
	if err := (Anchors{"strong": 1500, "other": 200}).scale(ratings); err == nil {
		t.Error("an anchor that is no writer is accepted")
	}
}

// By hand: six criteria to A by 1 and three to B by 1, which count twice, are 6 - 6 = 0, a half; all to A by 5 are 30 + 30 = 60 of 45, cut at 1.
func TestShares(t *testing.T) {
	for _, c := range []struct {
		plain, both duelMark
		want        float64
	}{
		{duelMark{"A", 1}, duelMark{"B", 1}, 0.5},
		{duelMark{"A", 5}, duelMark{"A", 5}, 1},
		{duelMark{"A", 3}, duelMark{"B", 1}, 0.5 + 12.0/90},
		{duelMark{"B", 5}, duelMark{"B", 5}, 0},
	} {
		d := map[string]duelMark{}
		for i, name := range duelCriteria {
			d[name] = c.plain
			if i >= 6 {
				d[name] = c.both
			}
		}
		got, err := share(d)
		if err != nil {
			t.Fatal(err)
		}
		near(t, fmt.Sprint(c), got, c.want, 1e-12)
	}
	if _, err := readDuel(`{"characters": {"better": "A", "margin": 6}}`); err == nil {
		t.Error("a margin of 6 is accepted")
	}
}

// likesLong is a judge who finds the longer piece better in everything.
type likesLong struct{}

func (j *likesLong) Ask(_ context.Context, q rewards.Question) (string, error) {
	_, pieces, _ := strings.Cut(q.User, "Piece A:\n")
	a, b, _ := strings.Cut(pieces, "\n\nPiece B:\n")
	b, _, _ = strings.Cut(b, "\n\nFor each")
	better := "A"
	if len(b) > len(a) {
		better = "B"
	}
	d := map[string]duelMark{}
	for _, c := range duelCriteria {
		d[c] = duelMark{better, 2}
	}
	text, err := json.Marshal(d)
	if err == nil {
		err = q.Check(string(text))
	}
	return string(text), err
}

// Each pair meets in both orders; prompts that are left out, and those that only one has, do not count.
func TestDuels(t *testing.T) {
	piece := func(key, text string) Record { return Record{Key: key, Messages: ask("write"), Answer: text} }
	long := Writer{"long", []Record{piece("1/1", strings.Repeat("é", 5000)), piece("5/1", "x"), piece("2/1", "xxx")}}
	short := Writer{"short", []Record{piece("1/1", "y"), piece("5/1", "y"), piece("3/1", "y")}}
	duels, err := Duels(t.Context(), &likesLong{}, []Writer{long, short})
	if err != nil {
		t.Fatal(err)
	}
	if len(duels) != 2 || duels[0].First != "long" || duels[1].First != "short" || duels[0].Share != 1-duels[1].Share || duels[0].Share <= 0.5 {
		t.Errorf("%+v", duels)
	}
	if _, err := Duels(t.Context(), &likesLong{}, []Writer{long, {"other", nil}}); err == nil {
		t.Error("writers without a prompt in common are no error")
	}
}
