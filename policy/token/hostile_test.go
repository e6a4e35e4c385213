package token

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/golden"
)

// tinyJSON is the tokenizer.json of a small model.
func tinyJSON(t testing.TB) []byte {
	t.Helper()
	b, err := os.ReadFile(golden.Path("models", "qwen2", tokenizerFile))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestHostileTokenizers: each file is the small model's with one part replaced, and refused for a reason that the
// error names.
func TestHostileTokenizers(t *testing.T) {
	good := tinyJSON(t)
	for _, x := range []struct{ path, value, want string }{
		{"", `[]`, "not a tokenizer"},
		{"", `{}`, "no model"},
		{"", `null`, "no model"},
		{"model", `{"type":"BPE"}`, "no model with a vocabulary"},
		{"model.type", `"Unigram"`, "Unigram"},
		{"model.dropout", `0.1`, "dropout"},
		{"model.byte_fallback", `true`, "byte_fallback"},
		{"model.continuing_subword_prefix", `"##"`, "continuing_subword_prefix"},
		{"model.ignore_merges", `"yes"`, "ignore_merges"},
		{"model.unk_token", `"<nope>"`, "unk_token"},
		{"model.vocab", `[]`, "an object of token: id is wanted"},
		{"model.vocab", `{"a":"1"}`, "an id"},
		{"model.vocab", `{"a":1.5}`, "an id"},
		{"model.vocab", `{"a":-1}`, "an id"},
		{"model.vocab", `{"a":4294967296}`, "an id"},
		{"model.vocab", `{"a":2000000000}`, "too large"},
		{"model.vocab", `{"a":0,"a":1}`, "twice"},
		{"model.vocab", `{"a":0,"\u0061":1}`, "twice"},
		{"model.vocab", `{"a":0,"b":0}`, "same id"},
		{"model.vocab", `{"":0}`, "empty token"},
		{"model.merges", `{}`, "a list is wanted"},
		{"model.merges", `["a"]`, "not two tokens"},
		{"model.merges", `["a b c"]`, "not two tokens"},
		{"model.merges", `[["a"]]`, "a string is wanted"},
		{"model.merges", `[["a","b","c"]]`, "two tokens are wanted"},
		{"model.merges", `[1]`, "a string is wanted"},
		{"model.merges", `["a zzzz"]`, "not in the vocabulary"},
		{"model.merges", `["q q"]`, "not in the vocabulary"},
		{"model.merges", `["Ġ Ġ","Ġ Ġ"]`, "as an earlier one does"},
		{"added_tokens", `{}`, "added_tokens"},
		{"added_tokens", `[{"id":"1","content":"x"}]`, "added_tokens"},
		{"added_tokens", `[{"id":1000,"content":""}]`, "no content"},
		{"added_tokens", `[{"id":-5,"content":"<x>"}]`, "has id -5"},
		{"added_tokens", `[{"id":5,"content":"<x>"}]`, "which is that of"},
		{"added_tokens", `[{"id":1000,"content":"<x>"},{"id":1000,"content":"<y>"}]`, "which is that of"},
		{"added_tokens", `[{"id":1000,"content":"<x>"},{"id":1001,"content":"<x>"}]`, "twice"},
		{"added_tokens", `[{"id":1000,"content":"a"}]`, "not its id"},
		{"added_tokens", `[{"id":99999999,"content":"<x>"}]`, "too large"},
		{"normalizer", `{"type":"Lowercase"}`, "Lowercase"},
		{"normalizer", `{}`, "no type"},
		{"normalizer", `5`, "normalizer"},
		{"pre_tokenizer", `null`, "not a byte-level"},
		{"pre_tokenizer", `{"type":"Metaspace"}`, "Metaspace"},
		{"pre_tokenizer", `{"type":"Sequence","pretokenizers":[]}`, "not a byte-level"},
		{"pre_tokenizer", `{"type":"Sequence","pretokenizers":[{"type":"ByteLevel"},{"type":"Digits"}]}`, "behind ByteLevel"},
		{"pre_tokenizer", `{"type":"Split"}`, "behavior"},
		{"pre_tokenizer", `{"type":"Split","behavior":"Isolated"}`, "no pattern"},
		{"pre_tokenizer", `{"type":"Split","behavior":"MergedWithNext","pattern":{"String":"a"}}`, "MergedWithNext"},
		{"pre_tokenizer", `{"type":"Split","behavior":"Isolated","pattern":{"Regex":"(a"}}`, "pattern of Split"},
		{"decoder", `null`, "decoder"},
		{"decoder", `{"type":"WordPiece"}`, "WordPiece"},
		{"post_processor", `{"type":"BertProcessing"}`, "BertProcessing"},
		{"post_processor", `{"type":"TemplateProcessing","single":[]}`, "0 times"},
		{"post_processor", `{"type":"TemplateProcessing","single":[{"Sequence":{"id":"B"}}]}`, "neither"},
		{"post_processor", `{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>"}}]}`, "no valid ids"},
		{"post_processor", `{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"s"}}],"special_tokens":{"s":{"ids":[7777]}}}`, "no valid ids"},
	} {
		_, err := loadJSON(t, replaced(t, good, x.path, x.value))
		if err == nil || !strings.Contains(err.Error(), x.want) || !strings.Contains(err.Error(), tokenizerFile) {
			t.Errorf("%s %s: error %v, want %q in %s", x.path, x.value, err, x.want, tokenizerFile)
		}
	}
	for n := 0; n < len(good); n += 997 {
		if _, err := loadJSON(t, good[:n]); err == nil {
			t.Errorf("%d of %d bytes load", n, len(good))
		}
	}
	if _, err := loadJSON(t, bytes.Replace(good, []byte("endoftext"), []byte("\xff"), 1)); err == nil || !strings.Contains(err.Error(), "UTF-8") {
		t.Errorf("bytes that are no text: %v", err)
	}
	if _, err := Load(t.TempDir()); err == nil {
		t.Error("an empty folder loads")
	}
}

// replaced is file with one member, named by a path of keys, replaced.
func replaced(t *testing.T, file []byte, path, value string) []byte {
	t.Helper()
	if path == "" {
		return []byte(value)
	}
	key, rest, _ := strings.Cut(path, ".")
	var members map[string]json.RawMessage
	if err := json.Unmarshal(file, &members); err != nil {
		t.Fatal(err)
	}
	members[key] = replaced(t, members[key], rest, value)
	b, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestConfigs(t *testing.T) {
	for _, x := range []struct{ config, want string }{
		{`[]`, configFile},
		{`{"eos_token": 5}`, "special token"},
		{`{"eos_token": "<nope>"}`, "neither in the vocabulary"},
		{`{"added_tokens_decoder": {"x": {"content": "<x>"}}}`, "added token"},
		{`{"added_tokens_decoder": {"1000": {"content": ""}}}`, "no content"},
		{`{"added_tokens_decoder": {"3": {"content": "<x>"}}}`, "which is that of"},
		{`{"chat_template": 5}`, "chat_template"},
		{`{"chat_template": [{"name": "default"}]}`, "no template"},
		{`{"clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output": true}`, "corrupts"},
	} {
		if _, err := loadWith(t, x.config, ""); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: error %v, want %q", x.config, err, x.want)
		}
	}
	// The config may add tokens, make one of the vocabulary special, and leave names to the older file.
	tok, err := loadWith(t, `{"eos_token": {"content": "Ġthe"}, "pad_token": null, "added_tokens_decoder": {"1000": {"content": "<x>"}}}`,
		`{"eos_token": "<|endoftext|>", "pad_token": "<|endoftext|>", "bos_token": {"content": "<|im_start|>"}}`)
	if err != nil {
		t.Fatal(err)
	}
	the, _ := tok.TokenToID("Ġthe")
	if tok.EOS() != the || tok.PAD() != 997 || tok.BOS() != 998 || !tok.IsSpecial(the) || tok.IsSpecial(1000) || tok.VocabSize() != 1001 {
		t.Errorf("eos %d pad %d bos %d of %d", tok.EOS(), tok.PAD(), tok.BOS(), tok.VocabSize())
	}
	sameIDs(t, "from the config", "<x>", tok.Encode("<x>", EncodeOptions{}), []int32{1000})
	if none := tiny(t, "qwen3"); none.BOS() != -1 || none.EOS() != 999 {
		t.Errorf("qwen3: bos %d, eos %d", none.BOS(), none.EOS())
	}
	if _, ok := tok.IDToToken(5000); ok || tok.IsSpecial(-1) {
		t.Error("ids outside the vocabulary are known")
	}
}

// loadWith loads the small model's tokenizer with other configurations.
func loadWith(t *testing.T, config, specials string) (*Tokenizer, error) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{tokenizerFile: string(tinyJSON(t)), configFile: config, specialsFile: specials} {
		if content == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return Load(dir)
}

// TestLossy: Python's bytes.decode(errors="replace"), which Rust's from_utf8_lossy equals.
func TestLossy(t *testing.T) {
	for in, want := range map[string]string{
		"\xff": "\ufffd", "a\x80b": "a\ufffdb", "\xe4\xbd": "\ufffd", "\xe4\xbdx": "\ufffdx", "\xe4\x20": "\ufffd ",
		"\xf0\x9f\x98": "\ufffd", "\xf0\x9f\x98\xf0\x9f\x98\x80": "\ufffd\U0001f600", "\xed\xa0\x80": "\ufffd\ufffd\ufffd",
		"\xc0\x80": "\ufffd\ufffd", "\xe0\x80\x80": "\ufffd\ufffd\ufffd", "\xf4\x90\x80\x80": "\ufffd\ufffd\ufffd\ufffd",
		"\xf0\x9f\xff": "\ufffd\ufffd", "\xc3": "\ufffd", "\xf5\x80": "\ufffd\ufffd",
	} {
		if got := lossy(in); got != want {
			t.Errorf("lossy(%q) = %q, want %q", in, got, want)
		}
	}
}

// TestLongWords: words of a megabyte are a matter of moments. Quadratic time would be hours.
func TestLongWords(t *testing.T) {
	tok := tiny(t, "llama3")
	for _, word := range []string{"a", "the", "ab ", "漢字", "🙂", " ", "\n", "e\u0301", "0", "!", "\u0301", "<|eot_id|"} {
		text := strings.Repeat(word, 1<<20/len(word))
		ids := tok.Encode(text, EncodeOptions{})
		if got := tok.Decode(ids, false); got != text {
			t.Errorf("a megabyte of %q is not what it was", word)
		}
	}
}
