package grammar

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/golden"
	"github.com/rubicon-rl/rubicon/policy/token"
)

// vocabularies are those that samples are drawn from.
func vocabularies(t testing.TB) map[string]*Vocab {
	t.Helper()
	all := map[string]*Vocab{"bytes": byteWords().vocab(t), "merged": mergedWords().vocab(t), "plain": plainWords().vocab(t)}
	for _, name := range []string{"qwen2", "llama3"} {
		tok := load(t, golden.Path("models", name))
		v, err := NewVocab(tok, tok.VocabSize()+37, []int32{tok.EOS()}) // models have more ids than tokens
		if err != nil {
			t.Fatal(err)
		}
		all[name] = v
	}
	return all
}

func load(t testing.TB, dir string) *token.Tokenizer {
	t.Helper()
	if _, err := os.Stat(filepath.Join(dir, "tokenizer.json")); err != nil {
		t.Fatal(err)
	}
	tok, err := token.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// list are the ids of a mask.
func list(mask []uint64) (ids []int32) {
	for w, bits := range mask {
		for b := range 64 {
			if bits>>b&1 == 1 {
				ids = append(ids, int32(w*64+b))
			}
		}
	}
	return ids
}

// draw samples with choose, which gets the allowed ids, and returns the text. limit tokens have to suffice.
func draw(t testing.TB, c *Constraint, limit int, choose func(ids []int32) int32) string {
	t.Helper()
	m, mask := c.Begin(), make([]uint64, c.v.words())
	var text strings.Builder
	for left := limit; left > 0; left-- {
		if err := m.Mask(mask, left); err != nil {
			t.Fatalf("behind %q, %d tokens left: %v", text.String(), left, err)
		}
		id := choose(list(mask))
		m.Accept(id)
		if id == c.v.eos[0] {
			return text.String()
		}
		text.Write(c.v.text[id])
	}
	t.Fatalf("%d tokens did not end %q", limit, text.String())
	return ""
}

// Whatever is drawn of the allowed tokens, with the fewest tokens that suffice or many, is JSON that the independent
// library validates. It catches every hole in a mask, and every mask without a way out.
func TestWalksAreValid(t *testing.T) {
	vocabs := vocabularies(t)
	schemas, refused := 150, 0
	if testing.Short() {
		schemas = 40
	}
	for n := range schemas {
		schema := newFamily(uint64(n)).document()
		g, err := Compile([]byte(schema))
		if err != nil {
			if !strings.Contains(err.Error(), "no value") {
				t.Fatalf("%s: %v", schema, err)
			}
			refused++
			continue
		}
		o := mustOracle(t, schema)
		for name, v := range vocabs {
			c, err := g.For(v)
			if err != nil {
				if name != "plain" {
					t.Fatalf("%s for %s: %v", schema, name, err)
				}
				continue
			}
			for _, extra := range []int{0, 1 + n%9, 120} {
				r := rand.New(rand.NewPCG(uint64(n), uint64(extra)))
				if text := draw(t, c, c.Least()+extra, func(ids []int32) int32 { return pick(family{Rand: r}, ids...) }); !o.accepts(text) {
					t.Fatalf("%s, %s, %d tokens more than needed: %s is not valid", schema, name, extra, text)
				}
			}
		}
	}
	if refused > schemas/10 {
		t.Errorf("%d of %d schemas have no value: the family says little", refused, schemas)
	}
}

// What the library accepts, in the style that is said, is accepted, and nothing else is. It catches masks that are too
// narrow.
func TestAcceptsWhatIsValid(t *testing.T) {
	schemas := 500
	if testing.Short() {
		schemas = 100
	}
	valid, all := 0, 0
	for n := range schemas {
		f := newFamily(uint64(n))
		f.closed = true
		schema := f.document()
		g, err := Compile([]byte(schema))
		if err != nil {
			continue
		}
		a, err := g.automaton(between(0, 0xff))
		if err != nil {
			t.Fatal(err)
		}
		o := mustOracle(t, schema)
		root, err := readValue([]byte(schema))
		if err != nil {
			t.Fatal(err)
		}
		for range 12 {
			text := f.instance(root, root)
			want := o.accepts(text)
			if got := a.accepts(text); got != want {
				t.Fatalf("%s\n%s is accepted: %v, valid: %v", schema, text, got, want)
			}
			all++
			if want {
				valid++
			}
		}
	}
	if valid < all/3 || valid > all*19/20 {
		t.Errorf("%d of %d texts are valid: the family says little", valid, all)
	}
}

// A mask is the tokens behind which the rest of the tokens can finish the value, computed here one by one on an
// automaton without memory. It catches errors of the trie, of what masks share, and of forgetting.
func TestMaskIsExact(t *testing.T) {
	v := mergedWords().vocab(t)
	for _, schema := range []string{
		`{"type":"string","maxLength":40}`,
		`{"type":"array","items":{"type":"string","maxLength":9,"minLength":1},"maxItems":30}`,
		`{"type":"object","properties":{"score":{"type":"number","minimum":0,"maximum":12},"name":{"type":"string","minLength":2}},"additionalProperties":{"enum":["a","abc",1]}}`,
		`{"anyOf":[{"$ref":"#/$defs/tree"},{"type":"null"}],"$defs":{"tree":` + tree + `}}`,
	} {
		c, err := compile(t, schema).For(v)
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(3, uint64(len(schema))))
		for walk := range 6 {
			m, mask := c.Begin().(*matcher), make([]uint64, v.words())
			prefix := ""
			for left := c.Least() + r.IntN(60); !m.ended; left-- {
				if walk%2 == 1 && left%5 == 0 {
					c.a.rows = maxRows + 1 // forget
				}
				if err := m.Mask(mask, left); err != nil {
					t.Fatal(err)
				}
				ids := list(mask)
				if want := allowed(t, schema, v, prefix, left); fmt.Sprint(ids) != fmt.Sprint(want) {
					t.Fatalf("%s behind %q with %d left: %v are allowed, want %v", schema, prefix, left, ids, want)
				}
				id := ids[r.IntN(len(ids))]
				m.Accept(id)
				prefix += string(v.text[id])
			}
		}
	}
}

// allowed are the ids that may follow a prefix, by definition.
func allowed(t *testing.T, schema string, v *Vocab, prefix string, left int) (ids []int32) {
	t.Helper()
	a, err := compile(t, schema).automaton(v.bytes)
	if err != nil {
		t.Fatal(err)
	}
	behind := func(s *state, text string) *state {
		for i := range len(text) {
			s = a.step(s, text[i])
		}
		return s
	}
	at := behind(a.root, prefix)
	for id, text := range v.text {
		switch {
		case int32(id) == v.eos[0]:
			if at.nullable {
				ids = append(ids, int32(id))
			}
		case len(text) > 0:
			if s := behind(at, string(text)); s != a.none && s.least+2 <= left {
				ids = append(ids, int32(id))
			}
		}
	}
	return ids
}
