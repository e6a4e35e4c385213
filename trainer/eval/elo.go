package eval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/rubicon-rl/rubicon/rewards"
)

// Writer is a measurement of Creative Writing whose pieces meet those of others.
type Writer struct {
	Name    string
	Records []Record
}

// Duel is what a judge says of two pieces that were written to the same prompt.
type Duel struct {
	Key        string  `json:"key"`
	First      string  `json:"first"` // the writer whose piece the judge read first
	Second     string  `json:"second"`
	Share      float64 `json:"share"` // of the first in the win, 0 to 1
	Said       string  `json:"said"`
	Unscorable string  `json:"unscorable,omitempty"` // why it does not count
}

// Rating is a writer's strength.
type Rating struct {
	Name  string  `json:"name"`
	Mu    float64 `json:"mu"` // of TrueSkill
	Sigma float64 `json:"sigma"`
	Elo   float64 `json:"elo"`   // Mu on the scale that two anchors give; Mu without them
	Duels int     `json:"duels"` // that count
}

// duelCriteria are what two pieces are compared by; of those in bothWays what one wins the other loses.
var (
	duelCriteria = []string{
		"characters", "originality", "craft", "emotional depth", "faithfulness to the prompt", "pull on the reader", "coherence",
		"avoids verbosity", "avoids poetic overload",
	}
	bothWays = []string{"coherence", "avoids verbosity", "avoids poetic overload"}
)

const (
	duelLength  = 4000 // characters of a piece that the judge reads
	mostMargin  = 5    // points that one criterion can give
	mostWins    = 4    // that a duel counts for
	duelSystem  = "You compare two pieces of fiction that were written to the same prompt. Neither length nor ornament impresses you. The order in which you read them means nothing."
	duelRequest = `Prompt:
%s

Piece A:
%s

Piece B:
%s

For each of these criteria say which piece is better, A or B, and by how much: 1, a shade, to 5, a different league.
%s`
)

// EloPrompt is the version of what the judge of duels is asked.
const EloPrompt = "creative-writing-elo-1"

// unfit are the prompts whose pieces do not duel, by the authors' choice.
var unfit = []string{"5", "16", "20", "21", "26", "28", "30"}

// Duels has every two writers' pieces compared, each pair in both orders. What a judge does not answer usably is kept as unscorable.
func Duels(ctx context.Context, judge rewards.Judge, writers []Writer) ([]Duel, error) {
	var out []Duel
	var questions []rewards.Question
	for i, a := range writers {
		for _, b := range writers[i+1:] {
			for _, keys := range common(a, b) {
				for _, pair := range [][2]meeting{{keys[0], keys[1]}, {keys[1], keys[0]}} {
					out = append(out, Duel{Key: pair[0].key, First: pair[0].writer, Second: pair[1].writer})
					questions = append(questions, duelQuestion(pair[0], pair[1]))
				}
			}
		}
	}
	if len(out) == 0 {
		return nil, errors.New("the writers have no prompt in common: give files of answers to creative-writing")
	}
	g, ctx := errgroup.WithContext(ctx)
	for i, q := range questions {
		g.Go(func() error {
			said, err := judge.Ask(ctx, q)
			if errors.Is(err, rewards.ErrNoAnswer) {
				out[i].Unscorable = err.Error()
				return nil
			}
			if err != nil {
				return err
			}
			out[i].Said = said
			out[i].Share, err = readDuel(said)
			return err
		})
	}
	return out, g.Wait()
}

// meeting is a piece that meets another.
type meeting struct{ writer, key, prompt, text string }

// common are the pieces of two writers to the same prompts, in the order of the prompts.
func common(a, b Writer) [][2]meeting {
	of := func(w Writer) map[place]meeting {
		m := map[place]meeting{}
		for _, r := range w.Records {
			prompt := ""
			if n := len(r.Messages); n > 0 {
				prompt = r.Messages[n-1].Content
			}
			m[place{r.Key, r.Repeat}] = meeting{w.Name, r.Key, prompt, firstRunes(r.Answer, duelLength)}
		}
		return m
	}
	x, y := of(a), of(b)
	var out [][2]meeting
	for _, at := range sortedPlaces(x) {
		id, _, _ := strings.Cut(at.key, "/")
		if second, ok := y[at]; ok && !slices.Contains(unfit, id) {
			out = append(out, [2]meeting{x[at], second})
		}
	}
	return out
}

func sortedPlaces[V any](m map[place]V) []place {
	var out []place
	for at := range m {
		out = append(out, at)
	}
	slices.SortFunc(out, func(a, b place) int { return cmp.Or(strings.Compare(a.key, b.key), a.repeat-b.repeat) })
	return out
}

func firstRunes(s string, n int) string {
	r := []rune(s)
	return string(r[:min(n, len(r))])
}

