package rare

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/rewards/criteria"
	"github.com/rubicon-rl/rubicon/rewards/internal/scoring"
	"github.com/rubicon-rl/rubicon/rewards/internal/scoring/scoringtest"
)

// One visit by hand. Criterion "all" (weight 2) is met by every completion, "some" (weight 3) is not, "safe" is met but an anchor.
// The replacement is a flaw that "y" shows a little: scores 4, 3, 4 of 4. Values: (2*1 + 3*c + 1) / 6 with c of "some".
func TestOneVisitByHand(t *testing.T) {
	judge := &scoringtest.Judge{Rule: table{"some": {"x": 0, "y": 1}, "rare-7-1": {"y": 3}}.rule, Other: propose}
	p := mustNew(t, judge.Run(), map[string]any{"rubric": []any{
		criterion("all", "Is kind.", "weight", 2, "category", "bonus"), criterion("some", "Rhymes.", "weight", 3, "max_score", 2),
		criterion("safe", "Is safe.", "anchor", true),
	}})
	scores := mustScore(t, p, 7, group("p", nil, "x", "y", "z"))
	for i, want := range []string{"rare-7-1:1 some:0 safe:1", "rare-7-1:0.75 some:0.5 safe:1", "rare-7-1:1 some:1 safe:1"} {
		if got := credits(scores[i]); got != want {
			t.Errorf("completion %d has the credits %s, want %s", i, got, want)
		}
	}
	for i, want := range []float64{3.0 / 6, (2*0.75 + 3*0.5 + 1) / 6, 1} {
		if math.Abs(scores[i].Value-want) > 1e-15 {
			t.Errorf("completion %d has the value %v, want %v", i, scores[i].Value, want)
		}
	}
	if got := scores[1].Parts[0].Reason; got != "graded rare-7-1" {
		t.Errorf("the reason of the replacement's credit is %q", got)
	}
	want := criteria.Criterion{
		ID: "rare-7-1", Text: texts[0], Weight: 2, Category: "bonus", Polarity: criteria.Negative, MaxScore: 4, Origin: "all", Step: 7,
	}
	if set := p.states.now["p"].Set; set.Version() != 2 || !reflect.DeepEqual(set.At(0), want) {
		t.Errorf("the rubric's version %d begins with %+v, want %+v", set.Version(), set.At(0), want)
	}
	again := mustScore(t, p, 8, group("p", nil, "y"), group("q", nil, "y"))
	if got := credits(again[0]); got != "rare-7-1:0.75 some:0.5 safe:1" {
		t.Errorf("at the next visit the credits are %s", got)
	}
	if got := ids(again[1]); got != "rare-8-1 some safe" {
		t.Errorf("another prompt has the criteria %s: rubrics are the prompts' own", got)
	}
}

// The judge is asked about replacements alone: not once more about a criterion that stays.
func TestOnlyReplacementsAreRescored(t *testing.T) {
	judge := &scoringtest.Judge{Rule: table{"some": {"x": 0}}.rule, Other: propose}
	p := mustNew(t, judge.Run(), map[string]any{"rubric": []any{criterion("all", "Is kind."), criterion("some", "Rhymes.")}})
	mustScore(t, p, 0, group("p", nil, "x", "y"))
	var schemas []string
	for _, q := range judge.Asked() {
		if q.Tier == rewards.TierScore {
			schemas = append(schemas, string(q.Schema))
		}
	}
	slices.Sort(schemas)
	if len(schemas) != 4 {
		t.Fatalf("%d scoring questions, want 2 completions by 2 rounds", len(schemas))
	}
	for i, s := range schemas {
		old, fresh := strings.Contains(s, `"some"`), strings.Contains(s, `"rare-0-1"`)
		if old == fresh || strings.Contains(s, `"all"`) != old {
			t.Errorf("question %d asks for %s", i, s)
		}
	}
}

