package token

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// peerRecord is a line of peer.jsonl.gz, made by scripts/token-golden.py.
type peerRecord struct {
	Kind, Name string
	File       json.RawMessage // tokenizer.json
	Variables  json.RawMessage
	Rows       []struct {
		Text         string
		IDs, Special []int32
		Decoded      *string // of IDs without special tokens; the normal form; what a template renders, nil: an error
		Raw          string  // of IDs with special tokens
	}
}

func peerRecords(t *testing.T, kind string) []peerRecord {
	var out []peerRecord
	lines(t, "peer.jsonl.gz", func(r peerRecord) {
		if r.Kind == kind {
			out = append(out, r)
		}
	})
	if len(out) == 0 {
		t.Fatalf("no %s", kind)
	}
	return out
}

// loadJSON loads a tokenizer.json.
func loadJSON(t testing.TB, file []byte) (*Tokenizer, error) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, tokenizerFile), file, 0o644); err != nil {
		t.Fatal(err)
	}
	return Load(dir)
}

func TestOddTokenizers(t *testing.T) {
	for _, r := range peerRecords(t, "tokenizer") {
		tok, err := loadJSON(t, r.File)
		if err != nil {
			t.Errorf("%s: %v", r.Name, err)
			continue
		}
		for _, x := range r.Rows {
			sameIDs(t, r.Name, x.Text, tok.Encode(x.Text, EncodeOptions{}), x.IDs)
			sameIDs(t, r.Name+" with special tokens", x.Text, tok.Encode(x.Text, EncodeOptions{AddSpecial: true}), x.Special)
			sameText(t, r.Name, tok.Decode(x.IDs, true), *x.Decoded)
			sameText(t, r.Name, tok.Decode(x.IDs, false), x.Raw)
			sameText(t, r.Name+" streamed", stream(tok, x.IDs, true), *x.Decoded)
			sameText(t, r.Name+" streamed", stream(tok, x.IDs, false), x.Raw)
		}
	}
}

func TestNormalForm(t *testing.T) {
	for _, x := range peerRecords(t, "nfc")[0].Rows {
		got := nfc().String(x.Text)
		if got != *x.Decoded {
			t.Errorf("NFC of %+q is %+q, want %+q", x.Text, got, *x.Decoded)
		}
		if again := nfc().String(got); again != got {
			t.Errorf("NFC of %+q, which is composed, is %+q", got, again)
		}
	}
}

func TestPythonInTemplates(t *testing.T) {
	r := peerRecords(t, "chat")[0]
	gaps := 0
	for _, x := range r.Rows {
		got, err := renderJSON(t, x.Text, r.Variables)
		good := err == nil && x.Decoded != nil && got == *x.Decoded || err != nil && x.Decoded == nil
		if why, gap := engineGaps[x.Text]; gap {
			gaps++
			if good {
				t.Errorf("%q renders right by now, though %s: take it off the lists of gaps", x.Text, why)
			}
		} else if !good {
			t.Errorf("%q: %v\n got %q\nwant %q", x.Text, err, got, deref(x.Decoded))
		}
	}
	if gaps != 2 {
		t.Errorf("%d gaps, want 2", gaps)
	}
}

func deref(s *string) string {
	if s == nil {
		return "an error"
	}
	return *s
}
