package scoring

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/rewards/criteria"
	"github.com/rubicon-rl/rubicon/rewards/verify"
)

// overall is the key of the one number in the modes that give one.
const overall = "overall"

// form is one question as it is put about every completion.
type form struct {
	view   view
	asked  []asked
	places []int // of the asked criteria in the list
}

// Credits scores completions of prompt by the criteria of list and returns one Verdict each, in order. All questions are
// asked at once; the judge bounds how many are in flight. A completion about which a question got no usable answer is
// unscorable; any other error means that none can be scored now.
func (s *Scorer) Credits(ctx context.Context, prompt *grpo.Prompt, completions []*grpo.Completion, list []criteria.Criterion) ([]Verdict, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	forms, err := s.forms(prompt, list)
	if err != nil {
		return nil, err
	}
	out := make([]Verdict, len(completions))
	if s.options.Credited() {
		if err := check(out, prompt, completions, list); err != nil {
			return nil, err
		}
	}
	if len(forms) == 0 {
		return out, nil
	}
	replies, err := s.ask(ctx, forms, completions)
	if err != nil {
		return nil, err
	}
	for i := range out {
		s.conclude(&out[i], forms, replies[i])
	}
	return out, nil
}

// check scores the criteria that programs score, and makes room for the others.
func check(out []Verdict, prompt *grpo.Prompt, completions []*grpo.Completion, list []criteria.Criterion) error {
	_, checked := split(list)
	programs := make([]verify.Check, len(checked))
	for k, p := range checked {
		var err error
		if programs[k], err = compile(list[p], prompt); err != nil {
			return err
		}
	}
	for i, c := range completions {
		out[i] = Verdict{Credits: make([]float64, len(list)), Reasons: make([]string, len(list))}
		for k, p := range checked {
			out[i].Credits[p], out[i].Reasons[p] = programs[k](c)
		}
	}
	return nil
}

// forms are the questions about one completion; none if programs score everything.
func (s *Scorer) forms(prompt *grpo.Prompt, list []criteria.Criterion) ([]form, error) {
	reference, err := s.reference(prompt)
	if err != nil {
		return nil, err
	}
	v := view{Conversation: Fence(Conversation(prompt)), Goal: s.options.Goal}
	if reference != "" {
		v.Reference = Fence(reference)
	}
	if !s.options.Credited() {
		v.Max, v.Criteria, v.Keys = cmp.Or(s.options.MaxScore, scalarScore), s.show(list), overall
		return []form{{v, []asked{{overall, v.Max}}, nil}}, nil
	}
	judged, _ := split(list)
	batches := [][]int{judged}
	if s.options.Mode == PerCriterion {
		batches = nil
		for _, p := range judged {
			batches = append(batches, []int{p})
		}
	}
	var forms []form
	for _, places := range batches {
		if len(places) > 0 {
			forms = append(forms, s.form(v, pick(list, places), places))
		}
	}
	return forms, nil
}

// form is the question for scores of some criteria.
func (s *Scorer) form(v view, list []criteria.Criterion, places []int) form {
	v.Criteria = s.show(list)
	f := form{places: places}
	keys := make([]string, len(list))
	for i, c := range list {
		keys[i] = c.ID
		f.asked = append(f.asked, asked{c.ID, s.max(c)})
	}
	v.Keys = strings.Join(keys, ", ")
	f.view = v
	return f
}

// reply is what one draw of one question brought.
type reply struct {
	scores  []scored
	missing string // why there are none
}

// ask puts all questions about all completions: completion -> form -> draw.
func (s *Scorer) ask(ctx context.Context, forms []form, completions []*grpo.Completion) ([][][]reply, error) {
	judge, err := s.judge()
	if err != nil {
		return nil, err
	}
	questions := make([][]rewards.Question, len(completions)) // completion -> form
	for i, c := range completions {
		questions[i] = make([]rewards.Question, len(forms))
		for k := range forms {
			if questions[i][k], err = s.question(&forms[k], c); err != nil {
				return nil, err
			}
		}
	}
	out := make([][][]reply, len(completions))
	work, ctx := errgroup.WithContext(ctx)
	for i := range completions {
		out[i] = make([][]reply, len(forms))
		for k, q := range questions[i] {
			out[i][k] = make([]reply, s.options.Samples)
			for n := range out[i][k] {
				q := q // its own for each draw
				q.Sample = n
				work.Go(func() error { return answer(ctx, judge, q, forms[k].asked, &out[i][k][n]) })
			}
		}
	}
	return out, work.Wait()
}

// question puts a form to a completion.
func (s *Scorer) question(f *form, c *grpo.Completion) (q rewards.Question, err error) {
	v := f.view
	v.Completion = Fence(c.Text)
	q = rewards.Question{Tier: rewards.TierScore, Name: "scores", Schema: replySchema(f.asked)}
	if q.System, q.User, err = render(s.prompt, v); err != nil {
		return q, fmt.Errorf("scoring prompt: %w", err)
	}
	q.Check = func(text string) error {
		_, err := readReply(text, f.asked)
		return err
	}
	return q, nil
}

// answer asks one question. That there is no usable answer is a reply too.
func answer(ctx context.Context, judge rewards.Judge, q rewards.Question, list []asked, out *reply) error {
	text, err := judge.Ask(ctx, q)
	if err == nil {
		out.scores, err = readReply(text, list)
		if err != nil {
			err = fmt.Errorf("%w: %w", rewards.ErrNoAnswer, err)
		}
	}
	if errors.Is(err, rewards.ErrNoAnswer) {
		out.missing = err.Error()
		return nil
	}
	return err
}

// conclude puts the replies about one completion into its verdict: the mean over the draws that were answered.
func (s *Scorer) conclude(v *Verdict, forms []form, replies [][]reply) {
	for k, f := range forms {
		credits, reasons, missing := mean(f.asked, replies[k])
		switch {
		case missing != "":
			*v = Verdict{Unscorable: missing}
			return
		case f.places == nil:
			v.Value, v.Reasons = credits[0], reasons
		}
		for i, p := range f.places {
			v.Credits[p], v.Reasons[p] = credits[i], reasons[i]
		}
	}
}

// mean averages the draws of one question; the reasons are those of the first. If no draw was answered, it says why.
func mean(list []asked, draws []reply) (credits []float64, reasons []string, missing string) {
	credits, reasons = make([]float64, len(list)), make([]string, len(list))
	answered := 0.0
	for _, d := range draws {
		if d.scores == nil {
			continue
		}
		answered++
		for i, x := range d.scores {
			credits[i] += float64(x.Score) / float64(list[i].Max)
			if answered == 1 {
				reasons[i] = x.Reason
			}
		}
	}
	if answered == 0 {
		return nil, nil, draws[0].missing
	}
	for i := range credits {
		credits[i] /= answered
	}
	return credits, reasons, ""
}
