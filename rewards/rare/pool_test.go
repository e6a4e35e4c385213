package rare

import (
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/rewards"
)

func none(id, piece string, more ...any) map[string]any {
	c := criterion(id, "", append(more, "check", map[string]any{"kind": "contains", "none": []any{piece}})...)
	delete(c, "text")
	return c
}

// met is a first rubric of n criteria that every completion meets, scored by programs.
func met(n int) []any {
	var out []any
	for i := range n {
		out = append(out, none(string(rune('a'+i)), "#"))
	}
	return out
}

// The pool by hand, on four completions. Standard deviations of the candidates' credits: no_p 0 (nobody has it), no_q
// sqrt(3)/4 (1 of 4), no_r 1/2 (2 of 4), no_s 1/2 too. The first place gets no_r (the first of the largest), the second no_s, the
// third no_q, the fourth keeps its criterion: no_p shows no difference.
func TestPoolTakesTheLargestSpread(t *testing.T) {
	p := mustNew(t, rewards.Run{}, map[string]any{
		"generator": "pool", "rubric": met(4), "pool": []any{none("no_p", "p"), none("no_q", "q"), none("no_r", "r"), none("no_s", "s")},
	})
	texts := []string{"q r", "r", "s", "s"}
	scores := mustScore(t, p, 0, group("p", nil, texts...))
	if got, want := credits(scores[0]), "no_r:0 no_s:1 no_q:0 d:1"; got != want {
		t.Errorf("credits %s, want %s", got, want)
	}
	if got, want := credits(mustScore(t, p, 1, group("p", nil, "t", "t"))[0]), "no_r:1 no_s:1 no_q:1 d:1"; got != want {
		t.Errorf("where nothing differs the criteria are %s, want %s", got, want)
	}
	got := ids(mustScore(t, p, 2, group("p", nil, "t", "p"))[0])
	if want := "no_p no_s no_q d"; got != want {
		t.Errorf("the last candidate and none that was used before: %s, want %s", got, want)
	}
	if got := ids(mustScore(t, p, 3, group("p", nil, "r", "t"))[0]); got != "no_p no_s no_q d" {
		t.Errorf("a used criterion came back: %s", got)
	}
}

// A row's own candidates come before the common ones, and are its alone.
func TestRowsHaveCandidatesOfTheirOwn(t *testing.T) {
	p := mustNew(t, rewards.Run{}, map[string]any{
		"generator": "pool", "rubric": met(1), "pool": []any{none("common", "x")}, "pool_column": "pool",
	})
	own := map[string]any{"pool": []any{none("own", "x")}}
	scores := mustScore(t, p, 0, group("p", own, "x", "y"), group("q", map[string]any{"pool": nil}, "x", "y"))
	if a, b := ids(scores[0]), ids(scores[2]); a != "own" || b != "common" {
		t.Errorf("the criteria are %s and %s", a, b)
	}
	twice := map[string]any{"pool": []any{none("common", "x")}}
	if err := p.Check(group("p", twice).Prompt); err == nil || !strings.Contains(err.Error(), `the same id "common"`) {
		t.Errorf("an id in both lists: %v", err)
	}
}

// Candidates of the other polarity are passed over; those that do not say are taken.
func TestPoolHeedsPolarity(t *testing.T) {
	for polarity, want := range map[string]string{"negative": "n", "positive": "p", "mixed": "p"} {
		p := mustNew(t, rewards.Run{}, map[string]any{
			"generator": "pool", "polarity": polarity, "rubric": met(1),
			"pool": []any{none("p", "x", "polarity", "positive"), none("n", "x", "polarity", "negative"), none("q", "x")},
		})
		if got := ids(mustScore(t, p, 0, group("p", nil, "x", "y"))[0]); got != want {
			t.Errorf("%s: %s, want %s", polarity, got, want)
		}
	}
}

// The control draws whatever the completions show, the same for the same seed, step and prompt, and others for others.
func TestRandomIsSeeded(t *testing.T) {
	var candidates []any
	for c := 'a'; c <= 'z'; c++ {
		candidates = append(candidates, none("no_"+string(c), string(c)))
	}
	draw := func(seed uint64, step int, prompt string) string {
		p := mustNew(t, rewards.Run{Seed: seed}, map[string]any{"generator": "random", "rubric": met(4), "pool": candidates})
		return ids(mustScore(t, p, step, group(prompt, nil, "!", "?"))[0])
	}
	first := draw(1, 1, "p")
	if first != draw(1, 1, "p") {
		t.Error("the same draw came out differently")
	}
	if strings.Contains(" "+first, " a") || len(strings.Fields(first)) != 4 {
		t.Errorf("drew %s in place of a b c d", first)
	}
	for _, other := range []string{draw(2, 1, "p"), draw(1, 2, "p"), draw(1, 1, "q")} {
		if other == first {
			t.Errorf("drew %s again with another seed, step or prompt", first)
		}
	}
}

// A pool that runs out leaves the rest as it is.
func TestRandomRunsOut(t *testing.T) {
	p := mustNew(t, rewards.Run{}, map[string]any{"generator": "random", "rubric": met(3), "pool": []any{none("x", "x"), none("y", "y")}})
	got := strings.Fields(ids(mustScore(t, p, 0, group("p", nil, "!"))[0]))
	if len(got) != 3 || got[2] != "c" {
		t.Errorf("the criteria are %v", got)
	}
	if m := p.Metrics(); m["rare/switches"] != 2 || m["rare/kept"] != 1 {
		t.Errorf("metrics %v", m)
	}
}
