package grammar

import (
	"math/rand/v2"
	"testing"
)

// large is a vocabulary of the size of Qwen's: bytes, words with and without a space before them, and punctuation.
func large(b *testing.B) *Vocab {
	b.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	w, seen := singles(0, 255), map[string]bool{}
	for len(w) < 150_000 {
		text := ""
		if r.IntN(2) == 0 {
			text = " "
		}
		for range 2 + r.IntN(9) {
			text += string(rune('a' + r.IntN(26)))
		}
		if r.IntN(10) == 0 {
			text = []string{`":`, `", "`, `"},{"`, "é", "漢", "  ", "0.", "\n\n"}[r.IntN(8)] + text[:r.IntN(4)%len(text)]
		}
		if !seen[text] {
			seen[text] = true
			w = append(w, text)
		}
	}
	return append(w, eos).vocab(b)
}

const judge = `{"type":"object","properties":{"criteria":{"type":"array","items":{"type":"object","properties":{"id":{"enum":["c1","c2","c3"]},"reason":{"type":"string","maxLength":200},"credit":{"type":"number","minimum":0,"maximum":1}},"required":["id","reason","credit"]},"minItems":3,"maxItems":3}},"required":["criteria"]}`

func BenchmarkMask(b *testing.B) {
	c, err := compile(b, judge).For(large(b))
	if err != nil {
		b.Fatal(err)
	}
	for name, prefix := range map[string]string{"start": "", "string": `{"criteria":[{"id":"c1","reason":"be`, "number": `{"criteria":[{"id":"c1","reason":"be","credit":0.`} {
		m := c.Begin().(*matcher)
		for i := range len(prefix) {
			m.Accept(int32(prefix[i]))
		}
		mask := make([]uint64, c.v.words())
		run := func(what string, before func()) {
			b.Run(name+"/"+what, func(b *testing.B) {
				for b.Loop() {
					before()
					if err := m.Mask(mask, 1000); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		run("first", func() { c.a.rows = maxRows + 1 })
		run("again", func() {})
	}
}

func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		compile(b, judge)
	}
}

func BenchmarkVocab(b *testing.B) {
	v := large(b)
	for b.Loop() {
		v.nodes = v.nodes[:0]
		if err := v.grow(); err != nil {
			b.Fatal(err)
		}
	}
}
