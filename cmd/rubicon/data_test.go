package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rubicon-rl/rubicon/configs"
	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/internal/golden"
	"github.com/rubicon-rl/rubicon/policy/token"
	"github.com/rubicon-rl/rubicon/trainer"
	"github.com/rubicon-rl/rubicon/trainer/data"
)

// toolTokenizer is that of a tiny model, with a chat template that begins with the tools.
func toolTokenizer(t *testing.T) *token.Tokenizer {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(golden.Path("models", "qwen2"))); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "tokenizer_config.json")
	settings := map[string]any{}
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &settings)
	}
	template, _ := settings["chat_template"].(string)
	settings["chat_template"] = "{% if tools %}{{ tools | tojson }}\n{% endif %}" + template
	if err == nil {
		text, err = json.Marshal(settings)
	}
	if err == nil {
		err = os.WriteFile(file, text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	tok, err := token.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// The tools of an example's row stand in what is learned from as the chat template writes them, and are not learned themselves.
func TestExampleWithTools(t *testing.T) {
	tok := toolTokenizer(t)
	r := &openedRun{Parts: trainer.Parts{Config: configs.Default(), Tokenizer: tok, Now: func() time.Time { return time.Time{} }}}
	var tools any
	if err := json.Unmarshal([]byte(`[{"type": "function", "function": {"name": "weigh_it", "parameters": {}}}]`), &tools); err != nil {
		t.Fatal(err)
	}
	row := data.Example{Messages: []grpo.Message{{Role: "user", Content: "how heavy?"}, {Role: "assistant", Content: "very"}}, Columns: map[string]any{"tools": tools}}
	e, err := r.encodeExample(row)
	if err != nil {
		t.Fatal(err)
	}
	var learned []int32
	for i, id := range e.Tokens {
		if e.Learn[i] {
			learned = append(learned, id)
		}
	}
	if all, own := tok.Decode(e.Tokens, false), tok.Decode(learned, false); !strings.Contains(all, "weigh_it") || strings.Contains(own, "weigh_it") || !strings.Contains(own, "very") {
		t.Errorf("the example is %q, of which %q is learned", all, own)
	}
	row.Columns["tools"] = "weigh_it"
	if _, err := r.encodeExample(row); err == nil || !strings.Contains(err.Error(), "column tools is no list") {
		t.Errorf("error %v", err)
	}
}
