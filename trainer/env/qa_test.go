package env

import (
	"math"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/grpo"
)

// paris is a made-up row in HotpotQA's form, of whose three paragraphs two support the answer.
func paris() *grpo.Prompt {
	return &grpo.Prompt{ID: "q", Columns: map[string]any{
		"question": "In which year was the school that Ada Byre attended founded?",
		"answer":   "1820",
		"context": []any{
			[]any{"Ada Byre", []any{"Ada Byre is a painter.", " She attended Norham School."}},
			[]any{"Cedric Moon", []any{"Cedric Moon is a miller."}},
			[]any{"Norham School", []any{"Norham School stands in Bex.", " It was founded in 1820."}},
		},
		"supporting_facts": []any{[]any{"Ada Byre", 1}, []any{"Norham School", 1}},
	}}
}

// musique is the same in MuSiQue's form, with another name for the answer.
func musique() *grpo.Prompt {
	p := paris()
	var list []any
	for i, text := range []string{"Ada Byre is a painter. She attended Norham School.", "Cedric Moon is a miller.", "Norham School was founded in 1820."} {
		list = append(list, map[string]any{"idx": i, "title": "t", "paragraph_text": text, "is_supporting": i != 1})
	}
	delete(p.Columns, "context")
	p.Columns["paragraphs"], p.Columns["answer_aliases"], p.Columns["answerable"] = list, []any{"the year 1820"}, true
	return p
}

func begin(t *testing.T, row *grpo.Prompt, settings map[string]any) (Episode, Observation) {
	t.Helper()
	e, err := NewQA(Run{}, settings)
	if err != nil {
		t.Fatal(err)
	}
	ep, o, err := e.Reset(t.Context(), row)
	if err != nil {
		t.Fatal(err)
	}
	return ep, o
}

// play says things and checks each observation's kind, what is left, and a part of its text.
func play(t *testing.T, ep Episode, moves ...[4]string) {
	t.Helper()
	for i, m := range moves {
		o, err := ep.Step(t.Context(), m[0])
		if err != nil {
			t.Fatal(err)
		}
		text := ""
		for _, message := range o.Messages {
			text += message.Content
		}
		if string(o.Kind) != m[1] || o.Action != m[2] || !strings.Contains(text, m[3]) || o.Done != (text == "") {
			t.Errorf("move %d, %q: %s, %q, %q, done %v; want %s, %q and %q", i, m[0], o.Kind, o.Action, text, o.Done, m[1], m[2], m[3])
		}
	}
}

func outcome(t *testing.T, ep Episode, want map[string]float64) {
	t.Helper()
	got := ep.Outcome()
	for name, v := range want {
		if math.Abs(got[name]-v) > 1e-12 {
			t.Errorf("%s is %v, want %v (%v)", name, got[name], v, got)
		}
	}
}

func TestQAEpisode(t *testing.T) {
	ep, o := begin(t, paris(), nil)
	if o.Kind != Start || o.Left != 3 || len(o.Messages) != 2 || !strings.Contains(o.Messages[1].Content, "Ada Byre attended founded?\nSearches left: 3") {
		t.Errorf("the start is %+v", o)
	}
	play(t, ep,
		[4]string{"I look. \nSearch[Ada Byre]", "result", "Search[Ada Byre]", "Paragraph: Ada Byre is a painter. She attended Norham School.\nSearches left: 2"},
		[4]string{"Thought: now the school\nAction: Search[Norham founded]", "result", "Search[Norham founded]", "founded in 1820.\nSearches left: 1"},
		[4]string{"Finish[the year 1820]", "end", "Finish[the year 1820]", ""})
	// "year 1820" and "1820" have one word in common, of two and of one: F1 = 2 * 0.5 * 1 / 1.5.
	outcome(t, ep, map[string]float64{"em": 0, "f1": 2. / 3, "arco_em": 0, "finished": 1, "searches": 2, "invalid": 0, "found": 1})
}

func TestQABudget(t *testing.T) {
	ep, _ := begin(t, paris(), map[string]any{"searches": 2})
	play(t, ep,
		[4]string{"hm", "invalid", "hm", "Searches left: 1"},
		[4]string{"Search[zebra]", "forced", "Search[zebra]", "No paragraph has any of these words.\nNo searches are left."},
		[4]string{"Search[Ada]", "forced", "Search[Ada]", ""})
	outcome(t, ep, map[string]float64{"em": 0, "finished": 0, "searches": 1, "invalid": 1, "found": 0})

	ep, _ = begin(t, paris(), map[string]any{"searches": 1})
	play(t, ep, [4]string{"hm", "invalid", "hm", "No searches are left."}, [4]string{"Finish[1820]", "end", "Finish[1820]", ""})
	outcome(t, ep, map[string]float64{"em": 1, "f1": 1, "arco_em": 1, "finished": 1})
}

