package eval

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/rubicon-rl/rubicon/rewards"
)

// Writer is somebody whose pieces of Creative Writing are compared with others', by the keys of the benchmark's items.
type Writer struct {
	Label  string
	Pieces map[string]string
}

// Match is one judgement on two pieces to one prompt.
type Match struct {
	Key      string            `json:"key"`
	First    string            `json:"first"` // whose piece was shown first, as A
	Second   string            `json:"second"`
	Marks    map[string]string `json:"marks"`    // by criterion: who is better and by how much, A+ to A+++++ or B+ to B+++++
	Fraction float64           `json:"fraction"` // 1: the first is better by all that counts, 0: the second
	Wins     int               `json:"wins"`     // that the better one is credited with
	Reason   string            `json:"reason"`
}

// Rating is what the matches say of a writer.
type Rating struct {
	Label string   `json:"label"`
	Mu    float64  `json:"mu"`
	Sigma float64  `json:"sigma"`
	Elo   *float64 `json:"elo,omitempty"` // on the leaderboard's scale, if both writers that fix it are there
	Won   int      `json:"won"`           // judgements
	Lost  int      `json:"lost"`
}

// Standings are ratings, the best first, and what they rest on.
type Standings struct {
	Prompt     string   `json:"judge_prompt"`
	Ratings    []Rating `json:"ratings"`
	Judged     int      `json:"judged"`
	Unscorable int      `json:"unscorable"` // judgements that the judge did not give
	Matches    []Match  `json:"-"`
}

// The writers who fix the leaderboard's scale, and where they stand on it.
const (
	highAnchor, highElo = "deepseek-r1", 1500.0
	lowAnchor, lowElo   = "llama-3.2-1b", 200.0
)

const (
	eloPrompt = "creative-writing-elo-1"
	mostShown = 4000 // characters of a piece that the judge sees
)

// eloIgnored are prompts that do not count.
var eloIgnored = []string{"5", "16", "20", "21", "26", "28", "30"}

// eloCriterion is what two pieces are compared by. Of a doubled one, the loser loses as many points as the winner gets.
type eloCriterion struct {
	name, meaning string
	doubled       bool
}

var eloCriteria = []eloCriterion{
	{"characters", "the characters are alive and have depth", false},
	{"originality", "it has ideas of its own", false},
	{"prose", "it is well written", false},
	{"emotional_depth", "it moves, and earns it", false},
	{"adherence", "it does what the prompt asks", false},
	{"engagement", "one wants to read on", false},
	{"coherence", "it hangs together", true},
	{"avoids_verbosity", "it says no more than it needs", true},
	{"avoids_poetic_overload", "it is not overladen with metaphors and poetic turns", true},
}

const eloQuestion = `Two pieces, A and B, were written to one prompt. Compare them by the criteria below: for each say which is better and by how much, with one plus
sign (hardly) to five (far): "A++" means that A is somewhat better. There is no draw. What is cut off at the end counts against nobody. Do not
let length, or which of the two comes first, sway you.

Criteria:
%s
Prompt:
%s

Piece A:
%s

Piece B:
%s`

