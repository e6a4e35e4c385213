package verify

import (
	"fmt"
	"math"
	"strings"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/rewards/internal/pytext"
)

// QARules are the ways in which benchmarks compare a short answer with the right ones. All compare normal forms: lower case, ASCII
// punctuation and articles dropped.
type QARules string

// The rules. HotpotQA's are also 2WikiMultiHopQA's.
const (
	HotpotQA QARules = "hotpotqa" // an answer yes, no or noanswer has no F1 but by equality
	MuSiQue  QARules = "musique"  // SQuAD 2.0's: no such exception, and two empty answers agree
	ARCO     QARules = "arco"     // HotpotQA's, but yes or no is right where it stands within the first three characters
)

// Score is exact match and F1 of the common words of an answer, the best over the right ones, in [0,1].
func (r QARules) Score(answer string, right ...string) (em, f1 float64) {
	for _, gold := range right {
		e, f := r.pair(plainText(answer), plainText(gold))
		em, f1 = max(em, e), max(f1, f)
	}
	return em, f1
}

// pair compares normal forms.
func (r QARules) pair(answer, gold string) (em, f1 float64) {
	em = yes(answer == gold)
	if r == ARCO && (gold == "yes" || gold == "no") {
		em = yes(strings.Contains(string(firstRunes(answer, 3)), gold))
	}
	if r != MuSiQue && answer != gold && (closed(answer) || closed(gold)) {
		return em, 0
	}
	a, g := pytext.Fields(answer), pytext.Fields(gold)
	if r == MuSiQue && (len(a) == 0 || len(g) == 0) {
		return em, yes(len(a) == len(g))
	}
	return em, overlap(a, g)
}

func firstRunes(s string, n int) []rune {
	r := []rune(s)
	return r[:min(n, len(r))]
}

// closed tells of the answers to questions that are answered by a word of a fixed set.
func closed(answer string) bool { return answer == "yes" || answer == "no" || answer == "noanswer" }

// overlap is the harmonic mean of the shares of common words in both.
func overlap(a, b []string) float64 {
	left := map[string]int{}
	for _, w := range b {
		left[w]++
	}
	common := 0
	for _, w := range a {
		if left[w] > 0 {
			left[w]--
			common++
		}
	}
	if common == 0 {
		return 0
	}
	precision, recall := float64(common)/float64(len(a)), float64(common)/float64(len(b))
	return 2 * precision * recall / (precision + recall)
}

// qa is the kind of check that scores a short answer as a benchmark does.
type qa struct {
	answer
	Rules  QARules `json:"rules"`
	Metric string  `json:"metric"` // em, f1
}

func (k *qa) compile(row *grpo.Prompt) (Check, error) {
	if k.Rules != HotpotQA && k.Rules != MuSiQue && k.Rules != ARCO {
		return nil, fmt.Errorf("rules is %q: use hotpotqa, musique or arco", k.Rules)
	}
	if k.Metric != "em" && k.Metric != "f1" {
		return nil, fmt.Errorf("metric is %q: use em or f1", k.Metric)
	}
	find, right, err := k.prepare(row)
	if err != nil || row == nil && right == nil {
		return nil, err
	}
	return func(c *grpo.Completion) (float64, string) {
		got, ok := find(c.Text)
		if !ok {
			return 0, "there is no answer"
		}
		em, f1 := k.Rules.Score(got, right...)
		credit := em
		if k.Metric == "f1" {
			credit = f1
		}
		return math.Min(credit, 1), fmt.Sprintf("%.60q against %.60q: exact match %v, F1 %.3g", got, right[0], em, f1)
	}, nil
}
