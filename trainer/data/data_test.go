package data

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/grpo"
)

func options() Options {
	return Options{Format: "auto", PromptColumn: "prompt", MessagesColumn: "messages", CompletionColumn: "completion"}
}

func write(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func zip(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

const twoLines = "\uFEFF{\"prompt\": \"one\", \"n\": 3, \"x\": 3.0, \"big\": 12345678901234567890, \"e\": 1e2, \"deep\": [1, {\"a\": -9007199254740993}]}\r\n\n" +
	"{\"prompt\": [{\"role\": \"user\", \"content\": \"two\"}], \"n\": null}\n"

var twoPrompts = []grpo.Prompt{
	{ID: "f.jsonl:1", Text: "one", Columns: map[string]any{"n": int64(3), "x": 3.0, "big": json.Number("12345678901234567890"), "e": 100.0,
		"deep": []any{int64(1), map[string]any{"a": int64(-9007199254740993)}}}},
	{ID: "f.jsonl:3", Messages: []grpo.Message{{Role: "user", Content: "two"}}, Columns: map[string]any{"n": nil}},
}

func TestPromptsJSONLines(t *testing.T) {
	for name, text := range map[string]string{"f.jsonl": twoLines, "f.jsonl.gz": zip(t, twoLines), "f.ndjson": twoLines, "f.json": twoLines} {
		got, report, err := Prompts([]string{write(t, name, text)}, options())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for i := range got {
			got[i].ID = strings.Replace(got[i].ID, name, "f.jsonl", 1)
		}
		if !reflect.DeepEqual(got, twoPrompts) || report.Rows != 2 || report.Bad != 0 {
			t.Errorf("%s: got %+v, %v", name, got, report)
		}
	}
}

func TestPromptsJSONArray(t *testing.T) {
	const text = "[\n  {\"prompt\": \"a\\n[b\"},\n\n  {\"prompt\":\n \"c\"}, {\"prompt\": \"d\"}\n ,{\"prompt\": \"e\"}]\n"
	for _, name := range []string{"f.json", "f.json.gz"} {
		body := text
		if strings.HasSuffix(name, ".gz") {
			body = zip(t, text)
		}
		got, _, err := Prompts([]string{write(t, name, body)}, options())
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, p := range got {
			ids = append(ids, strings.TrimPrefix(p.ID, name)+" "+p.Text)
		}
		if want := []string{":2 a\n[b", ":4 c", ":5 d", ":6 e"}; !reflect.DeepEqual(ids, want) {
			t.Errorf("got %q, want %q", ids, want)
		}
	}
}

// Each row is data that must not be taken in silence, with the reason that the user sees.
func TestBadRows(t *testing.T) {
	for row, want := range map[string]string{
		`{"prompt": "a"`:                 "is not valid JSON",
		`{"prompt": "a"} x`:              "something follows the object",
		`["a"]`:                          "is a list, want an object",
		"{\"prompt\": \"\xff\"}":         "is not valid UTF-8",
		`{"promt": "a"}`:                 "has no prompt",
		`{"prompt": null}`:               "has no prompt",
		`{"prompt": "  "}`:               "prompt is empty",
		`{"prompt": []}`:                 "prompt is empty",
		`{"prompt": 3}`:                  "prompt is a number, want text or a list",
		`{"prompt": {"role": "user"}}`:   "prompt is an object",
		`{"prompt": ["a"]}`:              "message 1: is text, want {role, content}",
		`{"prompt": [{"content": "a"}]}`: "message 1: has no role",
		`{"prompt": [{"role": "user", "content": [1]}]}`:                                          "message 1: content is a list, want text",
		`{"prompt": [{"role": "user", "content": "a", "tool_calls": [1]}]}`:                       "message 1: tool_calls is not supported",
		`{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}`: "messages ends with an assistant's message",
	} {
		file := write(t, "f.jsonl", `{"prompt": "good"}`+"\n"+row+"\n")
		_, _, err := Prompts([]string{file}, options())
		if err == nil || !strings.Contains(err.Error(), "f.jsonl:2: ") || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "data.on_bad_row") {
			t.Errorf("%s: error %v, want %q with its place", row, err, want)
		}
		o := options()
		o.SkipBad = true
		got, report, err := Prompts([]string{file}, o)
		if err != nil || len(got) != 1 || report.Rows != 1 || report.Bad != 1 || !strings.Contains(report.String(), want) {
			t.Errorf("%s: skipped: %v, %v, %v", row, got, report, err)
		}
	}
}

// A null beside role and content, as Parquet files have it, is no content.
func TestMessageNulls(t *testing.T) {
	got, _, err := Prompts([]string{write(t, "f.jsonl", `{"messages": [{"role": "user", "content": "a", "tool_calls": null}], "prompt": null}`)}, options())
	if err != nil || len(got) != 1 || got[0].Messages[0].Content != "a" {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestBadFiles(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"f.jsonl", "", "there is no row"},
		{"f.jsonl", "\n \n", "there is no row"},
		{"f.json", "[]", "there is no row"},
		{"f.json", "[{\"prompt\": \"a\"},\n{]", "line 2"},
		{"f.json", "[{\"prompt\": \"a\"}", "the list does not end"},
		{"f.json", "[{\"prompt\": \"a\"}] {}", "something follows the list"},
		{"f.csv", "a,b", "no format that is known"},
		{"f.jsonl.gz", "this is not in gzip format", "gzip"},
		{"f.parquet", "PAR1 not really PAR1", "not a whole Parquet file"},
		{"f.parquet", "", "not a whole Parquet file"},
	} {
		if _, _, err := Prompts([]string{write(t, tt.name, tt.text)}, options()); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %q: error %v, want %q", tt.name, tt.text, err, tt.want)
		}
	}
	if _, _, err := Prompts([]string{"no/such.jsonl"}, options()); err == nil || !strings.Contains(err.Error(), "no/such.jsonl") {
		t.Errorf("missing file: %v", err)
	}
	if _, _, err := Prompts(nil, options()); err == nil || !strings.Contains(err.Error(), "data.train_files") {
		t.Errorf("no files: %v", err)
	}
	file := write(t, "f.jsonl", `{"prompt": "a"}`)
	if _, _, err := Prompts([]string{file, filepath.Dir(file) + "/./f.jsonl"}, options()); err == nil || !strings.Contains(err.Error(), "given twice") {
		t.Errorf("one file twice: %v", err)
	}
	o := options()
	o.SkipBad = true
	if _, _, err := Prompts([]string{write(t, "f.jsonl", "{}\n{}")}, o); err == nil || !strings.Contains(err.Error(), "all 2 rows are bad") {
		t.Errorf("only bad rows: %v", err)
	}
}