// Elo has the pieces of writers compared in pairs, each pair in both orders, and rates the writers by Creative Writing v3's rules. s is that of
// CreativeWriting. Pieces that one of two has not are left out.
func Elo(ctx context.Context, s Source, writers []Writer) (*Standings, error) {
	opened, err := CreativeWriting(s)
	if err != nil {
		return nil, err
	}
	b := opened.(*creativeWriting)
	judge, err := b.judge()
	if err != nil {
		return nil, err
	}
	var matches []Match
	var questions []rewards.Question
	for i := range b.items {
		it := &b.items[i]
		if id, _ := it.Row["id"].(string); slices.Contains(eloIgnored, id) {
			continue
		}
		for _, pair := range ordered(writers) {
			first, one := pair[0].Pieces[it.Key]
			second, other := pair[1].Pieces[it.Key]
			if one && other {
				matches = append(matches, Match{Key: it.Key, First: pair[0].Label, Second: pair[1].Label})
				questions = append(questions, eloAsk(it.Row["prompt"].(string), first, second))
			}
		}
	}
	if len(matches) == 0 {
		return nil, errors.New("there is no prompt that counts to which two of them have a piece: compare files of answers to creative-writing")
	}
	answers := make([]string, len(questions))
	g, ctx := errgroup.WithContext(ctx)
	for i, q := range questions {
		g.Go(func() error {
			answer, err := judge.Ask(ctx, q)
			if errors.Is(err, rewards.ErrNoAnswer) {
				return nil
			}
			answers[i] = answer
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return standings(writers, matches, answers)
}

// ordered are all pairs of writers, each in both orders.
func ordered(writers []Writer) (pairs [][2]*Writer) {
	for i := range writers {
		for k := range i {
			pairs = append(pairs, [2]*Writer{&writers[k], &writers[i]}, [2]*Writer{&writers[i], &writers[k]})
		}
	}
	return pairs
}

// eloAsk is the question about two pieces.
func eloAsk(prompt, first, second string) rewards.Question {
	var list strings.Builder
	properties, required := `"reason":{"type":"string"}`, `"reason"`
	for _, c := range eloCriteria {
		fmt.Fprintf(&list, "%s: %s\n", c.name, c.meaning)
		properties += fmt.Sprintf(`,%q:{"enum":["A+","A++","A+++","A++++","A+++++","B+","B++","B+++","B++++","B+++++"]}`, c.name)
		required += fmt.Sprintf(",%q", c.name)
	}
	schema := `{"type":"object","properties":{` + properties + `},"required":[` + required + `],"additionalProperties":false}`
	user := fmt.Sprintf(eloQuestion, list.String(), prompt, head(first), head(second))
	return judgeObject("creative_writing_elo", "You are a critic of fiction, fair and hard to impress.", user, schema, func(marks map[string]string) error {
		_, err := fraction(marks)
		return err
	})
}

// head is as much of a piece as the judge sees.
func head(piece string) string {
	if r := []rune(piece); len(r) > mostShown {
		return string(r[:mostShown])
	}
	return piece
}

// points are the first piece's less the second's, each criterion's marks counted by their plus signs.
func points(marks map[string]string) (int, error) {
	diff := 0
	for _, c := range eloCriteria {
		mark := marks[c.name]
		n := strings.Count(mark, "+")
		if n < 1 || n > 5 || mark != "A"+strings.Repeat("+", n) && mark != "B"+strings.Repeat("+", n) {
			return 0, fmt.Errorf("%s is %q: say A or B with one to five plus signs", c.name, mark)
		}
		if c.doubled {
			n *= 2
		}
		if mark[0] == 'B' {
			n = -n
		}
		diff += n
	}
	return diff, nil
}

// fullPoints is the difference at which all is won: five plus signs of each criterion.
const fullPoints = 45

// fraction is 1/2 and half of the difference as a share of the full one, bounded, since doubled criteria go beyond.
func fraction(marks map[string]string) (float64, error) {
	diff, err := points(marks)
	return min(1, max(0, 0.5+float64(diff)/fullPoints/2)), err
}

// mostWins is what the largest difference counts as.
const mostWins = 4

// wins is how many matches a difference of points counts as: ceil of the fraction's distance from 1/2 over (1/2)/4, in whole numbers.
func wins(diff int) int {
	if diff < 0 {
		diff = -diff
	}
	return min(mostWins, (diff*mostWins+fullPoints-1)/fullPoints)
}

// standings plays the matches, in order, and rates.
func standings(writers []Writer, matches []Match, answers []string) (*Standings, error) {
	s := &Standings{Prompt: eloPrompt}
	skills := map[string]*skill{}
	ratings := map[string]*Rating{}
	for _, w := range writers {
		skills[w.Label], ratings[w.Label] = &skill{skillMu, skillSigma}, &Rating{Label: w.Label}
	}
	for i, m := range matches {
		if answers[i] == "" {
			s.Unscorable++
			continue
		}
		var err error
		if m.Marks, err = decodeObject[map[string]string](answers[i]); err != nil {
			return nil, err
		}
		m.Reason = m.Marks["reason"]
		delete(m.Marks, "reason")
		diff, err := points(m.Marks)
		if err != nil {
			return nil, err
		}
		m.Fraction, _ = fraction(m.Marks)
		m.Wins = wins(diff)
		winner, loser := m.First, m.Second
		if diff < 0 {
			winner, loser = loser, winner
		}
		for range m.Wins {
			skills[winner].beats(skills[loser])
		}
		ratings[winner].Won += int(yes(m.Wins > 0))
		ratings[loser].Lost += int(yes(m.Wins > 0))
		s.Matches = append(s.Matches, m)
	}
	s.Judged = len(s.Matches)
	for _, w := range writers {
		r := ratings[w.Label]
		r.Mu, r.Sigma = skills[w.Label].mu, skills[w.Label].sigma
		s.Ratings = append(s.Ratings, *r)
	}
	rescale(s.Ratings)
	slices.SortStableFunc(s.Ratings, func(a, b Rating) int { return int(yes(a.Mu < b.Mu)) - int(yes(a.Mu > b.Mu)) })
	return s, nil
}

// rescale puts ratings on the leaderboard's scale, if the two who fix it are among them and differ.
func rescale(ratings []Rating) {
	at := func(label string) int {
		return slices.IndexFunc(ratings, func(r Rating) bool { return r.Label == label })
	}
	high, low := at(highAnchor), at(lowAnchor)
	if high < 0 || low < 0 || ratings[high].Mu == ratings[low].Mu {
		return
	}
	from := ratings[low].Mu
	unit := (highElo - lowElo) / (ratings[high].Mu - from)
	for i := range ratings {
		elo := lowElo + (ratings[i].Mu-from)*unit
		ratings[i].Elo = &elo
	}
}
