package amaris

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/rewards/criteria"
	"github.com/rubicon-rl/rubicon/rubricmem"
)

// goldenCase is a file of testdata.
type goldenCase struct {
	Prompt, Completion string
	Before, After      []criteria.Criterion
	Memory             []rubricmem.Doc
	Replies            struct {
		Query  json.RawMessage
		Update struct {
			Strategy, Focus, Lesson, Reasoning             string
			History                                        map[string]string // document -> use
			Create, Update, Delete, Reweight, Merge, Split json.RawMessage
		}
	}
}

// The paper's cases: the rubric after is exactly the paper's, and the memory has what was there, then the analysis, the
// summary, and a record that names strategy, operations, consulted history, lesson and the rubric.
func TestCasesOfThePaper(t *testing.T) {
	paths, err := filepath.Glob("testdata/case*.json")
	if err != nil || len(paths) != 4 {
		t.Fatalf("%d cases, %v", len(paths), err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var c goldenCase
			if err := json.Unmarshal(text, &c); err != nil {
				t.Fatal(err)
			}
			c.play(t)
		})
	}
}

func (c goldenCase) play(t *testing.T) {
	judge := func(q rewards.Question) (string, error) {
		switch q.Name {
		case stageQuery:
			return string(c.Replies.Query), nil
		case stageUpdate:
			return c.update(q.User), nil
		}
		return script(q)
	}
	run, _ := scripted(judge)
	p := mustNew(t, run, map[string]any{"rubric": c.Before, "execution": "sync"})
	c.remember(t, p)
	g := group("the prompt", nil, c.Completion)
	g.Prompt.Text = c.Prompt
	mustStep(t, p, 8, g)
	mustScore(t, p, 9, g)

	want, err := criteria.NewSet(criteria.Global, 2, c.After)
	if err != nil {
		t.Fatal(err)
	}
	if got := p.inForce()[criteria.Global].Set; !got.Equal(want) {
		t.Errorf("after:\n%s\nwant:\n%s", asJSON(t, got), asJSON(t, want))
	}
	docs := slices.Collect(p.workshop.store.memory.All())
	var ids []string
	for _, d := range docs {
		ids = append(ids, d.ID)
	}
	wantIDs := []string{"1/global/analysis/0", "1/global/step_summary/0", "1/global/update_record/0"}
	for i := range c.Memory {
		wantIDs = slices.Insert(wantIDs, i, c.Memory[i].ID)
	}
	if !slices.Equal(ids, wantIDs) {
		t.Fatalf("memory %v, want %v", ids, wantIDs)
	}
	c.compareRecord(t, docs[len(docs)-1])
}

// remember puts the case's documents into the memory, as if earlier updates had.
func (c goldenCase) remember(t *testing.T, p *Provider) {
	if _, err := p.workshop.store.open(); err != nil {
		t.Fatal(err)
	}
	end, err := p.workshop.store.add(t.Context(), c.Memory)
	if err != nil {
		t.Fatal(err)
	}
	p.state.end = end
}

// update is the judge's reply, with the labels that the question gives the documents.
func (c goldenCase) update(question string) string {
	u := c.Replies.Update
	var history []string
	for _, d := range c.Memory {
		if use := u.History[d.ID]; use != "" {
			history = append(history, fmt.Sprintf(`{"document": %q, "use": %q}`, labelOf(question, d.Text), use))
		}
	}
	return decision(sheet{
		"strategy": fmt.Sprintf("%q", u.Strategy), "focus": fmt.Sprintf("%q", u.Focus), "lesson": fmt.Sprintf("%q", u.Lesson),
		"reasoning": fmt.Sprintf("%q", u.Reasoning), "history": "[" + strings.Join(history, ", ") + "]", "create": string(u.Create),
		"update": string(u.Update), "delete": string(u.Delete), "reweight": string(u.Reweight), "merge": string(u.Merge), "split": string(u.Split),
	})
}

// labelOf finds the label of a document in the update question.
func labelOf(question, text string) string {
	before, _, found := strings.Cut(question, text)
	if !found {
		return "not shown"
	}
	label, _, _ := strings.Cut(before[strings.LastIndex(before, "\nH")+1:], ",")
	return label
}

func (c goldenCase) compareRecord(t *testing.T, doc rubricmem.Doc) {
	var r Record
	if err := json.Unmarshal(doc.Data, &r); err != nil {
		t.Fatal(err)
	}
	u := c.Replies.Update
	if r.Strategy != u.Strategy || r.Focus != u.Focus || r.Lesson != u.Lesson || r.Reasoning != u.Reasoning || r.Version != 2 || len(r.Dropped) > 0 {
		t.Errorf("record %s", asJSON(t, r))
	}
	if !slices.EqualFunc(r.Rubric, c.After, criteria.Criterion.Equal) {
		t.Errorf("rubric of the record %s", asJSON(t, r.Rubric))
	}
	used := map[string]string{}
	for _, h := range r.History {
		used[h.Document] = h.Use
	}
	if fmt.Sprint(used) != fmt.Sprint(u.History) {
		t.Errorf("consulted %v, want %v", used, u.History)
	}
	n := 0
	for _, list := range []json.RawMessage{u.Create, u.Update, u.Delete, u.Reweight, u.Merge, u.Split} {
		var ops []json.RawMessage
		if err := json.Unmarshal(list, &ops); err != nil {
			t.Fatal(err)
		}
		n += len(ops)
	}
	if len(r.Ops) != n {
		t.Errorf("%d operations in the record, %d in the reply", len(r.Ops), n)
	}
	for _, c := range c.After {
		if !strings.Contains(doc.Text, c.Text) {
			t.Errorf("the record's text does not have %q", c.Text)
		}
	}
}
