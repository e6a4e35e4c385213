package token

import (
	"slices"
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

// agree compares Encode and Decode with the pipeline.
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
}

// TestPieces has what Hugging Face tokenizers says, its offsets in bytes instead of characters.
func TestPieces(t *testing.T) {
	for text, want := range map[string][]Piece{
		"é <|im_end|>x 漢! ": {{512, "Ã©", 0, 2}, {220, "Ġ", 2, 3}, {999, "<|im_end|>", 3, 13}, {87, "x", 13, 14}, {220, "Ġ", 14, 15},
			{162, "æ", 15, 18}, {120, "¼", 15, 18}, {95, "¢", 15, 18}, {0, "!", 18, 19}, {220, "Ġ", 19, 20}},
		"a \u212b e\u0301 \u1100\u1161z": {{64, "a", 0, 1}, {908, "ĠÃ", 1, 5}, {227, "ħ", 2, 5}, {220, "Ġ", 5, 6}, {512, "Ã©", 6, 7},
			{220, "Ġ", 9, 10}, {166, "ê", 10, 13}, {108, "°", 10, 13}, {222, "Ģ", 10, 13}, {89, "z", 16, 17}},
		"": {},
	} {
		got, err := tiny(t, "qwen2").Pieces(text, false)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v\n%v, want\n%v", text, err, got, want)
		}
	}
	got, err := tiny(t, "llama3").Pieces("H", true)
	if want := []Piece{{994, "<|begin_of_text|>", 0, 0}, {39, "H", 0, 1}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("with special tokens: %v, %v, want %v", err, got, want)
	}
}
