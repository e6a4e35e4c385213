package amaris

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/rubicon-rl/rubicon/rewards/criteria"
	"github.com/rubicon-rl/rubicon/rewards/internal/scoring"
	"github.com/rubicon-rl/rubicon/rubricmem"
)

// maxShown is how many characters of a document an update is shown.
const maxShown = 2000

// history is what the memory says to an update: no document twice, neither by id nor by text.
type history struct {
	docs    []rubricmem.Doc
	sources []string // of each document: static, or the query that found it first
	queries []Query
	asking  float64 // seconds that the queries took
}

func (h *history) add(doc rubricmem.Doc, source string) {
	for _, d := range h.docs {
		if d.ID == doc.ID || d.Text == doc.Text {
			return
		}
	}
	h.docs, h.sources = append(h.docs, doc), append(h.sources, source)
}

// retrieve looks into a scope's memory: the latest step summaries (static), then what queries find among all kinds of
// documents (dynamic). A judge without a usable answer for queries leaves the dynamic part empty.
func (w *workshop) retrieve(ctx context.Context, step int, set criteria.Set, scope string, s *Summary) (history, error) {
	var h history
	if w.store.memory.Len() == 0 {
		return h, nil
	}
	if w.options.static() {
		kinds := rubricmem.Filter{Kinds: []rubricmem.Kind{rubricmem.StepSummary}, Scope: scope}
		for _, doc := range w.store.memory.Last(w.options.Summaries, kinds) {
			h.add(doc, "static")
		}
	}
	if !w.options.dynamic() || len(w.store.memory.Last(1, rubricmem.Filter{Scope: scope})) == 0 {
		return h, nil
	}
	began := time.Now()
	queries, err := w.query(ctx, step, set, s)
	h.asking = since(&began)
	if unanswered(err) {
		return h, nil
	}
	if err != nil || len(queries) == 0 {
		return h, err
	}
	h.queries = queries
	texts := make([]string, len(queries))
	for i, q := range queries {
		texts[i] = q.Text
	}
	found, err := w.store.memory.Search(ctx, texts, w.options.Documents, rubricmem.Filter{Scope: scope})
	if err != nil {
		return h, fmt.Errorf("search the memory: %w", err)
	}
	for i, hits := range found {
		for _, hit := range hits {
			h.add(hit.Doc, queries[i].Text)
		}
	}
	return h, nil
}

// items are the documents as an update is shown them, labelled H1, H2, ...
func (h history) items() []item {
	out := make([]item, len(h.docs))
	for i, d := range h.docs {
		about := fmt.Sprintf("%s of step %d", strings.ReplaceAll(string(d.Kind), "_", " "), d.Step)
		out[i] = item{label(i), about, scoring.Fence(clip(d.Text, maxShown))}
	}
	return out
}

func label(i int) string { return fmt.Sprintf("H%d", i+1) }
