package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/golden"
)

// tokenize runs the command on input.
func tokenize(t *testing.T, input string, flags ...string) (string, error) {
	t.Helper()
	c := tokenizeCommand()
	var out bytes.Buffer
	c.SilenceUsage, c.SilenceErrors = true, true
	c.SetIn(strings.NewReader(input))
	c.SetOut(&out)
	c.SetArgs(append([]string{"--model", golden.Path("models", "llama3")}, flags...))
	err := c.Execute()
	return out.String(), err
}

func TestTokenize(t *testing.T) {
	// Ids from transformers and tokenizers.
	for _, x := range []struct{ name, flags, in, out string }{
		{"encode", "", `{"text": "Hello, world!"}` + "\n" + `{"text": ""}`, `{"ids":[39,475,306,11,307,262,75,67,0]}` + "\n" + `{"ids":[]}` + "\n"},
		{"special", "--add-special", `{"text": "Hello, world!"}`, `{"ids":[994,39,475,306,11,307,262,75,67,0]}` + "\n"},
		{"matched", "", `{"text": "<|eot_id|>"}`, `{"ids":[998]}` + "\n"},
		{"decode", "--decode", `{"ids": [994,39,475,306]}`, `{"text":"<|begin_of_text|>Hello"}` + "\n"},
		{"skip", "--decode --skip-special", `{"ids": [994,39,475,306]}`, `{"text":"Hello"}` + "\n"},
		{"pieces", "--pieces", `{"text": "Hello <|eot_id|>é"}`,
			`{"ids":[39,475,306,220,998,513],"offsets":[[0,1],[1,3],[3,5],[5,6],[6,16],[16,18]],"tokens":["H","el","lo","Ġ","<|eot_id|>","Ã©"]}` + "\n"},
		{"chat", "--chat", `{"messages": [{"role": "user", "content": "What is 2 + 3?"}], "add_generation_prompt": true}`,
			`{"ids":[994,996,574,260,997,198,198,926,316,220,17,531,220,18,30,998,996,64,332,801,533,997,198,198],` +
				`"text":"<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nWhat is 2 + 3?<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"}` + "\n"},
	} {
		t.Run(x.name, func(t *testing.T) {
			got, err := tokenize(t, x.in, strings.Fields(x.flags)...)
			if err != nil || got != x.out {
				t.Errorf("%v\n%s, want\n%s", err, got, x.out)
			}
		})
	}
}

func TestTokenizePlain(t *testing.T) {
	for _, flags := range []string{"--plain", "--chat"} {
		in := `{"text": "<|eot_id|>", "messages": [{"role": "user", "content": "<|eot_id|>"}]}`
		got, err := tokenize(t, in, flags)
		n := strings.Count(got, "998")
		if want := strings.Count(flags, "chat"); err != nil || n != want { // the chat has the template's own
			t.Errorf("%s: %v, %d ends of turn, want %d: %s", flags, err, n, want, got)
		}
	}
}

func TestTokenizeBadLines(t *testing.T) {
	for _, x := range []struct{ flags, in, want string }{
		{"", "{\"text\": \"a\"}\n{\"txt\": \"a\"}", `line 2: an object with a "text" is wanted`},
		{"", "{\"text\": 1}", "line 1: "},
		{"", "\n\nnonsense", "line 3: "},
		{"--decode", `{"ids": [1.5]}`, "line 1: "},
		{"--decode", `{}`, `line 1: an object with "ids" is wanted`},
		{"--chat", `{"messages": []}`, "line 1: chat template in "},
		{"--chat", `{"messages": [{"content": "x"}]}`, "line 1: a message has no role"},
		{"--chat --decode", "", "none of the others can be"},
	} {
		if _, err := tokenize(t, x.in, strings.Fields(x.flags)...); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s %s: error %v, want %q", x.flags, x.in, err, x.want)
		}
	}
}
