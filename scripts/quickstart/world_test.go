package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/grpo"
)

// credited is a row of testdata/credits.jsonl.gz: an answer, and what an independent implementation of the world's
// checks gives it.
type credited struct {
	Spec struct {
		Family   string `json:"fam"`
		N        int
		Category string `json:"cat"`
		Name     string
		Topic    string
		Product  string `json:"prod"`
		Style    string `json:"case"`
		Sep      bool
		Start    string
		End      string
		Bang     bool
	}
	Prompt  string
	Source  string
	Text    string
	Credits map[string]float64
	Asked   float64
	Full    float64
	Strict  float64
}

func (c credited) spec() spec {
	s := c.Spec
	return spec{s.Family, s.N, s.Category, s.Name, s.Topic, s.Product, s.Style, s.Sep, s.Start, s.End, s.Bang}
}

func readCredited(t *testing.T) []credited {
	t.Helper()
	data, err := os.ReadFile("testdata/credits.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	var rows []credited
	for lines := bufio.NewScanner(z); lines.Scan(); {
		var c credited
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, c)
	}
	return rows
}

// task puts answers to a task, its columns as they come from a file.
func task(t *testing.T, s spec, answers ...string) grpo.Group {
	t.Helper()
	data, err := json.Marshal(taskRow{Checks: s.asked(), Quality: s.quality(), Pool: s.pool()})
	if err != nil {
		t.Fatal(err)
	}
	g := grpo.Group{Prompt: &grpo.Prompt{}}
	if err := json.Unmarshal(data, &g.Prompt.Columns); err != nil {
		t.Fatal(err)
	}
	for _, a := range answers {
		g.Completions = append(g.Completions, &grpo.Completion{Text: a})
	}
	return g
}

func TestCreditsEqualTheReference(t *testing.T) {
	rows := readCredited(t)
	seen := map[string]int{}
	for _, row := range rows {
		s := row.spec()
		if got := s.prompt(); got != row.Prompt {
			t.Fatalf("prompt %q, reference %q", got, row.Prompt)
		}
		got, err := measure([]grpo.Group{task(t, s, row.Text)})
		if err != nil {
			t.Fatal(err)
		}
		if len(got.parts) != len(row.Credits) {
			t.Errorf("%q: checks %v, reference %v", row.Prompt, got.parts, row.Credits)
		}
		for name, want := range row.Credits {
			if name == "sep" {
				name = "semicolons"
			}
			seen[name]++
			if credit, ok := got.parts[name]; !ok || credit != want {
				t.Errorf("%q: %s of %q is %v, reference %v", row.Prompt, name, row.Text, credit, want)
			}
		}
		if math.Abs(got.asked-row.Asked) > 1e-12 || math.Abs(got.full-row.Full) > 1e-12 || got.strict != row.Strict {
			t.Errorf("%q: %q has asked %v, full %v, strict %v, reference %v, %v, %v", row.Prompt, row.Text,
				got.asked, got.full, got.strict, row.Asked, row.Full, row.Strict)
		}
	}
	if len(rows) < 300 || len(seen) != 10 {
		t.Errorf("%d rows, checks %v", len(rows), seen)
	}
}

