package token

import (
	"testing"

	"github.com/rubicon-rl/rubicon/internal/golden"
)

// The bytes of a text's tokens, one after the other, are the text, though a token may hold a part of a character.
func TestBytesAreExact(t *testing.T) {
	tok, err := Load(golden.Path("models", "qwen2"))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{`{"a": [1, "é漢😀"]}`, "\x00\t\n\u007f  x", "the then"} {
		var got []byte
		cut := false
		for _, id := range tok.Encode(text, EncodeOptions{Plain: true}) {
			b := tok.Bytes(id)
			got = append(got, b...)
			cut = cut || len(b) == 1 && b[0] >= 0x80
		}
		if string(got) != text {
			t.Errorf("the bytes of %q are %q", text, got)
		}
		if text[0] == '{' && !cut {
			t.Errorf("no token of %q is a part of a character: the test says nothing", text)
		}
	}
	id, ok := tok.TokenToID("<|im_end|>")
	if !ok || !tok.IsSpecial(id) || string(tok.Bytes(id)) != "<|im_end|>" {
		t.Errorf("<|im_end|> is %d, special %v, %q", id, tok.IsSpecial(id), tok.Bytes(id))
	}
	if b := tok.Bytes(-1); len(b) != 0 {
		t.Errorf("no token has the bytes %q", b)
	}
	if b := tok.Bytes(int32(tok.VocabSize())); len(b) != 0 {
		t.Errorf("an id past the vocabulary has the bytes %q", b)
	}
}
