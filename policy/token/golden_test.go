package token

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rubicon-rl/rubicon/internal/golden"
)

// load is Load of a folder that has to load.
func load(t testing.TB, dir string) *Tokenizer {
	t.Helper()
	tok, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// tiny loads the tokenizer of a small model that tests share.
func tiny(t testing.TB, name string) *Tokenizer {
	t.Helper()
	return load(t, golden.Path("models", name))
}

// unzip opens a file of testdata.
func unzip(t testing.TB, name string) io.Reader {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// lines calls f with each line of a compressed JSONL file.
func lines[T any](t testing.TB, name string, f func(T)) {
	t.Helper()
	s := bufio.NewScanner(unzip(t, name))
	s.Buffer(nil, 1<<26)
	for s.Scan() {
		var row T
		if err := json.Unmarshal(s.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		f(row)
	}
	if s.Err() != nil {
		t.Fatal(s.Err())
	}
}

// chatRow is a chat that transformers rendered and encoded.
type chatRow struct {
	Messages            []Message
	AddGenerationPrompt bool `json:"add_generation_prompt"`
	Text                string
	IDs                 []int32
}

func TestTransformers(t *testing.T) {
	var all map[string]struct {
		VocabSize int `json:"vocab_size"`
		Texts     []struct {
			Text               string
			IDs                []int32
			IDsNoSpecial       []int32 `json:"ids_no_special"`
			Tokens             []string
			Decoded            string
			DecodedSkipSpecial string `json:"decoded_skip_special"`
		}
		Chats  []chatRow
		Decode []struct {
			IDs             []int32
			Text            string
			TextSkipSpecial string `json:"text_skip_special"`
		}
	}
	if err := json.NewDecoder(unzip(t, "tokenizer_golden.json.gz")).Decode(&all); err != nil {
		t.Fatal(err)
	}
	for name, g := range all {
		tok := tiny(t, name)
		if tok.VocabSize() != g.VocabSize {
			t.Errorf("%s: vocabulary of %d, want %d", name, tok.VocabSize(), g.VocabSize)
		}
		for _, x := range g.Texts {
			ids := tok.Encode(x.Text, EncodeOptions{})
			sameIDs(t, name, x.Text, ids, x.IDsNoSpecial)
			sameIDs(t, name+" with special tokens", x.Text, tok.Encode(x.Text, EncodeOptions{AddSpecial: true}), x.IDs)
			for i, id := range ids {
				token, ok := tok.IDToToken(id)
				if back, _ := tok.TokenToID(token); !ok || token != x.Tokens[i] || back != id {
					t.Errorf("%s: token %d is %q, want %q", name, id, token, x.Tokens[i])
				}
			}
			sameText(t, name, tok.Decode(x.IDsNoSpecial, false), x.Decoded)
			sameText(t, name, tok.Decode(x.IDs, true), x.DecodedSkipSpecial)
		}
		for _, x := range g.Decode {
			sameText(t, name, tok.Decode(x.IDs, false), x.Text)
			sameText(t, name, tok.Decode(x.IDs, true), x.TextSkipSpecial)
		}
		for _, x := range g.Chats {
			text, ids, err := tok.Chat(x.Messages, ChatOptions{AddGenerationPrompt: x.AddGenerationPrompt})
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			sameText(t, name, text, x.Text)
			sameIDs(t, name, x.Text, ids, x.IDs)
		}
	}
	if len(all) != 3 {
		t.Errorf("%d tokenizers in the golden file", len(all))
	}
}

func sameIDs(t testing.TB, name, text string, got, want []int32) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %.60q is\n%v, want\n%v", name, text, got[:min(len(got), 40)], want[:min(len(want), 40)])
	}
}

func sameText(t testing.TB, name, got, want string) {
	t.Helper()
	if got != want {
		n := 0
		for n < len(got) && n < len(want) && got[n] == want[n] {
			n++
		}
		n = max(0, n-20)
		t.Errorf("%s: from byte %d\n%.200q, want\n%.200q", name, n, got[min(n, len(got)):], want[min(n, len(want)):])
	}
}

// stream decodes token by token.
func stream(tok *Tokenizer, ids []int32, skipSpecial bool) string {
	var out strings.Builder
	s := tok.Stream(skipSpecial)
	for _, id := range ids {
		out.WriteString(s.Push(id))
	}
	return out.String() + s.Flush()
}

// engineGaps are the synthetic templates that gonja does not render as Jinja does, and why. The package comment says
// the same.
var engineGaps = map[string]string{
	"{{ 'a' ~ 1 ~ none ~ true ~ 1.0 }}": "None is written as nothing",
	"{{ {'k': 'v', 'n': {'m': 1}} }}{{ ['a', 1, True, None] }}{{ 1.0 }}{{ 1e-7 }}{{ 123456789012 }}":                 "None is written as nothing",
	"{{ x | trim | upper | replace('A','b') | default('q') | first }}{{ 7 // 2 }}{{ 7 % 4 }}{{ 2 ** 3 }}{{ 1 / 2 }}": "** gives a float",
	"{{ messages[0].nope is none }}":                            "what is undefined is None",
	"{% set first, second = 'a', 'b' %}{{ first }}{{ second }}": "set takes one name",
}

func TestChatTemplates(t *testing.T) {
	var cases []struct {
		Model, Template string
		Kw              json.RawMessage
		Want            *string
	}
	if err := json.NewDecoder(unzip(t, "chat_template_cases.json.gz")).Decode(&cases); err != nil {
		t.Fatal(err)
	}
	rows, gaps := map[string]int{}, 0
	for i, c := range cases {
		rows[c.Model]++
		got, err := renderJSON(t, c.Template, c.Kw)
		good := err == nil && c.Want != nil && got == *c.Want || err != nil && c.Want == nil
		if _, gap := engineGaps[c.Template]; gap {
			gaps++
			if good {
				t.Errorf("%s renders right by now: take it off the list of gaps here and in the package comment", c.Template)
			}
			continue
		}
		if !good {
			want := "an error"
			if c.Want != nil {
				want = *c.Want
			}
			t.Errorf("case %d (%s): error %v", i, c.Model, err)
			sameText(t, c.Model, got, want)
		}
	}
	if want := map[string]int{"qwen3": 55, "qwen2_5": 15, "llama3": 24, "syn": 15}; !reflect.DeepEqual(rows, want) || gaps != 3 {
		t.Errorf("%v rows, want %v; %d gaps, want 3", rows, want, gaps)
	}
}

// renderJSON renders a template with the variables of a JSON object.
func renderJSON(t *testing.T, source string, variables json.RawMessage) (string, error) {
	t.Helper()
	compiled, err := compile(source, marks{})
	if err != nil {
		return "", err
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(variables, &raw); err != nil {
		t.Fatal(err)
	}
	all := map[string]any{}
	for name, value := range raw {
		all[name], err = decodeValue(value, strings.Clone)
		if err != nil {
			t.Fatal(err)
		}
	}
	return render(compiled, all, time.Time{})
}

// realChat is a row of the chats that transformers rendered with the real models' templates.
type realChat struct {
	Tok string
	chatRow
	Kwargs map[string]any
}

func TestRealChats(t *testing.T) {
	var configs map[string]*configJSON
	b, err := os.ReadFile("testdata/real_templates.json")
	if err == nil {
		err = json.Unmarshal(b, &configs)
	}
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	lines(t, "real_chats.jsonl.gz", func(x realChat) {
		c := configs[x.Tok]
		tok := &Tokenizer{named: c.named(), guard: newGuard(nil)}
		o := ChatOptions{AddGenerationPrompt: x.AddGenerationPrompt, Kwargs: x.Kwargs}
		in, err := newChatInput(x.Messages, o)
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := tok.render(newTemplate(x.Tok, c.ChatTemplate["default"]), in, o)
		if err != nil {
			t.Errorf("%s: %v", x.Tok, err)
		}
		sameText(t, x.Tok, got, x.Text)
		n++
	})
	if n != 40 {
		t.Errorf("%d chats", n)
	}
}
