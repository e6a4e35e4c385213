package token

import (
	"testing"

	"github.com/sugarme/tokenizer"
)

// throughPipeline encodes with the library's pipeline.
func throughPipeline(t testing.TB, p *tokenizer.Tokenizer, text string, addSpecial bool) *tokenizer.Encoding {
	t.Helper()
	e, err := p.Encode(tokenizer.NewSingleEncodeInput(tokenizer.NewInputSequence(text)), addSpecial)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return e
}

// agree compares Encode with the pipeline, which must also say where each token stands.
func agree(t testing.TB, tok *Tokenizer, p *tokenizer.Tokenizer, text string) {
	t.Helper()
	for _, special := range []bool{false, true} {
		e := throughPipeline(t, p, text, special)
		ids := make([]int32, len(e.Ids))
		for i, id := range e.Ids {
			ids[i] = int32(id)
		}
		sameIDs(t, "pipeline", text, ids, tok.Encode(text, EncodeOptions{AddSpecial: special}))
		sameText(t, "pipeline decode", p.Decode(e.Ids, false), tok.Decode(ids, false))
		for i, id := range ids {
			if token, _ := tok.IDToToken(id); e.Tokens[i] != token {
				t.Errorf("pipeline: token %d of %q is %q, want %q", i, text, e.Tokens[i], token)
			}
		}
	}
}

func TestPipeline(t *testing.T) {
	var hard = []string{"", "a", "Hello  world 123\n\n x", "<|im_start|>user\nCafe\u0301 <|im_end|><|eot_id|>\n", "日本語🙂 \u1100\u1161\u11a8"}
	for _, name := range []string{"qwen2", "qwen3", "smollm", "llama3"} {
		tok := tiny(t, name)
		p := tok.Pipeline()
		for _, text := range hard {
			agree(t, tok, p, text)
		}
	}
	tok := tiny(t, "qwen2")
	text := "é <|im_end|>x e\u0301\u0323y"
	e := throughPipeline(t, tok.Pipeline(), text, false)
	// Byte offsets as tokenizers gives them, in bytes instead of characters.
	var got []string
	for _, o := range e.Offsets {
		got = append(got, text[o[0]:o[1]])
	}
	t.Logf("%q %q", e.Tokens, got)
}