func TestWritersDoWhatTheyAreFor(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	mean := func(w writer) scores {
		var groups []grpo.Group
		for range 1000 {
			s := newSpec(r)
			groups = append(groups, task(t, s, w.answer(s)))
		}
		s, err := measure(groups)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if s := mean(writer{r, 1, 0}); s.strict != 1 {
		t.Errorf("a writer that always obeys: %+v", s)
	}
	good, bad := mean(competent(r)), mean(imperfect(r))
	if good.strict < 0.6 || good.asked < 0.85 || bad.strict > 0.15 || bad.asked < 0.35 || bad.asked > 0.55 {
		t.Errorf("competent %+v, imperfect %+v", good, bad)
	}
}

func TestSplitsDoNotMeet(t *testing.T) {
	train, heldOut := split(7, 64)
	seen := map[string]bool{}
	for _, s := range append(train, heldOut...) {
		if seen[s.prompt()] {
			t.Errorf("%q is there twice", s.prompt())
		}
		seen[s.prompt()] = true
	}
	if len(seen) != 128 {
		t.Errorf("%d prompts", len(seen))
	}
	rows, copies := 0, map[bool]int{}
	sft(settings{seed: 7, steps: 200, phase2: 40}, append(train, heldOut...), func(row any) bool {
		x := row.(sftRow)
		if seen[x.Prompt[0].Content] {
			t.Errorf("the SFT data has %q", x.Prompt[0].Content)
		}
		if strings.HasPrefix(x.Prompt[0].Content, "Repeat") {
			copies[rows >= 160*48]++
		}
		rows++
		return true
	})
	if rows != 200*48 || copies[false] == 0 || copies[true] != 0 {
		t.Errorf("%d rows, %d copying exercises in phase 1, %d in phase 2", rows, copies[false], copies[true])
	}
}

func TestEveryWordIsOneToken(t *testing.T) {
	b := learn(corpus(7))
	vocab := map[string]bool{}
	for _, v := range b.vocab {
		if vocab[v] {
			t.Errorf("token %q is there twice", v)
		}
		vocab[v] = true
	}
	for _, text := range []string{"Write a note to Clara about the concert. Use exactly 4 sentences.", "Otter; fox, Owl!", " assistant"} {
		for _, w := range splitter.FindAllString(text, -1) {
			if !vocab[visible(w)] && strings.TrimSpace(w) != "assistant" {
				t.Errorf("%q is not a token", w)
			}
		}
	}
	if len(b.vocab) != len(specials)+256+len(b.merges) {
		t.Errorf("%d tokens, %d merges", len(b.vocab), len(b.merges))
	}
}

func TestVisibleIsGPT2s(t *testing.T) {
	// From GPT-2's bytes_to_unicode.
	for in, want := range map[string]string{" a": "Ġa", "\n": "Ċ", "é": "Ã©", "\x00\x7f\xad": "ĀġŃ", "~!": "~!"} {
		if got := visible(in); got != want {
			t.Errorf("visible(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestMergesGoFromTheLeft(t *testing.T) {
	got := merge(strings.Split("aaaba", ""), [2]string{"a", "a"})
	if strings.Join(got, " ") != "aa a b a" {
		t.Errorf("%q", got)
	}
}

// The files inside the binary are what this program writes.
func TestEmbeddedFilesAreUpToDate(t *testing.T) {
	dir := t.TempDir()
	if err := writeAll(dir, settings{seed: 7, prompts: 64}); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 6 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, f := range files {
		want, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join("..", "..", "internal", "embedded", "quickstart", f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("internal/embedded/quickstart/%s differs: run make.sh, which also makes the model anew", f.Name())
		}
	}
}

func TestMeasureFile(t *testing.T) {
	dir := t.TempDir()
	s := spec{family: "list", n: 2, category: "animals", semicolons: true}
	rows := func(name string, rows ...any) string {
		path := filepath.Join(dir, name)
		err := writeRows(path, func(yield func(any) bool) {
			for _, r := range rows {
				if !yield(r) {
					return
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	tasks := rows("tasks", taskRow{ID: "a", Checks: s.asked(), Quality: s.quality(), Pool: s.pool()})
	answer := func(id, text string) any { return map[string]any{"id": id, "completion": text, "rewards": nil} }
	answers := rows("answers", answer("a", "Otter; fox."), answer("a", "Otter, very."))
	var out strings.Builder
	if err := measureFile(&out, answers, tasks, "competent"); err != nil {
		t.Error(err)
	}
	// The second has one item of two (0.5 of 3), no semicolon (0 of 2); topic 2, norepeat 1, one filler word (0.5 of 2).
	for _, line := range []string{"answers 2\n", "asked   0.650\n", "strict  0.500\n", "full    0.775\n", "quality 0.900\n", "gaming  0.000\n", "  count      0.750\n", "  nofill     0.750\n"} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("%q is not in\n%s", line, out.String())
		}
	}
	if err := measureFile(&out, answers, tasks, "base"); err == nil || !strings.Contains(err.Error(), "asked 0.650") {
		t.Errorf("gate: %v", err)
	}
	if err := measureFile(&out, rows("stray", answer("b", "x")), tasks, ""); err == nil || !strings.Contains(err.Error(), `line 1: task "b"`) {
		t.Errorf("stray answer: %v", err)
	}
}
