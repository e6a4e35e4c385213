package langdetect

import (
	"embed"
	"encoding/binary"
	"fmt"
	"strings"
	"sync"

	"github.com/rubicon-rl/rubicon/rewards/internal/packed"
)

// The profiles, described in SOURCE.md, are unpacked when they are first needed.
//
//go:embed data
var files embed.FS

// profiles say how often n-grams occur in the languages.
type profiles struct {
	languages []string
	kanji     map[rune]rune // a character to the one it counts as
	index     map[string]int
	frequency [][]share // for each n-gram, by language
}

// share is how large a part of a language's n-grams of the same length an n-gram is.
type share struct {
	language int
	value    float64
}

var model = sync.OnceValue(func() *profiles {
	sections := strings.SplitN(string(packed.Read(files, "data/ngrams.txt.gz")), "\n\n", 3)
	m := &profiles{kanji: map[rune]rune{}, index: map[string]int{}}
	var sizes [][3]float64
	for line := range strings.SplitSeq(sections[0], "\n") {
		var name string
		var n [3]float64
		if _, err := fmt.Sscan(line, &name, &n[0], &n[1], &n[2]); err != nil {
			panic(err)
		}
		m.languages, sizes = append(m.languages, name), append(sizes, n)
	}
	for line := range strings.SplitSeq(sections[1], "\n") {
		group := []rune(line)
		for _, r := range group {
			m.kanji[r] = group[0]
		}
	}
	grams := strings.Split(strings.TrimSuffix(sections[2], "\n"), "\n")
	counts := packed.Read(files, "data/counts.bin.gz")
	m.fill(grams, counts, sizes)
	return m
})

// fill reads the columns of counts.bin.
func (m *profiles) fill(grams []string, columns []byte, sizes [][3]float64) {
	lengths, rest := columns[:len(grams)], columns[len(grams):]
	total := 0
	for _, n := range lengths {
		total += int(n)
	}
	languages, counts := rest[:total], rest[total:]
	all := make([]share, total)
	m.frequency = make([][]share, len(grams))
	used := 0
	for g, gram := range grams {
		length := len([]rune(gram))
		m.index[gram] = g
		m.frequency[g] = all[used:][:lengths[g]]
		for i := range m.frequency[g] {
			count, n := binary.Uvarint(counts)
			counts = counts[n:]
			l := int(languages[used+i])
			m.frequency[g][i] = share{l, float64(count) / sizes[l][length-1]}
		}
		used += int(lengths[g])
	}
}

// fold makes characters alike that tell the same about a language; what tells nothing becomes a space.
func (m *profiles) fold(r rune) rune {
	within := func(first, last rune) bool { return first <= r && r <= last }
	switch {
	case r <= 0x7f:
		if !within('A', 'Z') && !within('a', 'z') {
			return ' '
		}
	case strings.ContainsRune("\u00a0\u00ab\u00b0\u00bb", r), within(0x2000, 0x206f):
		return ' '
	case r == 'ș':
		return 'ş'
	case r == 'ț':
		return 'ţ'
	case r == 'ی':
		return 'ي'
	case within(0x1ea0, 0x1eff):
		return 'ể'
	case within(0x3040, 0x309f):
		return 'あ'
	case within(0x30a0, 0x30ff):
		return 'ア'
	case within(0x3100, 0x312f), within(0x31a0, 0x31bf):
		return 'ㄅ'
	case within(0x4e00, 0x9fff):
		if same, ok := m.kanji[r]; ok {
			return same
		}
	case within(0xac00, 0xd7af):
		return '가'
	}
	return r
}