// What is not replaced keeps credit, weight, reason and place bit for bit: those of the static rubric on the same completions.
func TestEverythingElseStaysBitForBit(t *testing.T) {
	var list []any
	for i := range 12 {
		list = append(list, criterion(fmt.Sprintf("c%d", i), fmt.Sprintf("Thing %d.", i), "weight", 0.1+float64(i)/7, "max_score", 1+i))
	}
	rule := func(key, answer string, most int) int {
		if key == "c3" || key == "c8" {
			return most
		}
		return (len(answer)*len(answer) + int(key[len(key)-1])) % (most + 1)
	}
	g := group("p", nil, "a", "bb", "ccc", "dddd", "eeeee", "ffffff", "ggggggg", "hhhhhhhh")
	settings := map[string]any{"rubric": list, "samples": 3, "mode": "static"}
	before := mustScore(t, mustNew(t, (&scoringtest.Judge{Rule: rule, Other: propose}).Run(), settings), 0, g)
	settings["mode"] = "sample"
	after := mustScore(t, mustNew(t, (&scoringtest.Judge{Rule: rule, Other: propose}).Run(), settings), 0, g)
	for i := range after {
		for k, part := range after[i].Parts {
			old := before[i].Parts[k]
			switch {
			case k == 3 || k == 8:
				if part.Name == old.Name || part.Weight != old.Weight {
					t.Errorf("place %d has %+v after %+v", k, part, old)
				}
			case part != old || math.Float64bits(part.Credit) != math.Float64bits(old.Credit):
				t.Errorf("completion %d: %+v was %+v", i, part, old)
			}
		}
	}
}

// A criterion is saturated if and only if every completion of every group was scored and has full credit, by a definition
// written down the long way.
func TestSaturationIsWhatTheSpecSays(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	saturated := 0
	for range 3000 {
		v := &visit{}
		want, seen := true, 0
		for range 1 + random.IntN(3) {
			g := grpo.Group{Completions: make([]*grpo.Completion, random.IntN(5))}
			verdicts := make([]scoring.Verdict, len(g.Completions))
			for i := range verdicts {
				seen++
				verdicts[i].Credits = []float64{[]float64{1, 1, 1, 1, 1, 1, 1, math.Nextafter(1, 0), 0}[random.IntN(9)]}
				if verdicts[i].Credits[0] != 1 {
					want = false
				}
				if random.IntN(20) == 0 {
					verdicts[i], want = scoring.Verdict{Unscorable: "no answer"}, false
				}
			}
			v.groups, v.verdicts = append(v.groups, g), append(v.verdicts, verdicts)
		}
		if got := v.saturated(0); got != (want && seen > 0) {
			t.Fatalf("saturated is %v of %+v", got, v.verdicts)
		}
		saturated += int(count(want && seen > 0))
	}
	if saturated < 300 || saturated > 2700 {
		t.Errorf("%d of 3000 cases are saturated: the test does not look at both sides", saturated)
	}
}

// Whatever keeps a replacement from being made or scored, the old rubric and its scores stay.
func TestTheOldCriterionStays(t *testing.T) {
	list := []any{criterion("all", "Is kind."), criterion("some", "Rhymes.")}
	rule := table{"some": {"x": 0}}.rule
	for name, c := range map[string]struct {
		judge *scoringtest.Judge
		texts []string
		asks  int    // questions for replacements
		why   string // in the log
	}{
		"a completion cannot be scored": {&scoringtest.Judge{Rule: rule, Other: propose, Missing: func(a string) bool { return a == "z" }}, []string{"x", "y", "z"}, 0, ""},
		"no answer": {&scoringtest.Judge{Rule: rule, Other: func(rewards.Question) (string, error) {
			return "", fmt.Errorf("%w: it was down", rewards.ErrNoAnswer)
		}}, []string{"x", "y"}, 1, "the generator gave no usable answer"},
		"nothing to say": {&scoringtest.Judge{Rule: rule, Other: func(rewards.Question) (string, error) { return answerOf(), nil }}, []string{"x", "y"}, 1, "the generator proposed nothing for it"},
		"nonsense":       {&scoringtest.Judge{Rule: rule, Other: func(rewards.Question) (string, error) { return "Sure!", nil }}, []string{"x", "y"}, 1, "the generator gave no usable answer"},
		"no completions": {&scoringtest.Judge{Rule: rule, Other: propose}, nil, 0, ""},
	} {
		run := c.judge.Run()
		run.Dir = t.TempDir()
		p := mustNew(t, run, map[string]any{"rubric": list})
		for i, s := range mustScore(t, p, 0, group("p", nil, c.texts...)) {
			if !s.Unscorable && ids(s) != "all some" {
				t.Errorf("%s: completion %d has the criteria %s", name, i, ids(s))
			}
		}
		if len(p.states.now) != 0 {
			t.Errorf("%s: the rubric became %+v", name, p.states.now)
		}
		if got := len(updates(c.judge)); got != c.asks {
			t.Errorf("%s: %d questions for replacements, want %d", name, got, c.asks)
		}
		if log := logOf(t, run.Dir); strings.Contains(log, `"why"`) != (c.why != "") || !strings.Contains(log, c.why) {
			t.Errorf("%s: the log does not say %q:\n%s", name, c.why, log)
		}
	}
}