func TestIDs(t *testing.T) {
	o := options()
	a, b := write(t, "f.jsonl", `{"prompt": "a", "k": 1}`), write(t, "f.jsonl", `{"prompt": "b", "k": "1"}`)
	got, _, err := Prompts([]string{a, b}, o)
	if err != nil || got[0].ID != a+":1" || got[1].ID != b+":1" {
		t.Errorf("files of one name need their folders: %v, %v", got, err)
	}
	o.IDColumn = "k"
	if _, _, err := Prompts([]string{a, b}, o); err == nil || !strings.Contains(err.Error(), `has the name "1", which `+a+":1 has too") {
		t.Errorf("one name twice: %v", err)
	}
	got, _, err = Prompts([]string{a}, o)
	if err != nil || got[0].ID != "1" {
		t.Errorf("got %v, %v", got, err)
	}
	for _, row := range []string{`{"prompt": "a"}`, `{"prompt": "a", "k": 1.5}`, `{"prompt": "a", "k": [1]}`} {
		if _, _, err := Prompts([]string{write(t, "f.jsonl", row)}, o); err == nil {
			t.Errorf("%s: no error", row)
		}
	}
}

func TestColumns(t *testing.T) {
	o := options()
	o.Columns = map[string]string{"reference": "reward_model.ground_truth", "Gold": "answer", "dotted": "a.b"}
	text := `{"prompt": "p", "answer": 4, "reward_model": {"ground_truth": "four"}, "a.b": true}`
	got, _, err := Prompts([]string{write(t, "f.jsonl", text)}, o)
	want := map[string]any{"answer": int64(4), "reward_model": map[string]any{"ground_truth": "four"}, "a.b": true, "reference": "four", "Gold": int64(4), "dotted": true}
	if err != nil || !reflect.DeepEqual(got[0].Columns, want) {
		t.Errorf("got %v, %v", got, err)
	}
	for columns, want := range map[[2]string]string{{"x", "y"}: "has no y, which should be known as x", {"answer", "a.b"}: "has a column answer already", {"x", "answer.z"}: "has no answer.z"} {
		o.Columns = map[string]string{columns[0]: columns[1]}
		if _, _, err := Prompts([]string{write(t, "f.jsonl", text)}, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", columns, err)
		}
	}
	// The prompt may come from a column of another name.
	o.Columns, o.PromptColumn = nil, "question"
	got, _, err = Prompts([]string{write(t, "f.jsonl", `{"question": "q", "prompt": "kept"}`)}, o)
	if err != nil || got[0].Text != "q" || !reflect.DeepEqual(got[0].Columns, map[string]any{"prompt": "kept"}) {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestChat(t *testing.T) {
	file := write(t, "f.jsonl", `{"prompt": "p"}
{"prompt": [{"role": "user", "content": "q"}]}
{"prompt": [{"role": "system", "content": "own"}, {"role": "user", "content": "r"}]}`)
	system, p, q := grpo.Message{Role: "system", Content: "S"}, grpo.Message{Role: "user", Content: "p"}, grpo.Message{Role: "user", Content: "q"}
	own := []grpo.Message{{Role: "system", Content: "own"}, {Role: "user", Content: "r"}}
	for _, tt := range []struct {
		chat   bool
		system string
		want   [][]grpo.Message
	}{
		{false, "", [][]grpo.Message{nil, {q}, own}},
		{true, "", [][]grpo.Message{{p}, {q}, own}},
		{false, "S", [][]grpo.Message{{system, p}, {system, q}, own}},
	} {
		o := options()
		o.Chat, o.SystemPrompt = tt.chat, tt.system
		got, _, err := Prompts([]string{file}, o)
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range got {
			if !reflect.DeepEqual(p.Messages, tt.want[i]) || (p.Text == "") != (p.Messages != nil) {
				t.Errorf("chat %v, system %q: %+v", tt.chat, tt.system, p)
			}
		}
	}
}

func TestExamples(t *testing.T) {
	u, a := grpo.Message{Role: "user", Content: "u"}, grpo.Message{Role: "assistant", Content: "a"}
	const um, am = `{"role": "user", "content": "u"}`, `{"role": "assistant", "content": "a"}`
	for row, want := range map[string]Example{
		`{"messages": [` + um + `, ` + am + `], "k": 1}`:                               {Messages: []grpo.Message{u, a}, Columns: map[string]any{"k": int64(1)}},
		`{"prompt": "p", "completion": "c"}`:                                           {Prompt: "p", Completion: "c"},
		`{"prompt": [` + um + `], "completion": [` + am + `]}`:                         {Messages: []grpo.Message{u, a}, Given: 1},
		`{"prompt": [` + um + `], "completion": "a"}`:                                  {Messages: []grpo.Message{u, a}, Given: 1},
		`{"messages": [` + um + `, ` + am + `], "prompt": "kept"}`:                     {Messages: []grpo.Message{u, a}, Columns: map[string]any{"prompt": "kept"}},
		`{"prompt": [` + um + `, ` + am + `, ` + um + `], "completion": [` + am + `]}`: {Messages: []grpo.Message{u, a, u, a}, Given: 3},
	} {
		got, _, err := Examples([]string{write(t, "f.jsonl", row)}, options())
		want.ID = "f.jsonl:1"
		if want.Columns == nil {
			want.Columns = map[string]any{}
		}
		if err != nil || !reflect.DeepEqual(got, []Example{want}) {
			t.Errorf("%s: got %+v, %v", row, got, err)
		}
	}
	o := options()
	o.SystemPrompt = "S"
	got, _, err := Examples([]string{write(t, "f.jsonl", `{"prompt": "u", "completion": "a"}`)}, o)
	if want := []grpo.Message{{Role: "system", Content: "S"}, u, a}; err != nil || !reflect.DeepEqual(got[0].Messages, want) || got[0].Given != 2 {
		t.Errorf("got %+v, %v", got, err)
	}
	for row, want := range map[string]string{
		`{"prompt": "p"}`:                                      "has neither completion nor messages",
		`{"completion": "c"}`:                                  "has no prompt",
		`{"messages": "text"}`:                                 "messages is text",
		`{"messages": [` + um + `]}`:                           "messages has no assistant's message",
		`{"prompt": "p", "completion": [` + am + `]}`:          "make both the same",
		`{"prompt": [` + um + `], "completion": [` + um + `]}`: "completion has no assistant's message",
		`{"prompt": "p", "completion": ""}`:                    "completion is empty",
	} {
		if _, _, err := Examples([]string{write(t, "f.jsonl", row)}, options()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", row, err, want)
		}
	}
}

func FuzzJSON(f *testing.F) {
	f.Add(twoLines, true)
	f.Add("[{\"prompt\": \"a\"},\n {\"prompt\": [{\"role\": \"user\", \"content\": \"b\"}]}]", false)
	f.Add("[[[[", false)
	f.Add("{\"prompt\": 1e999}", true)
	f.Fuzz(func(t *testing.T, text string, lines bool) {
		name := "f.json"
		if lines {
			name = "f.jsonl"
		}
		file := write(t, name, text)
		got, report, err := Prompts([]string{file}, options())
		if err == nil && (len(got) == 0 || len(got) != report.Rows) {
			t.Fatalf("%d prompts, %v, no error", len(got), report)
		}
		for _, p := range got {
			if err == nil && (p.ID == "" || p.Text == "" && len(p.Messages) == 0) {
				t.Fatalf("empty prompt %+v", p)
			}
		}
	})
}

// Lists of public data often stand on one line: their rows have names that differ.
func TestListOnOneLine(t *testing.T) {
	got, _, err := Prompts([]string{write(t, "f.json", `[{"prompt": "a"}, {"prompt": "b"},`+"\n"+`{"prompt": "c"}, {"prompt": "d"}]`)}, options())
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, p := range got {
		ids = append(ids, p.ID+" "+p.Text)
	}
	if want := []string{"f.json:1 a", "f.json:1 item 2 b", "f.json:2 c", "f.json:2 item 4 d"}; !slices.Equal(ids, want) {
		t.Errorf("%q, want %q", ids, want)
	}
}

// Rows gives every row to its caller, and ends at the first that is refused.
func TestRows(t *testing.T) {
	file := write(t, "f.jsonl", `{"n": 1}`+"\n"+`{"n": 2}`+"\n"+`{"n": 3}`)
	sum := int64(0)
	add := func(row map[string]any) error { sum += row["n"].(int64); return nil }
	if err := Rows(file, "auto", add); err != nil || sum != 6 {
		t.Errorf("sum %d, %v", sum, err)
	}
	calls := 0
	err := Rows(file, "auto", func(map[string]any) error { calls++; return errors.New("no") })
	if calls != 1 || err == nil || !strings.Contains(err.Error(), "f.jsonl:1: no") {
		t.Errorf("%d calls, %v", calls, err)
	}
	if err := Rows(write(t, "g.jsonl", "{"), "auto", add); err == nil {
		t.Error("no error of a bad row")
	}
}
