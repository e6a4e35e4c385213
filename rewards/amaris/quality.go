package amaris

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"golang.org/x/sync/errgroup"

	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/rewards/criteria"
	"github.com/rubicon-rl/rubicon/rewards/internal/scoring"
)

// qualities are the respects in which the paper's Table 15 compares rubrics (app. F.4).
func qualities() []string {
	return []string{"coverage", "clarity", "discriminativeness", "non_redundancy", "exploit_resistance", "task_alignment"}
}

// maxMark is the best mark; 1 is the worst.
const maxMark = 10

// Contest is a blind comparison of two rubrics.
type Contest struct {
	A, B criteria.Set
	Goal string // what the training is for
	// Repetitions are how often the pair is shown, each time in both orders. The criteria of each rubric stand in another
	// order in every repetition.
	Repetitions int
	Seed        uint64
}

// maxRepetitions keeps the test's arithmetic exact in float64.
const maxRepetitions = 1000

// pair is what the template sees.
type pair struct{ Goal, First, Second string }

// opinion is an answer of the judge.
type opinion struct {
	Reason string         `json:"reason"`
	First  map[string]int `json:"first"`
	Second map[string]int `json:"second"`
	Best   string         `json:"best"` // first or second
}

// look is one repetition: what the judge said of A and of B, with A first and with A second; nil: no usable answer.
type look struct{ aFirst, aSecond *opinion }

// Hold asks the judge, all questions at once; the judge bounds how many are in flight. A question without a usable answer costs its
// repetition.
func (c Contest) Hold(ctx context.Context, judge rewards.Judge) (Preference, error) {
	switch {
	case strings.TrimSpace(c.Goal) == "":
		return Preference{}, errors.New("the goal is empty: say what the training is for, which the rubrics are compared by")
	case c.Repetitions < 1 || c.Repetitions > maxRepetitions:
		return Preference{}, fmt.Errorf("%d repetitions: set 1 to %d", c.Repetitions, maxRepetitions)
	case c.A.Len() == 0 || c.B.Len() == 0:
		return Preference{}, errors.New("a rubric is empty")
	}
	prompt, err := qualityPrompt()
	if err != nil {
		return Preference{}, err
	}
	looks := make([]look, c.Repetitions)
	work, ctx := errgroup.WithContext(ctx)
	for i := range looks {
		questions, err := c.questions(prompt, i)
		if err != nil {
			return Preference{}, err
		}
		for k, to := range []**opinion{&looks[i].aFirst, &looks[i].aSecond} {
			work.Go(func() (err error) {
				*to, err = opine(ctx, judge, questions[k])
				return err
			})
		}
	}
	if err := work.Wait(); err != nil {
		return Preference{}, err
	}
	return count(looks)
}

// questions are those of repetition i, with A first and with A second.
func (c Contest) questions(prompt *template.Template, i int) (out [2]rewards.Question, err error) {
	random := rand.New(rand.NewPCG(c.Seed, uint64(i)))
	a, b := blind(c.A, random), blind(c.B, random)
	for k, p := range []pair{{c.Goal, a, b}, {c.Goal, b, a}} {
		q := rewards.Question{Tier: rewards.TierUpdate, Name: "rubric_quality", Schema: qualitySchema(), Sample: i}
		var system, user bytes.Buffer
		if err := errors.Join(prompt.ExecuteTemplate(&system, "system", p), prompt.ExecuteTemplate(&user, "user", p)); err != nil {
			return out, err
		}
		q.System, q.User = strings.TrimSpace(system.String()), strings.TrimSpace(user.String())
		q.Check = func(answer string) error {
			_, err := readOpinion(answer)
			return err
		}
		out[k] = q
	}
	return out, nil
}

func qualityPrompt() (*template.Template, error) {
	return template.ParseFS(files, "prompts/common.v1.tmpl", "prompts/quality.v1.tmpl")
}

// blind is a rubric without what could tell whose it is, its criteria in any order: ids, which tell of updates, are numbers.
func blind(s criteria.Set, random *rand.Rand) string {
	list := oneLine(s.List())
	random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	var b strings.Builder
	for i, c := range list {
		fmt.Fprintf(&b, "%d. (weight %+.4g", i+1, c.Weight)
		if c.Polarity == criteria.Negative {
			b.WriteString(", a defect: full marks where it is absent")
		}
		fmt.Fprintf(&b, ") %s\n", c.Text)
	}
	return scoring.Fence(strings.TrimSuffix(b.String(), "\n"))
}

// opine asks one question; nil: no usable answer.
func opine(ctx context.Context, judge rewards.Judge, q rewards.Question) (*opinion, error) {
	answer, err := judge.Ask(ctx, q)
	if unanswered(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	o, err := readOpinion(answer)
	if err != nil { // a judge that did not look at Check
		return nil, nil
	}
	return o, nil
}

// readOpinion reads an answer strictly.
func readOpinion(answer string) (*opinion, error) {
	d := json.NewDecoder(strings.NewReader(answer))
	d.DisallowUnknownFields()
	var o opinion
	if err := d.Decode(&o); err != nil {
		return nil, fmt.Errorf("the reply does not have the form that was asked for: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("the reply goes on after its JSON: write nothing else")
	}
	if o.Best != "first" && o.Best != "second" {
		return nil, fmt.Errorf("best is %q: write first or second", clip(o.Best, 60))
	}
	for side, marks := range map[string]map[string]int{"first": o.First, "second": o.Second} {
		for _, name := range qualities() {
			if m := marks[name]; m < 1 || m > maxMark {
				return nil, fmt.Errorf("%s of %s is %d or missing: give a whole number from 1 to %d", name, side, m, maxMark)
			}
		}
		if len(marks) > len(qualities()) {
			return nil, fmt.Errorf("%s has marks that are not asked for, among %s: leave them out", side, clip(strings.Join(slices.Sorted(maps.Keys(marks)), ", "), 200))
		}
	}
	return &o, nil
}

// qualitySchema is the JSON Schema of an answer.
func qualitySchema() json.RawMessage {
	var properties, names []string
	values := "1"
	for m := 2; m <= maxMark; m++ {
		values += "," + strconv.Itoa(m)
	}
	for _, name := range qualities() {
		names = append(names, fmt.Sprintf("%q", name))
		properties = append(properties, fmt.Sprintf(`%q:{"type":"integer","enum":[%s]}`, name, values))
	}
	marks := fmt.Sprintf(`{"type":"object","properties":{%s},"required":[%s],"additionalProperties":false}`, strings.Join(properties, ","), strings.Join(names, ","))
	return json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{"reason":{"type":"string","maxLength":600},"first":%s,"second":%s,`+
		`"best":{"type":"string","enum":["first","second"]}},"required":["reason","first","second","best"],"additionalProperties":false}`, marks, marks))
}
