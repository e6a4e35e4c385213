package eval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rubicon-rl/rubicon/rewards"
)

// creativeWriting is Creative Writing v3 (Paech): prompts with a seed, three pieces for each, 22 criteria from 0 to 20.
type creativeWriting struct{ judged }

// pieces is how many pieces are written to a prompt, each with its own seed.
const pieces = 3

// CreativeWriting reads the official file of prompts, an object by id with writing_prompt and seed_modifiers.
func CreativeWriting(s Source) (Benchmark, error) {
	b := &creativeWriting{judged{open: s.Judge}}
	raw, err := os.ReadFile(s.File)
	if err != nil {
		return nil, err
	}
	var prompts map[string]struct {
		Prompt string   `json:"writing_prompt"`
		Seeds  []string `json:"seed_modifiers"`
	}
	if err := json.Unmarshal(raw, &prompts); err != nil {
		return nil, fmt.Errorf("%s: %w", s.File, err)
	}
	for _, id := range byNumber(prompts) {
		p := prompts[id]
		if p.Prompt == "" || len(p.Seeds) == 0 {
			return nil, fmt.Errorf("%s: prompt %s lacks writing_prompt or seed_modifiers: take the official file", s.File, id)
		}
		for i := range pieces {
			seeded := strings.ReplaceAll(p.Prompt, "<SEED>", p.Seeds[i%len(p.Seeds)])
			b.items = append(b.items, Item{Key: fmt.Sprintf("%s/%d", id, i+1), Messages: ask(seeded), Row: map[string]any{"id": id, "prompt": seeded}})
		}
	}
	return b, nil
}

// byNumber are the keys in the order of the numbers that they are.
func byNumber[V any](m map[string]V) []string {
	var ids []string
	for id := range m {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b string) int {
		x, errX := strconv.Atoi(a)
		y, errY := strconv.Atoi(b)
		if errX == nil && errY == nil {
			return x - y
		}
		return strings.Compare(a, b)
	})
	return ids
}

// Official implements Sampled.
func (b *creativeWriting) Official(s Sampling) Sampling {
	s.Temperature, s.MinP, s.MaxTokens = 0.7, 0.1, 4000
	return s
}

// shortest is the fewest characters of a piece that counts.
const shortest = 500

// Again implements Retried.
func (b *creativeWriting) Again(answer string) bool { return utf8.RuneCountInString(answer) < shortest }

// Prompt implements Judged.
func (b *creativeWriting) Prompt() string { return "creative-writing-v3-1" }

// The 22 criteria. Of the bad ones a high score is bad.
var (
	goodTraits = []string{
		"Adherence to Instructions", "Believable Character Actions", "Nuanced Characters", "Consistent Voice/Tone of Writing",
		"Imagery and Descriptive Quality", "Elegant Prose", "Emotionally Engaging", "Emotionally Complex", "Coherent",
		"Well-earned Lightness or Darkness", "Sentences Flow Naturally", "Overall Reader Engagement", "Overall Impression",
	}
	badTraits = []string{
		"Meandering", "Weak Dialogue", "Tell-Don't-Show", "Unsurprising or Uncreative", "Amateurish", "Purple Prose", "Overwrought",
		"Incongruent Ending Positivity", "Unearned Transformations",
	}
)

const writingPrompt = `You are a critic of fiction. Below is a prompt for a piece of writing and the piece. First write what you think of it under [Analysis],
then score it under [Scores]: every criterion in a line of its own, in the form "name: number", with a number from 0 to 20. For the criteria in
the second list a high number is bad. Compare with published work: most pieces deserve something in the middle.

Criteria:
%s

Criteria of which much is bad:
%s

Prompt:
%s

Piece:
%s`

func (b *creativeWriting) Score(ctx context.Context, item *Item, answer string) (Verdict, error) {
	prompt, _ := item.Row["prompt"].(string)
	said, unscorable, err := b.askAll(ctx, []rewards.Question{{
		Tier: rewards.TierScore,
		User: fmt.Sprintf(writingPrompt, strings.Join(goodTraits, "\n"), strings.Join(badTraits, "\n"), prompt, answer),
		Check: func(a string) error {
			if _, ok := pieceScore(pieceScores(a)); !ok {
				return errors.New(`there are no scores: write every criterion in a line of its own, "name: number"`)
			}
			return nil
		},
	}})
	if err != nil || unscorable != "" {
		return Verdict{Unscorable: unscorable}, err
	}
	score, _ := pieceScore(pieceScores(said[0]))
	return Verdict{Values: map[string]float64{"score": score}, Detail: said[0]}, nil
}

// The two forms of a score, read one after the other, as the official parser does: any "text: number" counts.
var (
	plainScore  = regexp.MustCompile(`(.*?):\s*(?:Score\s+)?(-?\d+(?:\.\d+)?)`)
	squareScore = regexp.MustCompile(`(.*?):\s*\[(-?\d+(?:\.\d+)?)\]`)
)

// mostPoints is the highest score; what is above it does not count.
const mostPoints = 20

// pieceScores reads a judge's words.
func pieceScores(said string) map[string]float64 {
	scores := map[string]float64{}
	for _, form := range []*regexp.Regexp{plainScore, squareScore} {
		for _, m := range form.FindAllStringSubmatch(said, -1) {
			if x, err := strconv.ParseFloat(m[2], 64); err == nil && x <= mostPoints {
				scores[strings.TrimSpace(m[1])] = x
			}
		}
	}
	return scores
}

// pieceScore is the mean of the scores, those of bad criteria turned round, which may put one out of the scale again.
func pieceScore(scores map[string]float64) (score float64, ok bool) {
	sum, n := 0.0, 0
	for _, name := range sortedKeys(scores) {
		x := scores[name]
		if slices.Contains(badTraits, name) {
			x = mostPoints - x
		}
		if x <= mostPoints {
			sum, n = sum+x, n+1
		}
	}
	return sum / float64(max(n, 1)), n > 0
}

func sortedKeys[V any](m map[string]V) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Metrics are the mean score of the pieces, 0 to 20, and five times that.
func (b *creativeWriting) Metrics(v []Verdict) []Metric {
	m := mean("score", "score", v)
	return []Metric{m, {Name: "score_100", Value: 5 * m.Value}}
}