// A replacement that cannot be scored on one completion is not made: the group would lose that completion to it.
func TestAReplacementThatCannotBeScoredIsNotMade(t *testing.T) {
	judge := &scoringtest.Judge{Rule: table{}.rule, Other: propose}
	deaf := &deafTo{judge, `"rare-0-1"`, "y"}
	p := mustNew(t, rewards.Run{Judge: func() (rewards.Judge, error) { return deaf, nil }}, map[string]any{"rubric": []any{criterion("all", "Is kind.")}})
	for i, s := range mustScore(t, p, 0, group("p", nil, "x", "y")) {
		if got := credits(s); got != "all:1" {
			t.Errorf("completion %d has the credits %s", i, got)
		}
	}
	if m := p.Metrics(); m["rare/kept"] != 1 || m["rare/switches"] != 0 {
		t.Errorf("metrics %v", m)
	}
}

// Penalties and criteria without weight are never replaced: the replacement would take their weight.
func TestOnlyWhatEarnsIsReplaced(t *testing.T) {
	judge := &scoringtest.Judge{Rule: table{}.rule, Other: propose}
	p := mustNew(t, judge.Run(), map[string]any{"rubric": []any{
		criterion("rude", "Is rude.", "weight", -1), criterion("shown", "Is long.", "weight", 0), criterion("kind", "Is kind."),
	}})
	if got := ids(mustScore(t, p, 0, group("p", nil, "x", "y"))[0]); got != "rude shown rare-0-3" {
		t.Errorf("the criteria are %s", got)
	}
}

func TestStaticRubricsStay(t *testing.T) {
	judge := &scoringtest.Judge{Rule: table{}.rule}
	p := mustNew(t, judge.Run(), map[string]any{"mode": "static", "rubric": []any{criterion("a", "Is kind.")}})
	for step := range 3 {
		if got := ids(mustScore(t, p, step, group("p", nil, "x", "y"))[0]); got != "a" {
			t.Errorf("step %d: the criteria are %s", step, got)
		}
	}
	if m := p.Metrics(); m["rare/saturated_frac"] != 1 || m["rare/trigger_rate"] != 0 {
		t.Errorf("metrics %v", m)
	}
}

// A row that a program of its rubric cannot be made ready for is named.
func TestErrorsNameTheRow(t *testing.T) {
	check := map[string]any{"id": "right", "check": map[string]any{"kind": "number", "column": "answer"}}
	p := mustNew(t, rewards.Run{}, map[string]any{"mode": "static", "rubric": []any{check}})
	_, err := p.Score(t.Context(), 0, []grpo.Group{group("p", map[string]any{"answer": "4"}, "4"), group("q", nil, "4")})
	var at *rewards.Error
	if !errors.As(err, &at) || at.Prompt != "q" || at.Completion != -1 {
		t.Errorf("error %v does not name prompt q", err)
	}
}
