package scoring

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/rewards/criteria"
	"github.com/rubicon-rl/rubicon/rewards/internal/scoring/scoringtest"
)

func mixed() []criteria.Criterion {
	return []criteria.Criterion{
		{ID: "kind", Text: "Is kind.", Weight: 1, MaxScore: 4},
		{ID: "brief", Weight: 1, Check: map[string]any{"kind": "count", "unit": "words", "max": 2}},
		{ID: "clear", Text: "Is\nclear.", Weight: -3, Polarity: criteria.Negative},
	}
}

func completions(texts ...string) []*grpo.Completion {
	var out []*grpo.Completion
	for _, t := range texts {
		out = append(out, &grpo.Completion{Text: t})
	}
	return out
}

func credits(t *testing.T, s *Scorer, list []criteria.Criterion, texts ...string) []Verdict {
	t.Helper()
	v, err := s.Credits(t.Context(), &grpo.Prompt{ID: "p", Text: "Say hello."}, completions(texts...), list)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// One call for all criteria, or one for each: the same credits, in the place of their criterion, with the program's beside
// them. Credit is score / max_score.
func TestCreditsOfMixedSets(t *testing.T) {
	rule := func(key, answer string, most int) int {
		if key == "kind" {
			return len(answer) % (most + 1)
		}
		return 1
	}
	want := []Verdict{
		{Credits: []float64{0.5, 1, 1}, Reasons: []string{"graded kind", "2 words", "graded clear"}}, // 7 letters, 7 mod 5 = 2 of 4
		{Credits: []float64{0.75, 0, 1}, Reasons: []string{"graded kind", "4 words", "graded clear"}},
	}
	for mode, questions := range map[string]int{Explicit: 2, PerCriterion: 4} {
		judge := &scoringtest.Judge{Rule: rule}
		s := newScorer(t, judge.Run(), func(o *Options) { o.Mode = mode })
		got := credits(t, s, mixed(), "so kind", "a b c dd")
		for i := range got {
			got[i].Reasons[1] = want[i].Reasons[1] // worded by package verify
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", mode, got, want)
		}
		if n := len(judge.Asked()); n != questions {
			t.Errorf("%s: %d questions, want %d", mode, n, questions)
		}
	}
}

// The option is for criteria that have no highest score of their own.
func TestDefaultMaxScore(t *testing.T) {
	judge := &scoringtest.Judge{Rule: func(key, _ string, most int) int { return most - 1 }}
	s := newScorer(t, judge.Run(), func(o *Options) { o.MaxScore = 5 })
	if got, want := credits(t, s, mixed(), "x")[0].Credits, []float64{3.0 / 4, 1, 4.0 / 5}; !reflect.DeepEqual(got, want) {
		t.Errorf("credits %v, want %v", got, want)
	}
}

// What programs can score alone must need no judge, and a rubric of theirs must not open one.
func TestChecksNeedNoJudge(t *testing.T) {
	s := newScorer(t, rewards.Run{}, nil)
	list := mixed()[1:2]
	if err := s.Check(nil, list); err != nil {
		t.Error(err)
	}
	got := credits(t, s, list, "a b", "a b c")
	if got[0].Credits[0] != 1 || got[1].Credits[0] != 0 {
		t.Errorf("got %+v", got)
	}
	if err := s.Check(nil, mixed()); err == nil || !strings.Contains(err.Error(), "set judge.url") {
		t.Errorf("a rubric that needs a judge: %v", err)
	}
}

func TestCheckNamesWhatIsWrong(t *testing.T) {
	judge := &scoringtest.Judge{}
	row := &grpo.Prompt{ID: "p", Columns: map[string]any{"ids": []any{}}}
	bad := criteria.Criterion{ID: "x", Weight: 1, Check: map[string]any{"kind": "regexp", "pattern": "a"}}
	for name, c := range map[string]struct {
		mode string
		c    criteria.Criterion
		want string
	}{
		"kind":   {Explicit, bad, `unknown kind "regexp": did you mean "regex"?`},
		"column": {Explicit, criteria.Criterion{ID: "x", Weight: 1, Check: map[string]any{"kind": "number", "column": "answer"}}, "answer"},
		"mode":   {Implicit, mixed()[1], "some criteria have a check: use mode explicit"},
	} {
		s := newScorer(t, judge.Run(), func(o *Options) { o.Mode = c.mode })
		if err := s.Check(row, []criteria.Criterion{c.c}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
	s := newScorer(t, judge.Run(), func(o *Options) { o.ReferenceColumn = "ref" })
	if err := s.Check(row, mixed()[:1]); err == nil || !strings.Contains(err.Error(), "no column ref") {
		t.Errorf("a missing reference column: %v", err)
	}
	broken := rewards.Run{Judge: func() (rewards.Judge, error) { return nil, errors.New("set judge.model") }}
	if err := newScorer(t, broken, nil).Check(nil, mixed()); err == nil || !strings.Contains(err.Error(), "set judge.model") {
		t.Errorf("a judge that does not open: %v", err)
	}
}

// The modes that give one number: what the judge is shown, and value = score / 10 or / max_score.
func TestOneNumber(t *testing.T) {
	list := []criteria.Criterion{{ID: "c1", Text: "Is kind.", Weight: 2.5}, {ID: "c2", Text: "Is rude.", Weight: -1}}
	for _, c := range []struct {
		mode        string
		max, most   int
		shows, not  []string
		askedByGoal bool
	}{
		{Implicit, 0, 10, []string{"weight 2.5: Is kind.", "weight -1: Is rude."}, []string{"Goal that", "Reference answer"}, false},
		{Goal, 0, 10, []string{"Greets people."}, []string{"Is kind.", "Reference answer", "Hello!"}, true},
		{GoalRef, 5, 5, []string{"Greets people.", "Reference answer", "Hello!"}, []string{"Is kind."}, true},
	} {
		judge := &scoringtest.Judge{Rule: func(key, answer string, most int) int {
			if key != overall || most != c.most {
				t.Errorf("%s: asked for %s up to %d, want up to %d", c.mode, key, most, c.most)
			}
			return len(answer)
		}}
		s := newScorer(t, judge.Run(), func(o *Options) {
			o.Mode, o.MaxScore, o.Goal = c.mode, c.max, "Greets people."
			if c.mode == GoalRef {
				o.ReferenceColumn = "ref"
			}
		})
		p := &grpo.Prompt{Text: "Say hello.", Columns: map[string]any{"ref": "Hello!"}}
		shown := list
		if c.askedByGoal {
			shown = nil
		}
		got, err := s.Credits(t.Context(), p, completions("abc"), shown)
		want := []Verdict{{Value: 3 / float64(c.most), Reasons: []string{"graded overall"}}}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v, want %+v", c.mode, got, err, want)
		}
		text := judge.Asked()[0].User
		for _, part := range c.shows {
			if !strings.Contains(text, part) {
				t.Errorf("%s: the judge is not shown %q:\n%s", c.mode, part, text)
			}
		}
		for _, part := range c.not {
			if strings.Contains(text, part) {
				t.Errorf("%s: the judge is shown %q:\n%s", c.mode, part, text)
			}
		}
	}
}

// What the judge must know about criteria stands in the question, and nothing of the weights, which are not its business.
func TestExplicitQuestion(t *testing.T) {
	judge := &scoringtest.Judge{}
	s := newScorer(t, judge.Run(), func(o *Options) { o.ReferenceColumn = "ref" })
	row := &grpo.Prompt{Text: "Say hello.", Columns: map[string]any{"ref": map[string]any{"text": "Hi"}}}
	if _, err := s.Credits(t.Context(), row, completions("Hello."), mixed()); err != nil {
		t.Fatal(err)
	}
	q := judge.Asked()[0]
	for _, want := range []string{"- kind (0 to 4): Is kind.\n", "- clear (0 or 1, a defect: 1 if it is absent, less the more it shows, 0 if it is pronounced): Is\n    clear.\n",
		"keys, in this order: kind, clear.", Fence("Say hello."), Fence("Hello."), Fence(`{"text":"Hi"}`)} {
		if !strings.Contains(q.User, want) {
			t.Errorf("the question lacks %q:\n%s", want, q.User)
		}
	}
	if strings.Contains(q.User, "-3") || strings.Contains(q.User, "brief") {
		t.Errorf("the question tells of weights or of what programs score:\n%s", q.User)
	}
	if q.Tier != rewards.TierScore || q.Name == "" || q.Check == nil {
		t.Errorf("the question is %+v", q)
	}
	row.Columns["ref"] = nil
	if _, err := s.Credits(t.Context(), row, completions("Hello."), mixed()); err != nil || strings.Contains(judge.Asked()[1].User, "Reference") {
		t.Errorf("a row without a reference answer: %v, shown %q", err, judge.Asked()[1].User)
	}
}

// draws answers by Sample.
type draws func(q rewards.Question) (string, error)

func (d draws) Ask(_ context.Context, q rewards.Question) (string, error) { return d(q) }

func (d draws) run() rewards.Run {
	return rewards.Run{Judge: func() (rewards.Judge, error) { return d, nil }}
}

func TestSamplesAreAveraged(t *testing.T) {
	list := mixed()[:1]
	judge := func(scores ...int) draws {
		return func(q rewards.Question) (string, error) {
			if scores[q.Sample] < 0 {
				return "", fmt.Errorf("%w: draw %d", rewards.ErrNoAnswer, q.Sample)
			}
			return fmt.Sprintf(`{"kind": {"reason": "draw %d", "score": %d}}`, q.Sample, scores[q.Sample]), nil
		}
	}
	for name, c := range map[string]struct {
		scores []int
		want   Verdict
	}{
		"mean":          {[]int{1, 2, 4}, Verdict{Credits: []float64{7.0 / 12}, Reasons: []string{"draw 0"}}},
		"full":          {[]int{4, 4, 4}, Verdict{Credits: []float64{1}, Reasons: []string{"draw 0"}}},
		"one is absent": {[]int{-1, 2, 4}, Verdict{Credits: []float64{0.75}, Reasons: []string{"draw 1"}}},
		"all absent":    {[]int{-1, -1, -1}, Verdict{Unscorable: rewards.ErrNoAnswer.Error() + ": draw 0"}},
	} {
		s := newScorer(t, judge(c.scores...).run(), func(o *Options) { o.Samples = 3 })
		if got := credits(t, s, list, "x")[0]; !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// No usable answer about a completion makes that one unscorable, never 0 and never the others; any other error ends all.
func TestFailures(t *testing.T) {
	judge := &scoringtest.Judge{Missing: func(answer string) bool { return answer == "bad" }}
	for _, mode := range []string{Explicit, PerCriterion} {
		s := newScorer(t, judge.Run(), func(o *Options) { o.Mode = mode })
		got := credits(t, s, mixed(), "good", "bad", "fine")
		if got[0].Unscorable != "" || got[1].Unscorable == "" || got[1].Credits != nil || got[2].Unscorable != "" {
			t.Errorf("%s: %+v", mode, got)
		}
	}
	strange := draws(func(rewards.Question) (string, error) { return "not what Check lets pass", nil })
	if got := credits(t, newScorer(t, strange.run(), nil), mixed(), "x"); got[0].Unscorable == "" {
		t.Errorf("a judge that does not call Check: %+v", got)
	}
	down := errors.New("the server is down")
	s := newScorer(t, draws(func(rewards.Question) (string, error) { return "", down }).run(), nil)
	if _, err := s.Credits(t.Context(), &grpo.Prompt{}, completions("x"), mixed()); !errors.Is(err, down) {
		t.Errorf("error %v, want %v", err, down)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := newScorer(t, rewards.Run{}, nil).Credits(ctx, &grpo.Prompt{}, completions("x"), mixed()[1:2]); !errors.Is(err, context.Canceled) {
		t.Errorf("after cancellation: %v", err)
	}
}

// All questions are in flight at once, whatever the processors, and answers that come in another order land in their places.
func TestQuestionsAreAskedAtOnce(t *testing.T) {
	const n = 24
	var mu sync.Mutex
	waiting, all := 0, make(chan struct{})
	judge := draws(func(q rewards.Question) (string, error) {
		mu.Lock()
		if waiting++; waiting == n {
			close(all)
		}
		mu.Unlock()
		select {
		case <-all:
		case <-time.After(10 * time.Second):
			return "", errors.New("the questions come one after another")
		}
		answer := scoringtest.Fenced(q.User)[1]
		time.Sleep(time.Duration(20-len(answer)) * time.Millisecond / 4) // the last ones are answered first
		return fmt.Sprintf(`{"kind": {"reason": %q, "score": 1}}`, answer), nil
	})
	var texts []string
	for i := range n {
		texts = append(texts, strings.Repeat("x", i%20)+fmt.Sprint(i))
	}
	for i, v := range credits(t, newScorer(t, judge.run(), nil), mixed()[:1], texts...) {
		if v.Unscorable != "" || v.Reasons[0] != texts[i] {
			t.Errorf("verdict %d is %+v, want the one about %q", i, v, texts[i])
		}
	}
}
