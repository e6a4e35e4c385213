//go:build slow

package token

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// realDir is a folder that scripts/fetch-tokenizers.sh made.
func realDir(t testing.TB, name string) string {
	t.Helper()
	dir := os.Getenv("RUBICON_TEST_TOKENIZERS")
	if dir == "" {
		t.Fatal("set RUBICON_TEST_TOKENIZERS to the folder that scripts/fetch-tokenizers.sh filled")
	}
	return filepath.Join(dir, name)
}

// smolDir makes the tokenizer of the corpus' column smol: GPT-2's vocabulary behind SmolLM's pre-tokenizer.
func smolDir(t testing.TB) string {
	t.Helper()
	var file map[string]json.RawMessage
	b, err := os.ReadFile(filepath.Join(realDir(t, "gpt2"), tokenizerFile))
	if err == nil {
		err = json.Unmarshal(b, &file)
	}
	if err != nil {
		t.Fatal(err)
	}
	file["pre_tokenizer"] = json.RawMessage(`{"type":"Sequence","pretokenizers":[{"type":"Digits","individual_digits":true},
		{"type":"ByteLevel","add_prefix_space":false,"use_regex":true}]}`)
	b, err = json.Marshal(file)
	dir := t.TempDir()
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, tokenizerFile), b, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// hardRow is a text and its ids by tokenizer, with added tokens matched. NAME_decoded is true if they decode to the
// text, or what they decode to.
type hardRow struct {
	Category, Text      string
	Qwen3, Llama3, Smol []int32
	Qwen25              []int32         `json:"qwen2_5"`
	Qwen3Decoded        json.RawMessage `json:"qwen3_decoded"`
	Qwen25Decoded       json.RawMessage `json:"qwen2_5_decoded"`
	Llama3Decoded       json.RawMessage `json:"llama3_decoded"`
	SmolDecoded         json.RawMessage `json:"smol_decoded"`
}

func TestHardStrings(t *testing.T) {
	columns := []struct {
		name string
		tok  *Tokenizer
		ids  func(*hardRow) []int32
		text func(*hardRow) json.RawMessage
	}{
		{"qwen3", load(t, realDir(t, "qwen3")), func(r *hardRow) []int32 { return r.Qwen3 }, func(r *hardRow) json.RawMessage { return r.Qwen3Decoded }},
		{"qwen2_5", load(t, realDir(t, "qwen2_5")), func(r *hardRow) []int32 { return r.Qwen25 }, func(r *hardRow) json.RawMessage { return r.Qwen25Decoded }},
		{"llama3", load(t, realDir(t, "llama3")), func(r *hardRow) []int32 { return r.Llama3 }, func(r *hardRow) json.RawMessage { return r.Llama3Decoded }},
		{"smol", load(t, smolDir(t)), func(r *hardRow) []int32 { return r.Smol }, func(r *hardRow) json.RawMessage { return r.SmolDecoded }},
	}
	n := 0
	lines(t, "tokenizer_hard_strings.jsonl.gz", func(r hardRow) {
		n++
		for _, c := range columns {
			sameIDs(t, c.name+" "+r.Category, r.Text, c.tok.Encode(r.Text, EncodeOptions{}), c.ids(&r))
			want := r.Text
			if d := c.text(&r); string(d) != "true" {
				if err := json.Unmarshal(d, &want); err != nil {
					t.Fatal(err)
				}
			}
			sameText(t, c.name+" "+r.Category, c.tok.Decode(c.ids(&r), false), want)
			sameText(t, c.name+" streamed "+r.Category, stream(c.tok, c.ids(&r), false), want)
		}
	})
	if n != 8071 {
		t.Errorf("%d strings", n)
	}
}

func TestRandomIDs(t *testing.T) {
	for _, name := range []string{"qwen3", "qwen2_5", "llama3"} {
		tok := load(t, realDir(t, name))
		lines(t, "tokenizer_decode_"+name+".jsonl.gz", func(r struct {
			IDs  []int32
			Text string
		}) {
			sameText(t, name, tok.Decode(r.IDs, false), r.Text)
			sameText(t, name+" streamed", stream(tok, r.IDs, false), r.Text)
		})
	}
}

func TestRealTokenizers(t *testing.T) {
	toks := map[string]*Tokenizer{}
	lines(t, "real_tokenizers.jsonl.gz", func(r struct {
		Tok, Text, Decoded string
		IDs                []int32
		IDsSpecial         []int32 `json:"ids_special"`
	}) {
		if toks[r.Tok] == nil {
			toks[r.Tok] = load(t, realDir(t, r.Tok))
		}
		tok := toks[r.Tok]
		sameIDs(t, r.Tok, r.Text, tok.Encode(r.Text, EncodeOptions{}), r.IDs)
		sameIDs(t, r.Tok, r.Text, tok.Encode(r.Text, EncodeOptions{AddSpecial: true}), r.IDsSpecial)
		sameText(t, r.Tok, tok.Decode(r.IDs, false), r.Decoded)
	})
	if len(toks) != 4 {
		t.Errorf("%d tokenizers", len(toks))
	}
}

func TestRealChatsEndToEnd(t *testing.T) {
	toks := map[string]*Tokenizer{}
	lines(t, "real_chats.jsonl.gz", func(x realChat) {
		if toks[x.Tok] == nil {
			toks[x.Tok] = load(t, realDir(t, x.Tok))
		}
		tok := toks[x.Tok]
		text, ids, err := tok.Chat(x.Messages, ChatOptions{AddGenerationPrompt: x.AddGenerationPrompt, Kwargs: x.Kwargs})
		if err != nil {
			t.Fatal(err)
		}
		sameText(t, x.Tok, text, x.Text)
		sameIDs(t, x.Tok, text, ids, tok.Encode(text, EncodeOptions{}))
	})
}

// TestPipelineCorpora compares the pipeline with Encode on all hard strings but the one of a megabyte.
func TestPipelineCorpora(t *testing.T) {
	for _, dir := range []string{realDir(t, "qwen3"), realDir(t, "llama3_1"), smolDir(t)} {
		tok := load(t, dir)
		p := tok.Pipeline()
		lines(t, "tokenizer_hard_strings.jsonl.gz", func(r hardRow) {
			if len(r.Text) < 20000 {
				agree(t, tok, p, r.Text)
			}
		})
	}
}