func TestMuSiQue(t *testing.T) {
	ep, o := begin(t, musique(), nil)
	if o.Left != 6 {
		t.Errorf("%d searches, the paper's are 6", o.Left)
	}
	play(t, ep, [4]string{"Search[Norham]", "result", "Search[Norham]", "Paragraph: Norham School was founded"}, [4]string{"Finish[year 1820]", "end", "Finish[year 1820]", ""})
	outcome(t, ep, map[string]float64{"em": 1, "f1": 1, "arco_em": 1, "found": 0.5}) // equal to the other name, but for its article
}

func TestTitles(t *testing.T) {
	ep, _ := begin(t, paris(), map[string]any{"titles": true})
	play(t, ep, [4]string{"Search[Moon]", "result", "Search[Moon]", "Paragraph: Cedric Moon: Cedric Moon is"})
}

func TestQARefuses(t *testing.T) {
	for want, settings := range map[string]map[string]any{
		"use auto, hotpotqa":        {"dataset": "squad"},
		"searches is -1":            {"searches": -1},
		`"minilm" cannot be opened`: {"retriever": "minilm"},
		`did you mean "searches"`:   {"search": 3},
	} {
		if _, err := NewQA(Run{}, settings); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v, want %q", settings, err, want)
		}
	}
	e, err := NewQA(Run{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(map[string]any){
		"the row has no question": func(c map[string]any) { delete(c, "question") },
		"has no question":         func(c map[string]any) { delete(c, "context") },
		"a paragraph is [title":   func(c map[string]any) { c["context"] = []any{[]any{"x"}} },
		"column answer":           func(c map[string]any) { c["answer"] = 7 },
	} {
		row := paris()
		change(row.Columns)
		if _, _, err := e.Reset(t.Context(), row); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// Three texts of 3, 1 and 2 words; "a" is in two of them, "c" in one. By hand: idf(a) = ln(1 + 1.5/2.5), idf(c) = ln(1 + 2.5/1.5); with
// a mean length of 2, "a" counts f*2.2/(f + 1.2*(0.25 + 0.75*length/2)).
func TestBM25(t *testing.T) {
	m := newBM25([]string{"a a b", "A!", "b c"})
	idfA, idfC := math.Log(1.6), math.Log(1+2.5/1.5)
	for _, want := range []struct {
		doc   int
		word  string
		score float64
	}{{0, "a", idfA * 2 * 2.2 / (2 + 1.2*1.375)}, {1, "a", idfA * 2.2 / (1 + 1.2*0.625)}, {2, "c", idfC * 2.2 / (1 + 1.2)}, {2, "a", 0}} {
		if got := m.score(want.doc, want.word); math.Abs(got-want.score) > 1e-12 {
			t.Errorf("text %d, %q: %v, want %v", want.doc, want.word, got, want.score)
		}
	}
	for query, want := range map[string]int{"a": 1, "C": 2, "x": -1, "": -1, "b": 2} { // a short text with a word beats a long one with two
		if got := m.best(query); got != want {
			t.Errorf("%q finds %d, want %d", query, got, want)
		}
	}
}

// A search is right if it shows a supporting paragraph for the first time, an answer if it is the benchmark's and all of them were shown.
func TestQAVerdicts(t *testing.T) {
	for _, c := range []struct {
		said []string
		want []grpo.Verdict
	}{
		{[]string{"Search[Ada Byre]", "Search[Ada Byre]", "Search[Norham founded]", "Finish[1820]"}, []grpo.Verdict{grpo.Right, grpo.Wrong, grpo.Right, grpo.Right}},
		{[]string{"Search[Ada Byre]", "Finish[1820]"}, []grpo.Verdict{grpo.Right, grpo.Wrong}}, // a guess
		{[]string{"hm", "Search[Ada Byre]", "Search[Norham founded]", "hm"}, []grpo.Verdict{grpo.Wrong, grpo.Right, grpo.Right, grpo.Wrong}},
	} {
		ep, _ := begin(t, paris(), nil)
		for i, said := range c.said {
			o, err := ep.Step(t.Context(), said)
			if err != nil || o.Verdict != c.want[i] {
				t.Errorf("%v: verdict %d is %d, want %d (%v)", c.said, i, o.Verdict, c.want[i], err)
			}
		}
	}
	row := paris()
	delete(row.Columns, "supporting_facts")
	ep, _ := begin(t, row, nil)
	if o, err := ep.Step(t.Context(), "Search[Ada Byre]"); err != nil || o.Verdict != 0 {
		t.Errorf("a row without supporting facts: verdict %d, %v", o.Verdict, err)
	}
}
