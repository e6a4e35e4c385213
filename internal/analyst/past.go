package analyst

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// past is what is known of earlier updates.
type past struct {
	first     float64  // share of gaming answers that the first update saw
	defensive int      // updates
	weakened  []string // ids of criteria whose weight a defensive update cut
	used      []use    // documents that say so
}

// A lesson hands on what an update knows of those before it, so that any later record tells of all.
const lessonWords = "first share of gaming, defensive updates, weakened"

func (p past) lesson() string {
	weakened := strings.Join(p.weakened, ", ")
	if weakened == "" {
		weakened = "none"
	}
	return fmt.Sprintf("First share of gaming: %.3f; defensive updates: %d; weakened: %s.", p.first, p.defensive, weakened)
}

var (
	historyHead   = regexp.MustCompile(`^(H[0-9]+), (update record|step summary) of step ([0-9]+):$`)
	historyLesson = regexp.MustCompile(`(?m)^Lesson: First share of gaming: ([0-9.]+); defensive updates: ([0-9]+); weakened: (.*)\.$`)
)

// remember reads the documents that an update is shown. The records of updates say all; without one, the first summary has the
// first share of gaming, and without that the present summary is the first. A document's kind stands outside of its fence.
func remember(docs []fenced, now float64) past {
	p, earliest := past{first: now}, math.MaxInt
	for _, doc := range docs {
		head := historyHead.FindStringSubmatch(doc.head)
		if head == nil {
			continue
		}
		if head[2] == "update record" {
			if m := historyLesson.FindStringSubmatch(doc.text); m != nil {
				p.learn(head[1], m)
				earliest = 0
			}
			continue
		}
		if f, err := readSummary(doc.text); err == nil && number(head[3]) < earliest {
			p.first, earliest = f.share(), number(head[3])
		}
	}
	return p
}

// learn adds what the lesson of a record says.
func (p *past) learn(label string, lesson []string) {
	p.first, _ = strconv.ParseFloat(lesson[1], 64) // all lessons say the same
	p.defensive = max(p.defensive, number(lesson[2]))
	if lesson[3] != "none" {
		for _, id := range strings.Split(lesson[3], ", ") {
			if !slices.Contains(p.weakened, id) {
				p.weakened = append(p.weakened, id)
			}
		}
	}
	if len(p.used) < 4 {
		p.used = append(p.used, use{label, "what earlier updates saw and did"})
	}
}
