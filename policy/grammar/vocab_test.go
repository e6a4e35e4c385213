package grammar

import (
	"strings"
	"sync"
	"testing"
)

// Special tokens, ends and what stands for nothing are never inside, though their bytes would fit.
func TestSpecialTokensStayOutside(t *testing.T) {
	w := append(singles(0, 255), "<tool>", "", eos, `x"`)
	v, err := NewVocab(special{w, 256}, len(w)+9, []int32{258, 9999, -1})
	if err != nil {
		t.Fatal(err)
	}
	c, err := compile(t, `{"type":"string"}`).For(v)
	if err != nil {
		t.Fatal(err)
	}
	m, mask := c.Begin(), make([]uint64, v.words())
	m.Accept('"')
	if err := m.Mask(mask, 50); err != nil {
		t.Fatal(err)
	}
	ids := list(mask)
	for _, id := range ids {
		if id >= 256 && id != 259 {
			t.Errorf("%d is allowed inside a string", id)
		}
	}
	if ids[len(ids)-1] != 259 {
		t.Errorf("an ordinary token is not allowed: %v", ids)
	}
	m.Accept(259)
	if err := m.Mask(mask, 50); err != nil {
		t.Fatal(err)
	}
	if got := list(mask); len(got) != 1 || got[0] != 258 {
		t.Errorf("%v are allowed behind the value, want the end alone", got)
	}
	m.Accept(258)
	if err := m.Mask(mask, 50); err == nil || !strings.Contains(err.Error(), "EOS") {
		t.Errorf("error %v behind the end", err)
	}
}

type special struct {
	words
	id int32
}

func (s special) IsSpecial(id int32) bool { return id == s.id }

func TestVocabRefuses(t *testing.T) {
	if _, err := NewVocab(byteWords(), 257, []int32{-1, 257}); err == nil || !strings.Contains(err.Error(), "end-of-sequence") {
		t.Errorf("error %v without an end", err)
	}
	v := append(singles('a', 'z'), `"`, eos).vocab(t)
	if _, err := compile(t, `{"type":"integer"}`).For(v); err == nil || !strings.Contains(err.Error(), "0123456789") {
		t.Errorf("error %v of a vocabulary without digits", err)
	}
	c, err := compile(t, `{"enum":["ab","0"]}`).For(v)
	if err != nil {
		t.Fatal(err)
	}
	if got := draw(t, c, 20, func(ids []int32) int32 { return ids[0] }); got != `"ab"` {
		t.Errorf("drew %s", got)
	}
	m := c.Begin()
	if err := m.Mask(make([]uint64, 9), 50); err == nil || !strings.Contains(err.Error(), "9 words") {
		t.Errorf("error %v of a mask of another size", err)
	}
	if err := m.Mask(make([]uint64, v.words()), 4); err == nil || !strings.Contains(err.Error(), "needs 5") {
		t.Errorf("error %v with too few tokens", err)
	}
}

// Least is by hand: the bytes of the shortest text, and the end.
func TestLeast(t *testing.T) {
	v := byteWords().vocab(t)
	for schema, want := range map[string]int{
		`{"type":"null"}`:                                           5,
		`{"type":"boolean"}`:                                        5,
		`{"type":"integer","minimum":100}`:                          4,
		`{"type":"number","minimum":0.001,"maximum":0.2}`:           4, // 0.1
		`{"type":"string","minLength":3}`:                           6,
		`{"type":"array","items":{"enum":["aa","b"]},"minItems":3}`: 14, // ["b","b","b"]
		`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["b"]}`: 8, // {"b":0}
	} {
		c, err := compile(t, schema).For(v)
		if err != nil {
			t.Fatal(err)
		}
		if c.Least() != want {
			t.Errorf("%s needs %d tokens, want %d", schema, c.Least(), want)
		}
	}
}

// Many samples of one constraint at once do not disturb each other, and what is kept stays within its bounds.
func TestConcurrentSamples(t *testing.T) {
	schema := `{"type":"array","items":{"type":"string","maxLength":3000,"minLength":1000},"minItems":3,"maxItems":7}`
	c, err := compile(t, schema).For(mergedWords().vocab(t))
	if err != nil {
		t.Fatal(err)
	}
	want := draw(t, c, c.Least()+50, first)
	o := mustOracle(t, schema)
	if !o.accepts(want) {
		t.Fatalf("%s is not valid", want)
	}
	got := make([]string, 8)
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() { got[i] = draw(t, c, c.Least()+50, first) })
	}
	wg.Wait()
	for _, text := range got {
		if text != want {
			t.Errorf("a sample beside others differs")
		}
	}
	if kept := len(c.a.made) - c.a.fixed; kept > maxMade+1000 || c.a.rows > maxRows+1000 || c.a.masks*c.v.words()*8 > maxBytes+1<<16 {
		t.Errorf("%d states, %d rows and %d masks are kept", kept, c.a.rows, c.a.masks)
	}
}

// A long string is one state to a mask until its end is near, however many characters it may still have.
func TestLongStringsShareMasks(t *testing.T) {
	c, err := compile(t, `{"type":"array","items":{"type":"string","maxLength":5000},"maxItems":4000}`).For(mergedWords().vocab(t))
	if err != nil {
		t.Fatal(err)
	}
	m, mask := c.Begin(), make([]uint64, c.v.words())
	for i := range 2000 {
		if err := m.Mask(mask, 1<<20); err != nil {
			t.Fatal(err)
		}
		id := int32('a')
		if i < 2 {
			id = int32(`["`[i])
		} else if i == 900 {
			id = int32('"')
		} else if i == 901 {
			id = int32(',')
		} else if i == 902 {
			id = int32('"')
		}
		m.Accept(id)
	}
	if c.a.masks > 8 {
		t.Errorf("%d masks were made for the beginning, the string and what is behind it", c.a.masks)
	}
}

// What was forgotten is not held by the schema's own states either.
func TestForgets(t *testing.T) {
	c, err := compile(t, `{"type":"array","items":{"type":"string","maxLength":300,"minLength":100},"minItems":2}`).For(mergedWords().vocab(t))
	if err != nil {
		t.Fatal(err)
	}
	draw(t, c, c.Least()+50, first)
	before := len(c.a.made)
	c.a.rows = maxRows + 1
	if err := c.Begin().Mask(make([]uint64, c.v.words()), 1000); err != nil {
		t.Fatal(err)
	}
	rows, masks := 0, 0
	for _, s := range c.a.made {
		masks += len(s.masks)
		if s.next != nil {
			rows++
		}
	}
	if rows != c.a.rows || masks != c.a.masks || len(c.a.made) > before-100 {
		t.Errorf("%d of %d states, %d rows and %d masks are left, want fewer states, %d and %d", len(c.a.made), before, rows, masks, c.a.rows, c.a.masks)
	}
}

// first draws the lowest id.
func first(ids []int32) int32 { return ids[0] }
