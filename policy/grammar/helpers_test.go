package grammar

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// compile reads a schema that has to be fine.
func compile(t testing.TB, schema string) *Grammar {
	t.Helper()
	g, err := Compile(json.RawMessage(schema))
	if err != nil {
		t.Fatalf("%s: %v", schema, err)
	}
	return g
}

// acceptor is the automaton of a schema over all bytes.
func acceptor(t testing.TB, schema string) *automaton {
	t.Helper()
	a, err := compile(t, schema).automaton(between(0, 0xff))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *automaton) accepts(text string) bool {
	s := a.root
	for i := range len(text) {
		s = a.step(s, text[i])
	}
	return s.nullable
}

// oracle is a schema as an independent library understands it.
type oracle struct{ schema *jsonschema.Schema }

func newOracle(schema string) (oracle, error) {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(schema))
	if err != nil {
		return oracle{}, err
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", doc); err != nil {
		return oracle{}, err
	}
	s, err := c.Compile("schema.json")
	return oracle{s}, err
}

func mustOracle(t testing.TB, schema string) oracle {
	t.Helper()
	o, err := newOracle(schema)
	if err != nil {
		t.Fatalf("%s: %v", schema, err)
	}
	return o
}

// accepts tells whether text is JSON in UTF-8 that meets the schema.
func (o oracle) accepts(text string) bool {
	if !json.Valid([]byte(text)) || !utf8.ValidString(text) {
		return false
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	return err == nil && o.schema.Validate(v) == nil
}

// words are a vocabulary: the end of sequences is the last id and special.
type words []string

func (w words) VocabSize() int          { return len(w) }
func (w words) Bytes(id int32) []byte   { return []byte(w[id]) }
func (w words) IsSpecial(id int32) bool { return int(id) == len(w)-1 }

func (w words) vocab(t testing.TB) *Vocab {
	t.Helper()
	v, err := NewVocab(w, len(w), []int32{int32(len(w) - 1)})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// singles are tokens of one byte from low to high.
func singles(low, high int) words {
	var w words
	for b := low; b <= high; b++ {
		w = append(w, string([]byte{byte(b)}))
	}
	return w
}

const eos = "<|end|>"

// byteWords has a token for each byte; mergedWords also tokens that span punctuation, cut characters and escapes, and
// one twice; plainWords knows only ASCII.
func byteWords() words  { return append(singles(0, 255), eos) }
func plainWords() words { return append(singles(0x20, 0x7e), `":`, `", "`, "caf\xc3\xa9", eos) }
func mergedWords() words {
	return append(singles(0, 255),
		`{"`, `{}`, `":`, `": `, `": "`, `":"`, `","`, `", "`, `"},{"`, `"}, {"`, `":1,"`, `"}]`, `"]}`, `]}`, `}}`, `[[`, `[]`, `[]]`, `, `, ` "`,
		`null`, `nul`, `l}`, `tru`, `e,`, `false`, `12`, `-1`, `0.5`, `.0`, `00`, `1,2`, `1, `, `9]`, `\u`, `\ud8`, `3d\ude`, `\\`, `\"`, `\"}`, `\`+"\n",
		"é", "é\"", "\xa9\"", "\xf0\x9f", "\x98\x80", "😀", "漢字", "  ", "   ", "the", " the", "score", `"score"`, "a", "b", "abc", "name\":",
		"\"\"", "\"a\"", "\":\"a\",\"", "<tool>", "", eos)
}
