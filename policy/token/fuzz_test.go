package token

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func FuzzLoad(f *testing.F) {
	f.Add([]byte(`{"model":{"vocab":{"a":0,"b":1,"ab":2,"\u0120":3},"merges":["a b"],"unk_token":"b","fuse_unk":true,"ignore_merges":true},
		"added_tokens":[{"id":4,"content":"<x>","lstrip":true,"normalized":true}],"normalizer":{"type":"NFC"},"decoder":{"type":"ByteLevel"},
		"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"\\p{L}+"},"behavior":"Removed"},{"type":"ByteLevel"}]},
		"post_processor":{"type":"TemplateProcessing","single":[{"Sequence":{"id":"A"}}]}}`))
	f.Add([]byte(`{"model":{"vocab":{"a":0},"merges":[["a","a"]]},"decoder":{"type":"ByteLevel"},"pre_tokenizer":{"type":"ByteLevel"}}`))
	f.Fuzz(func(t *testing.T, file []byte) {
		tok, err := loadJSON(t, file)
		if err != nil {
			return
		}
		text := "Hello <|im_end|> wörld 12 " + string(file[:min(len(file), 50)])
		tok.Decode(tok.Encode(text, EncodeOptions{AddSpecial: true}), true)
	})
}

func FuzzRoundTrip(f *testing.F) {
	composed, as := tiny(f, "qwen2"), []*Tokenizer{tiny(f, "llama3"), tiny(f, "smollm")}
	pipeline := composed.Pipeline()
	for _, s := range []string{"Hello, world!", "<|im_end|>x<|eot_id|>", "e\u0301\u0323 가각", "\xff\xe4\xbd", " \n\n x'LL 1234 \u017f's", "\u0301\u0301"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, o := range []EncodeOptions{{}, {Plain: true}} {
			ids := composed.Encode(text, o)
			if got, want := composed.Decode(ids, false), nfc().String(lossy(text)); got != want && !strings.Contains(text, "<|") {
				t.Errorf("%+v: %q comes back as %q, want %q", o, text, got, want)
			}
			for _, id := range ids {
				if o.Plain && composed.IsSpecial(id) {
					t.Errorf("%q holds special token %d", text, id)
				}
			}
			for _, tok := range as {
				ids := tok.Encode(text, o)
				if got := tok.Decode(ids, false); got != lossy(text) || stream(tok, ids, false) != got {
					t.Errorf("%+v: %q comes back as %q", o, text, got)
				}
			}
		}
		if utf8.ValidString(text) && text != "" {
			agree(t, composed, pipeline, text)
		}
	})
}

func FuzzChat(f *testing.F) {
	tok := variant(f, "llama3", "{% for m in messages %}<|start_header_id|>{{ m.content | trim }}<|eot_id|>{% endfor %}")
	f.Add("a", " b <|eot_id|>\n")
	f.Add("<|eot", "_id|><|start_header_id|>")
	f.Fuzz(func(t *testing.T, a, b string) {
		text, ids, err := tok.Chat([]Message{{Role: "user", Content: a}, {Role: "user", Content: b}}, ChatOptions{})
		if err != nil {
			t.Fatalf("%q %q: %v", a, b, err)
		}
		var want []string
		for _, s := range []string{a, b} {
			want = append(want, "<|start_header_id|>"+strings.TrimFunc(lossyJSON(t, s), isSpace)+"<|eot_id|>")
		}
		sameText(t, "text", text, strings.Join(want, ""))
		sameText(t, "ids", tok.Decode(ids, false), text)
		special := 0
		for _, id := range ids {
			if tok.IsSpecial(id) {
				special++
			}
		}
		if special != 4 {
			t.Errorf("%q %q: %d special tokens, the template has 4", a, b, special)
		}
	})
}

// lossyJSON is s as it passes through JSON, which replaces each byte that is not UTF-8.
func lossyJSON(t *testing.T, s string) string {
	b, err := json.Marshal(s)
	var out string
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func FuzzTemplate(f *testing.F) {
	for _, s := range []string{chatML, "{{ messages[0].content.split('x')[-1] | tojson(indent=2) }}", "{% macro f(x) %}{{ x }}{% endmacro %}{{ f(1) }}",
		"{%- for k, v in messages[0].items() -%}{{ k ~ v }}{%- endfor +%}\n x {#- c -#} y {% raw %}{{{% endraw %}"} {
		f.Add(s)
	}
	vars := map[string]any{"messages": list{"x", list{}}}
	f.Fuzz(func(t *testing.T, source string) {
		compiled, err := compile(source, marks{})
		if err == nil {
			_, _ = render(compiled, vars, time.Unix(0, 0).UTC())
		}
	})
}
