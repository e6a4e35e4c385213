package instruct

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rubicon-rl/rubicon/rewards/internal/english"
	"github.com/rubicon-rl/rubicon/rewards/internal/pytext"
)

// parentheses: brackets of three kinds, rightly nested, close behind at least five open levels. A wrong one starts anew.
func parentheses(*arguments) func(string) bool {
	return func(s string) bool {
		var open []rune
		deepest := 0
		for _, r := range s {
			switch {
			case strings.ContainsRune("([{", r):
				open = append(open, r)
				deepest = max(deepest, len(open))
			case !strings.ContainsRune(")]}", r):
			case len(open) > 0 && closes(open[len(open)-1], r):
				open = open[:len(open)-1]
				if deepest >= 5 {
					return true
				}
			default:
				open, deepest = nil, 0
			}
		}
		return false
	}
}

func closes(open, r rune) bool { return strings.Contains("() [] {}", string(open)+string(r)) }

// quotes: double and single quotation marks in each other, three levels of which have been closed again.
func quotes(*arguments) func(string) bool {
	return func(s string) bool {
		var open []rune
		deepest := 0
		for _, r := range s {
			switch {
			case len(open) > 0 && r == open[len(open)-1]:
				open = open[:len(open)-1]
				if deepest-len(open) >= 3 {
					return true
				}
			case r == '"' || r == '\'':
				open = append(open, r)
				deepest = max(deepest, len(open))
			}
		}
		return false
	}
}

var choiceLetters = pytext.MustCompile(`\A\W*[aA]\W*[bB]\W*[cC]\W*`, "")

// options: the response is one of the options, which stand in one text. Choices such as a), b), c) must be met exactly,
// others apart from case and marks.
func options(a *arguments) func(string) bool {
	text := a.text("options")
	separator := ","
	for _, s := range []string{"or", "/"} {
		if strings.Contains(text, s) {
			separator = s
		}
	}
	var exact, loose []string
	for o := range strings.SplitSeq(text, separator) {
		exact = append(exact, pytext.Strip(o))
		loose = append(loose, pytext.Lower(strings.Trim(pytext.Strip(o), marks)))
	}
	if choiceLetters.MatchString(text) {
		return func(s string) bool { return slices.Contains(exact, s) }
	}
	return func(s string) bool { return slices.Contains(loose, pytext.Lower(strings.Trim(s, marks))) }
}

// newline: as many lines, without empty ones, as words.
func newline(*arguments) func(string) bool {
	return func(s string) bool {
		s = pytext.Strip(pytext.Unpunctuated(s))
		lines := 0
		for line := range strings.SplitSeq(s, "\n") {
			if line != "" {
				lines++
			}
		}
		return lines == len(pytext.Fields(s))
	}
}

// emojiEnds: each sentence ends in an emoji, which may be its last or its second to last character or, as the splitter
// sees it, the first of the next sentence.
func emojiEnds(*arguments) func(string) bool {
	return func(s string) bool {
		sentences := english.Sentences(s)
		for i := range sentences {
			sentences[i] = pytext.Strip(pytext.Unpunctuated(sentences[i]))
		}
		for i, sentence := range sentences {
			last, size := utf8.DecodeLastRuneInString(sentence)
			before, _ := utf8.DecodeLastRuneInString(sentence[:len(sentence)-size])
			switch {
			case sentence == "":
				return false
			case isEmoji(last) || isEmoji(before):
			case i == len(sentences)-1 || !isEmoji(first(sentences[i+1])):
				return false
			}
		}
		return true
	}
}

// lineIndent: each line is indented by more spaces than the one before. Of lines that are blank only some are left out,
// as in the official code, which skips the line behind each one that it removes.
func lineIndent(*arguments) func(string) bool {
	return func(s string) bool {
		lines := strings.Split(s, "\n")
		for i := 0; i < len(lines); i++ {
			if pytext.Blank(lines[i]) {
				same := slices.Index(lines, lines[i])
				lines = slices.Delete(lines, same, same+1)
			}
		}
		indent := -1
		for _, line := range lines {
			n := len(line) - len(strings.TrimLeft(line, " "))
			if n <= indent {
				return false
			}
			indent = n
		}
		return true
	}
}

// quoteUnquote: no quotation begins where another ends, and none ends the response.
func quoteUnquote(*arguments) func(string) bool {
	const mark = `'"'` // talk of the character itself
	edges := "0123456789" + strings.ReplaceAll(pytext.Punctuation, `"`, "")
	return func(s string) bool {
		s = strings.Join(pytext.Fields(strings.ReplaceAll(s, mark, "")), "")
		return !strings.Contains(s, `""`) && !strings.HasSuffix(strings.Trim(s, edges), `"`)
	}
}

// list: the separator occurs at least twice.
func list(a *arguments) func(string) bool {
	separator := a.text("sep")
	return func(s string) bool { return strings.Count(s, separator) >= 2 }
}

// thesis: something stands in italics and something behind it. As in the official code <em> is measured as <i>, so that
// its last characters count as text.
func thesis(*arguments) func(string) bool {
	find := func(s string, tags ...string) int {
		for _, tag := range tags {
			if i := strings.Index(s, tag); i >= 0 {
				return i
			}
		}
		return -1
	}
	return func(s string) bool {
		start := find(s, "<i>", "<em>")
		if start < 0 {
			return false
		}
		s = s[start:]
		end := find(s, "</i>", "</em>")
		return end >= 0 && !pytext.Blank(s[len("<i>"):end]) && !pytext.Blank(s[end+len("</i>"):])
	}
}

// subBullets: a dash follows each asterisk before the next; a response without asterisks passes.
func subBullets(*arguments) func(string) bool {
	return func(s string) bool {
		for _, bullet := range strings.Split(s, "*")[1:] {
			if !strings.Contains(bullet, "-") {
				return false
			}
		}
		return true
	}
}

// sentencesThenBullets: lines with two sentences or more, then only lines that start with an asterisk, two or more. A
// blank line ends the sentences.
func sentencesThenBullets(*arguments) func(string) bool {
	return func(s string) bool {
		sentences, bullets, ended := 0, 0, false
		for line := range strings.SplitSeq(s, "\n") {
			line = pytext.Strip(line)
			switch {
			case strings.HasPrefix(line, "*"):
				if sentences < 2 {
					return false
				}
				bullets++
				ended = true
			case ended:
				return false
			default:
				n := len(english.Sentences(line))
				sentences += n
				ended = n == 0
			}
		}
		return bullets >= 2
	}
}

// titleCase: no word starts with a small letter and goes on in one case; single letters must be capitals.
func titleCase(*arguments) func(string) bool {
	return func(s string) bool {
		for _, w := range english.Words(s) {
			_, size := utf8.DecodeRuneInString(w)
			rest := w[size:]
			if pytext.IsLower(w[:size]) && pytext.IsAlpha(first(w)) &&
				(rest == "" || pytext.IsUpper(rest) || pytext.IsLower(rest)) {
				return false
			}
		}
		return true
	}
}

// outputTemplate: the three headings of one template occur.
func outputTemplate(*arguments) func(string) bool {
	return func(s string) bool {
		return strings.Contains(s, "My Answer:") && strings.Contains(s, "My Conclusion:") &&
			strings.Contains(s, "Future Outlook:")
	}
}

// noWhitespace: there is no white space.
func noWhitespace(*arguments) func(string) bool {
	return func(s string) bool { return !strings.ContainsFunc(s, pytext.IsSpace) }
}