func duelQuestion(a, b meeting) rewards.Question {
	one := `{"type":"object","properties":{"better":{"enum":["A","B"]},"margin":{"type":"integer","minimum":1,"maximum":5}},"required":["better","margin"],"additionalProperties":false}`
	properties, names := "", ""
	for i, c := range duelCriteria {
		if i > 0 {
			properties, names = properties+",", names+","
		}
		properties += strconv.Quote(c) + ":" + one
		names += strconv.Quote(c)
	}
	schema := `{"type":"object","properties":{` + properties + `},"required":[` + names + `],"additionalProperties":false}`
	user := fmt.Sprintf(duelRequest, a.prompt, a.text, b.text, strings.Join(duelCriteria, "\n"))
	return judgeObject("creative_writing_duel", duelSystem, user, schema, func(d map[string]duelMark) error {
		_, err := share(d)
		return err
	})
}

// duelMark is a judge's mark on one criterion.
type duelMark struct {
	Better string  `json:"better"`
	Margin float64 `json:"margin"`
}

func readDuel(said string) (float64, error) {
	d, err := decodeObject[map[string]duelMark](said)
	if err != nil {
		return 0, err
	}
	return share(d)
}

// share is what part of the win the first piece has: a half, and half of the difference of points over what nine criteria can give.
func share(d map[string]duelMark) (float64, error) {
	difference := 0.0
	for _, c := range duelCriteria {
		m, ok := d[c]
		if !ok || m.Better != "A" && m.Better != "B" || m.Margin != math.Trunc(m.Margin) || m.Margin < 1 || m.Margin > mostMargin {
			return 0, fmt.Errorf(`criterion %q is %+v: give {"better": "A" or "B", "margin": 1 to %d}`, c, m, mostMargin)
		}
		points := m.Margin
		if slices.Contains(bothWays, c) {
			points *= 2
		}
		if m.Better == "B" {
			points = -points
		}
		difference += points
	}
	most := float64(mostMargin * len(duelCriteria))
	return min(max(0.5+difference/most/2, 0), 1), nil
}

// TrueSkill's parameters (Herbrich et al. 2006): where a writer begins, the spread of one performance, the drift between duels.
const (
	ratingMu, ratingSigma = 1200, 400
	ratingBeta, ratingTau = 200, 4
)

// Anchors are two writers whose Elo is known.
type Anchors map[string]float64

// Rate rates writers by their duels, one after the other: a duel is one to four wins, by its margin. anchors is empty or has two writers.
func Rate(duels []Duel, anchors Anchors) ([]Rating, error) {
	at := map[string]*Rating{}
	for _, d := range duels {
		for _, name := range []string{d.First, d.Second} {
			if at[name] == nil {
				at[name] = &Rating{Name: name, Mu: ratingMu, Sigma: ratingSigma}
			}
		}
		if d.Unscorable != "" {
			continue
		}
		winner, loser, margin := at[d.First], at[d.Second], d.Share-0.5
		winner.Duels++
		loser.Duels++
		if margin < 0 {
			winner, loser, margin = loser, winner, -margin
		}
		for range int(math.Ceil(margin / (0.5 / mostWins))) {
			beat(winner, loser)
		}
	}
	var out []Rating
	for _, name := range sortedKeys(at) {
		r := *at[name]
		r.Elo = r.Mu
		out = append(out, r)
	}
	slices.SortStableFunc(out, func(a, b Rating) int { return cmp.Compare(b.Mu, a.Mu) })
	return out, anchors.scale(out)
}

// beat updates two ratings after a win, without draws.
func beat(winner, loser *Rating) {
	w, l := winner.Sigma*winner.Sigma+ratingTau*ratingTau, loser.Sigma*loser.Sigma+ratingTau*ratingTau
	c2 := w + l + 2*ratingBeta*ratingBeta
	c := math.Sqrt(c2)
	t := (winner.Mu - loser.Mu) / c
	v := math.Exp(-t*t/2) / math.Sqrt(2*math.Pi) / (math.Erfc(-t/math.Sqrt2) / 2)
	shrink := v * (v + t)
	winner.Mu, loser.Mu = winner.Mu+w/c*v, loser.Mu-l/c*v
	winner.Sigma, loser.Sigma = math.Sqrt(w*(1-w/c2*shrink)), math.Sqrt(l*(1-l/c2*shrink))
}

// scale sets Elo such that the anchors have theirs.
func (a Anchors) scale(ratings []Rating) error {
	if len(a) == 0 {
		return nil
	}
	var mu, elo []float64
	for _, r := range ratings {
		if known, ok := a[r.Name]; ok {
			mu, elo = append(mu, r.Mu), append(elo, known)
		}
	}
	if len(a) != 2 || len(mu) != 2 || mu[0] == mu[1] {
		return errors.New("a scale needs two anchors among the writers, of different strength")
	}
	for i := range ratings {
		ratings[i].Elo = elo[0] + (ratings[i].Mu-mu[0])*(elo[1]-elo[0])/(mu[1]-mu[0])
	}
	return nil
}
