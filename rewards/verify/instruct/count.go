package instruct

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rubicon-rl/rubicon/rewards/internal/english"
	"github.com/rubicon-rl/rubicon/rewards/internal/pytext"
)

// marks are stripped off words by most of IFBench's checks.
const marks = pytext.Punctuation + " "

// plainWords are the words of s without any punctuation.
func plainWords(s string) []string { return pytext.Fields(pytext.Unpunctuated(s)) }

// first is the first character of a word.
func first(word string) rune {
	r, _ := utf8.DecodeRuneInString(word)
	return r
}

// wordCountRange: the number of words lies in a closed range.
func wordCountRange(a *arguments) func(string) bool {
	low, high := a.number("min_words"), a.number("max_words")
	return func(s string) bool {
		n := len(english.WordRuns(s))
		return low <= n && n <= high
	}
}

// uniqueWordCount: at least so many different words; one that is only marks counts as an empty word.
func uniqueWordCount(a *arguments) func(string) bool {
	want := a.number("N")
	return func(s string) bool {
		words := map[string]bool{}
		for _, w := range pytext.Fields(pytext.Lower(s)) {
			words[strings.Trim(w, marks)] = true
		}
		return len(words) >= want
	}
}

// conjunctions: at least so many different coordinating conjunctions, which differ also by case and marks.
func conjunctions(a *arguments) func(string) bool {
	known := strings.Fields("and but for nor or so yet")
	want := a.number("small_n")
	return func(s string) bool {
		found := map[string]bool{}
		for _, w := range pytext.Fields(s) {
			if slices.Contains(known, pytext.Lower(strings.Trim(w, marks))) {
				found[w] = true
			}
		}
		return len(found) >= want
	}
}

// names are the fifty that IFBench's prompts list.
const names = `Emma Liam Sophia Jackson Olivia Noah Ava Lucas Isabella Mason Mia Ethan Charlotte Alexander Amelia Benjamin
Harper Leo Zoe Daniel Chloe Samuel Lily Matthew Grace Owen Abigail Gabriel Ella Jacob Scarlett Nathan Victoria Elijah Layla
Nicholas Audrey David Hannah Christopher Penelope Thomas Nora Andrew Aria Joseph Claire Ryan Stella Jonathan`

// personNames: at least so many of the names.
func personNames(a *arguments) func(string) bool {
	known := strings.Fields(names)
	want := a.number("N")
	return func(s string) bool {
		found := map[string]bool{}
		for w := range strings.FieldsFuncSeq(s, func(r rune) bool { return !pytext.IsWord(r) }) {
			if slices.Contains(known, w) {
				found[w] = true
			}
		}
		return len(found) >= want
	}
}

// digitRuns are the matches of \d+.
func digitRuns(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return !unicode.Is(unicode.Nd, r) })
}

// numbers: exactly so many runs of digits, punctuation taken out before.
func numbers(a *arguments) func(string) bool {
	want := a.number("N")
	return func(s string) bool { return len(digitRuns(pytext.Unpunctuated(s))) == want }
}

// punctuation: there is an interrobang, and every mark stands outside it too.
func punctuation(*arguments) func(string) bool {
	return func(s string) bool {
		if !strings.Contains(s, "?!") && !strings.Contains(s, "!?") && !strings.Contains(s, "‽") {
			return false
		}
		rest := strings.Replace(s, "?!", "", 1)
		if rest == s {
			rest = strings.Replace(s, "!?", "", 1)
		}
		for _, mark := range ".,!?;:" {
			if !strings.ContainsRune(rest, mark) {
				return false
			}
		}
		return true
	}
}

// wordsJapanese: every so many words one has kana or kanji; marks alone and numbers are let pass.
func wordsJapanese(a *arguments) func(string) bool {
	every := a.positive("N")
	japanese := func(r rune) bool { return 0x3040 <= r && r <= 0x30ff || 0x4e00 <= r && r <= 0x9fff }
	return func(s string) bool {
		for i, w := range pytext.Fields(s) {
			w = strings.Trim(w, marks)
			if (i+1)%every == 0 && w != "" && !pytext.IsDigit(w) && !strings.ContainsFunc(w, japanese) {
				return false
			}
		}
		return true
	}
}

// pronounList is what IFBench takes for pronouns.
const pronounList = `i me we us you he him she her it they them my mine our ours your yours his hers its their theirs
myself ourselves yourself yourselves himself herself itself themselves this that these those who whom whose which what
whoever whomever whatever whichever anybody anyone anything everybody everyone everything nobody nothing somebody someone
something each either neither both all some any none`

// pronouns: at least so many of them, each occurrence counted.
func pronouns(a *arguments) func(string) bool {
	known := map[string]bool{}
	for _, p := range strings.Fields(pronounList) {
		known[p] = true
	}
	want := a.number("N")
	return func(s string) bool {
		n := 0
		for _, w := range english.Words(pytext.Lower(strings.ReplaceAll(s, "/", " "))) {
			if known[w] {
				n++
			}
		}
		return n >= want
	}
}

// keywordsMultiple: five keywords occur once, twice, three, five and seven times, also inside words and case apart.
func keywordsMultiple(a *arguments) func(string) bool {
	times := []int{1, 2, 3, 5, 7}
	var keywords []string
	for i := range times {
		keywords = append(keywords, pytext.Lower(pytext.Strip(a.text(fmt.Sprintf("keyword%d", i+1)))))
	}
	return func(s string) bool {
		s = pytext.Lower(s)
		for i, n := range times {
			if strings.Count(s, keywords[i]) != n {
				return false
			}
		}
		return true
	}
}
