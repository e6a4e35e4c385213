package token

import (
	"slices"
	"strings"
	"sync"
)

// normalForm is NFC with the Unicode data of Hugging Face tokenizers: its combining classes are those of an older
// Unicode version than Go's, and nothing is inserted into long runs of marks as golang.org/x/text does.
type normalForm struct {
	// quick has 0 for characters that neither change nor join what precedes them, the combining class for marks of
	// that kind, and unsettled for all others.
	quick  *runeTable
	class  map[rune]uint8   // combining classes that are not 0
	split  map[rune][]rune  // full decompositions
	joined map[[2]rune]rune // compositions, but Hangul's
}

// unsettled is no combining class.
const unsettled = 255

// Hangul syllables are composed by arithmetic.
const (
	hangulFirst, leadFirst, vowelFirst, trailFirst = 0xac00, 0x1100, 0x1161, 0x11a7
	leads, vowels, trails                          = 19, 21, 28
)

var nfc = sync.OnceValue(func() *normalForm {
	n := &normalForm{class: map[rune]uint8{}, split: map[rune][]rune{}, joined: map[[2]rune]rune{}}
	moving := map[rune]bool{}
	for i := 0; i < len(combiningClasses); i += 3 {
		spread(combiningClasses[i:i+2], func(r rune) { n.class[r] = uint8(combiningClasses[i+2]) })
	}
	for i := 0; i < len(decompositions); i += 2 + int(decompositions[i+1]) {
		n.split[decompositions[i]] = decompositions[i+2 : i+2+int(decompositions[i+1])]
		moving[decompositions[i]] = true
	}
	halves := map[rune][2]rune{}
	for i := 0; i < len(composites); i += 3 {
		half := [2]rune(composites[i : i+2])
		n.joined[half], halves[composites[i+2]], moving[half[1]] = composites[i+2], half, true
	}
	var whole func(rune) []rune
	whole = func(r rune) []rune {
		if half, ok := halves[r]; ok {
			return append(whole(half[0]), half[1])
		}
		return []rune{r}
	}
	for r := range halves {
		n.split[r] = whole(r)
	}
	spread([]rune{vowelFirst, vowelFirst + vowels - 1, trailFirst + 1, trailFirst + trails - 1}, func(r rune) { moving[r] = true })
	n.quick = newRuneTable(func(r rune) uint8 {
		if moving[r] {
			return unsettled
		}
		return n.class[r]
	})
	return n
})

// String returns the composed normal form of valid UTF-8: s itself if it is composed already.
func (n *normalForm) String(s string) string {
	var out strings.Builder
	same := true
	n.segments(s, func(old, now string) {
		if same = same && len(old) == len(s) && old == now; !same {
			out.WriteString(now)
		}
	})
	if same {
		return s
	}
	return out.String()
}

// segments cuts s where normalising one side cannot change the other, and calls f with each segment and its normal
// form. Segments that are composed already come together.
func (n *normalForm) segments(s string, f func(old, now string)) {
	done, start := 0, 0 // f has s[:done]; s[start] is the last character that joins nothing before it
	last := uint8(0)    // class of the mark before
	for i := 0; i < len(s); {
		if s[i] < 0x80 {
			start, last = i, 0
			i++
			continue
		}
		r, w := runeAt(s, i)
		q := n.quick.at(r)
		if q == 0 {
			start = i
		}
		if q == 0 || q != unsettled && q >= last {
			last = q
			i += w
			continue
		}
		end := i + w
		for end < len(s) && s[end] >= 0x80 {
			r, w := runeAt(s, end)
			if n.quick.at(r) == 0 {
				break
			}
			end += w
		}
		if start > done {
			f(s[done:start], s[done:start])
		}
		f(s[start:end], string(n.compose(n.decompose(nil, []rune(s[start:end])))))
		done, start, i, last = end, end, end, 0
	}
	if len(s) > done {
		f(s[done:], s[done:])
	}
}

// decompose appends the decomposition of rs to d, marks in canonical order.
func (n *normalForm) decompose(d, rs []rune) []rune {
	for _, r := range rs {
		if k := r - hangulFirst; k >= 0 && k < leads*vowels*trails {
			d = append(d, leadFirst+k/(vowels*trails), vowelFirst+k%(vowels*trails)/trails)
			if k%trails > 0 {
				d = append(d, trailFirst+k%trails)
			}
		} else if to, ok := n.split[r]; ok {
			d = append(d, to...)
		} else {
			d = append(d, r)
		}
	}
	for i := 0; i < len(d); i++ {
		j := i
		for j < len(d) && n.class[d[j]] != 0 {
			j++
		}
		if j > i+1 {
			slices.SortStableFunc(d[i:j], func(a, b rune) int { return int(n.class[a]) - int(n.class[b]) })
		}
		i = j
	}
	return d
}

// compose joins the characters of a decomposition, in place.
func (n *normalForm) compose(d []rune) []rune {
	out := d[:0]
	base, between := -1, -1 // index of the last character of class 0; class of the last mark behind it that stayed
	for _, r := range d {
		c := int(n.class[r])
		if base >= 0 && between < c {
			if j, ok := n.join(out[base], r); ok {
				out[base] = j
				continue
			}
		}
		if c == 0 {
			base, between = len(out), -1
		} else {
			between = c
		}
		out = append(out, r)
	}
	return out
}

func (n *normalForm) join(a, b rune) (rune, bool) {
	if l, v := a-leadFirst, b-vowelFirst; l >= 0 && l < leads && v >= 0 && v < vowels {
		return hangulFirst + (l*vowels+v)*trails, true
	}
	k, t := a-hangulFirst, b-trailFirst
	if k >= 0 && k < leads*vowels*trails && k%trails == 0 && t > 0 && t < trails {
		return a + t, true
	}
	j, ok := n.joined[[2]rune{a, b}]
	return j, ok
}
