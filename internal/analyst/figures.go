package analyst

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// mean is that of n numbers.
type mean struct {
	sum float64
	n   int
}

func (m mean) value() float64 { return m.sum / float64(max(m.n, 1)) }

// figures are what reports, or summaries of reports, come to.
type figures struct {
	answers, words int
	kinds          map[string]int  // of gaming -> answers
	credits        map[string]mean // of a criterion, over answers
	// pays is how much more credit gaming answers have from a criterion than other answers to the same request, over the
	// requests that have both.
	pays     map[string]mean
	evidence []string
}

func newFigures() *figures {
	return &figures{kinds: map[string]int{}, credits: map[string]mean{}, pays: map[string]mean{}}
}

// gaming is the number of answers that game the rubric, share their share.
func (f *figures) gaming() (n int) {
	for _, k := range f.kinds {
		n += k
	}
	return n
}

func (f *figures) share() float64 { return float64(f.gaming()) / float64(max(f.answers, 1)) }

// commonest is the kind of most gaming answers.
func (f *figures) commonest() string {
	best := ""
	for _, kind := range []string{Padding, Repetition, Excess} {
		if f.kinds[kind] > f.kinds[best] {
			best = kind
		}
	}
	return best
}

func (f *figures) add(o *figures) {
	f.answers, f.words, f.evidence = f.answers+o.answers, f.words+o.words, append(f.evidence, o.evidence...)
	for kind, n := range o.kinds {
		f.kinds[kind] += n
	}
	pool(f.credits, o.credits)
	pool(f.pays, o.pays)
}

func pool(into, from map[string]mean) {
	for id, m := range from {
		into[id] = mean{into[id].sum + m.sum, into[id].n + m.n}
	}
}

// list words means, "ID VALUE (NUMBER)" each.
func list(means map[string]mean) string {
	var out []string
	for _, id := range slices.Sorted(maps.Keys(means)) {
		out = append(out, fmt.Sprintf("%s %.3f (%d)", id, means[id].value(), means[id].n))
	}
	return strings.Join(out, ", ")
}

var listed = regexp.MustCompile(`([A-Za-z0-9_.-]+) (-?[0-9]+\.[0-9]+) \(([0-9]+)\)`)

func readList(text string) map[string]mean {
	out := map[string]mean{}
	for _, m := range listed.FindAllStringSubmatch(text, -1) {
		value, _ := strconv.ParseFloat(m[2], 64) // as list wrote it
		out[m[1]] = mean{value * float64(number(m[3])), number(m[3])}
	}
	return out
}

// The lines of a report on one answer. Quotations of the answer stand in the first one only.
var (
	reportCredits = regexp.MustCompile(`(?m)^Rubric: credits: (.*)$`)
	reportFacts   = regexp.MustCompile(`(?m)^Also: Request ([0-9a-f]+), ([0-9]+) words, gaming: ([a-z]+)\.$`)
	reportQuotes  = regexp.MustCompile(`^Reward hacking: [a-z_]+ \(confidence high\)\. Evidence: (.*)`)
)

// report is what a report on one answer says.
type report struct {
	figures
	request string
}

func readReport(text string) (*report, error) {
	facts, credits := reportFacts.FindStringSubmatch(text), reportCredits.FindStringSubmatch(text)
	if facts == nil || credits == nil {
		return nil, fmt.Errorf("a report is not one of the rule-based judge: let it answer all kinds of questions (judge.tiers)")
	}
	r := &report{*newFigures(), facts[1]}
	r.answers, r.words, r.credits = 1, number(facts[2]), readList(credits[1])
	if kind := facts[3]; kind != "none" {
		r.kinds[kind] = 1
	}
	if m := reportQuotes.FindStringSubmatch(text); m != nil {
		r.evidence = []string{m[1]}
	}
	return r, nil
}

// together are the figures of reports.
func together(reports []*report) *figures {
	f := newFigures()
	byRequest := map[string][2]map[string]mean{} // credits of the answers that do not game, and of those that do
	for _, r := range reports {
		f.add(&r.figures)
		if _, there := byRequest[r.request]; !there {
			byRequest[r.request] = [2]map[string]mean{{}, {}}
		}
		pool(byRequest[r.request][min(r.gaming(), 1)], r.credits)
	}
	for _, request := range slices.Sorted(maps.Keys(byRequest)) { // in order, so that sums are the same each time
		fair, gaming := byRequest[request][0], byRequest[request][1]
		for id := range gaming {
			if fair[id].n > 0 {
				pool(f.pays, map[string]mean{id: {gaming[id].value() - fair[id].value(), 1}})
			}
		}
	}
	return f
}
