package instruct

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rubicon-rl/rubicon/rewards/internal/english"
	"github.com/rubicon-rl/rubicon/rewards/internal/pytext"
)

// alphabet: each word starts with the letter that follows the last word's, a after z; the first may start with any.
func alphabet(*arguments) func(string) bool {
	return func(s string) bool {
		words := pytext.Fields(strings.Trim(pytext.Unpunctuated(s), marks))
		if len(words) == 0 {
			return false
		}
		letter := pytext.Lower(string(first(words[0])))
		if len(letter) != 1 || letter < "a" || letter > "z" {
			return false
		}
		next := rune(letter[0])
		for _, w := range words[1:] {
			next = 'a' + (next-'a'+1)%26
			if first(pytext.Lower(w)) != next {
				return false
			}
		}
		return true
	}
}

// vowel: one line with at most three different vowels.
func vowel(*arguments) func(string) bool {
	return func(s string) bool {
		s = pytext.Lower(pytext.Strip(s))
		n := 0
		for _, v := range "aeiou" {
			if strings.ContainsRune(s, v) {
				n++
			}
		}
		return n <= 3 && !strings.Contains(s, "\n")
	}
}

// consonants: every word has two consonants next to each other.
func consonants(*arguments) func(string) bool {
	consonant := func(c byte) bool { return strings.IndexByte("bcdfghjklmnpqrstvwxyz", c) >= 0 }
	cluster := func(w string) bool {
		for i := range len(w) - 1 {
			if consonant(w[i]) && consonant(w[i+1]) {
				return true
			}
		}
		return false
	}
	return func(s string) bool {
		return !slices.ContainsFunc(pytext.Fields(pytext.Lower(s)), func(w string) bool { return !cluster(w) })
	}
}

// palindrome: at least ten words of five characters or more read the same backwards; repetitions count.
func palindrome(*arguments) func(string) bool {
	return func(s string) bool {
		n := 0
		for _, w := range plainWords(pytext.Lower(s)) {
			runes := []rune(w)
			back := slices.Clone(runes)
			slices.Reverse(back)
			if len(runes) >= 5 && slices.Equal(runes, back) {
				n++
			}
		}
		return n >= 10
	}
}

// primeLengths: every word's length is a prime below 100.
func primeLengths(*arguments) func(string) bool {
	return func(s string) bool {
		for _, w := range plainWords(s) {
			if n := utf8.RuneCountInString(w); n >= 100 || !isPrime(n) {
				return false
			}
		}
		return true
	}
}

func isPrime(n int) bool {
	for d := 2; d*d <= n; d++ {
		if n%d == 0 {
			return false
		}
	}
	return n > 1
}

// startVerb: the tagger takes the first word for a verb.
func startVerb(*arguments) func(string) bool {
	return func(s string) bool {
		words := english.Words(s)
		words = words[:min(len(words), 3)] // the first tag depends on no more
		return len(words) > 0 && strings.Contains(english.Tag(words)[0], "VB")
	}
}

// repeats: no word occurs more often than so many times.
func repeats(a *arguments) func(string) bool {
	most := a.number("small_n")
	return func(s string) bool {
		times := map[string]int{}
		for _, w := range plainWords(pytext.Lower(s)) {
			times[w]++
			if times[w] > most {
				return false
			}
		}
		return true
	}
}

// oddEvenSyllables: words with an odd and with an even number of syllables alternate.
func oddEvenSyllables(*arguments) func(string) bool {
	return func(s string) bool {
		words := pytext.Fields(pytext.Lower(pytext.Unpunctuated(s)))
		for i := range len(words) - 1 {
			if english.Syllables(words[i])%2 == english.Syllables(words[i+1])%2 {
				return false
			}
		}
		return true
	}
}

// lastFirst: a sentence's last word is the next one's first.
func lastFirst(*arguments) func(string) bool {
	return func(s string) bool {
		sentences := english.Sentences(s)
		for i := range len(sentences) - 1 {
			last := pytext.Fields(strings.TrimRight(sentences[i], marks))
			next := pytext.Fields(strings.TrimLeft(sentences[i+1], marks))
			if len(last) == 0 || len(next) == 0 || pytext.Lower(last[len(last)-1]) != pytext.Lower(next[0]) {
				return false
			}
		}
		return true
	}
}

// paragraphLastFirst: every line ends with the word that it starts with.
func paragraphLastFirst(*arguments) func(string) bool {
	return func(s string) bool {
		for line := range strings.SplitSeq(s, "\n") {
			words := pytext.Fields(strings.Trim(pytext.Lower(pytext.Strip(line)), marks))
			if len(words) > 0 && words[0] != words[len(words)-1] {
				return false
			}
		}
		return true
	}
}

// noConsecutive: no two words next to each other start with the same letter.
func noConsecutive(*arguments) func(string) bool {
	return func(s string) bool {
		words := plainWords(pytext.Lower(s))
		for i := range len(words) - 1 {
			if first(words[i]) == first(words[i+1]) {
				return false
			}
		}
		return true
	}
}

// keywordsSpecificPosition: the keyword is the m-th word of the n-th sentence.
func keywordsSpecificPosition(a *arguments) func(string) bool {
	keyword := pytext.Lower(pytext.Strip(a.text("keyword")))
	n, m := a.positive("n"), a.positive("m")
	return func(s string) bool {
		sentences := english.Sentences(s)
		if len(sentences) < n {
			return false
		}
		words := slices.DeleteFunc(english.Words(sentences[n-1]), func(w string) bool {
			return !strings.ContainsFunc(w, pytext.IsAlnum)
		})
		return len(words) >= m && pytext.Lower(words[m-1]) == keyword
	}
}

// wordsPosition: the keyword is the second word and the second to last, where a mark at the end is no word.
func wordsPosition(a *arguments) func(string) bool {
	keyword := pytext.Lower(pytext.Strip(a.text("keyword")))
	return func(s string) bool {
		words := english.Words(s)
		last := len(words) - 2
		if len(words) > 0 && strings.Contains(pytext.Punctuation, words[len(words)-1]) {
			last--
		}
		return last >= 0 && pytext.Lower(words[1]) == keyword && pytext.Lower(words[last]) == keyword
	}
}
