package instruct

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/rubicon-rl/rubicon/rewards/internal/english"
	"github.com/rubicon-rl/rubicon/rewards/internal/pytext"
)

// multiples: the numbers are the multiples of 7 between 10 and 50.
func multiples(*arguments) func(string) bool {
	want := strings.Fields("14 21 28 35 42 49")
	return func(s string) bool { return slices.Equal(digitRuns(s), want) }
}

var (
	questionLabel = pytext.MustCompile(`\n*(?:Question \d+[\.|\):;]?\s*)`, "")
	choice        = pytext.MustCompile(`\A[A-Ea-e][\.|\)]\s*\w+`, "")
)

// multipleChoice: nothing but four labelled questions, each longer than the one before and with five choices.
func multipleChoice(*arguments) func(string) bool {
	return func(s string) bool {
		questions := slices.DeleteFunc(questionLabel.Split(s, -1), pytext.Blank)
		if !strings.HasPrefix(s, "Question") || len(questions) != 4 {
			return false
		}
		previous := -1
		for _, q := range questions {
			text, choices := readQuestion(pytext.Strip(q))
			n := utf8.RuneCountInString(text)
			if choices != 5 || n <= previous {
				return false
			}
			previous = n
		}
		return true
	}
}

// readQuestion returns the lines before the first choice and the number of choices.
func readQuestion(q string) (text string, choices int) {
	for line := range strings.SplitSeq(q, "\n") {
		line = pytext.Strip(line)
		switch {
		case choice.MatchString(line):
			choices++
		case choices == 0:
			text += " " + line
		}
	}
	return pytext.Strip(text), choices
}

// ascii is s with its accents, and whatever else ASCII lacks, left out.
func ascii(s string) string {
	return strings.Map(func(r rune) rune {
		if r > unicode.MaxASCII {
			return -1
		}
		return r
	}, norm.NFKD.String(s))
}

// africanCountries: from the line with Zimbabwe on at least 52 lines in falling order. The names aren't looked at.
func africanCountries(*arguments) func(string) bool {
	return func(s string) bool {
		var lines []string
		for line := range strings.SplitSeq(s, "\n") {
			if line = strings.Trim(line, marks); line != "" {
				lines = append(lines, line)
			}
		}
		start := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, "Zimbabwe") })
		if start < 0 || len(lines)-start < 52 {
			return false
		}
		lines = lines[start:]
		for i := range lines {
			lines[i] = ascii(lines[i])
		}
		return slices.IsSortedFunc(lines, func(a, b string) int { return strings.Compare(b, a) })
	}
}

// wordReverse: the words backwards name the bald eagle, in one sentence.
func wordReverse(*arguments) func(string) bool {
	return func(s string) bool {
		words := plainWords(pytext.Lower(s))
		slices.Reverse(words)
		sentence := strings.Join(words, " ")
		return strings.Contains(sentence, "bald eagle") && slices.Contains(english.Sentences(sentence), sentence)
	}
}

// characterReverse: the bald eagle is named backwards.
func characterReverse(*arguments) func(string) bool {
	return func(s string) bool { return strings.Contains(pytext.Lower(s), "elgae dlab") }
}

// sentenceAlphabet: 26 sentences start with the letters from a to z.
func sentenceAlphabet(*arguments) func(string) bool {
	return func(s string) bool {
		sentences := english.Sentences(s)
		for i, sentence := range sentences {
			words := pytext.Fields(pytext.Lower(sentence))
			if len(words) == 0 || first(words[0]) != 'a'+rune(i) {
				return false
			}
		}
		return len(sentences) == 26
	}
}

// capitals are those north of 45 degrees that IFBench knows, from north to south.
const capitals = `Reykjavik Helsinki Oslo Tallinn Stockholm Riga Moscow Copenhagen Vilnius Minsk Dublin Berlin Amsterdam
Warsaw London Brussels Prague Luxembourg Paris Vienna Bratislava Budapest Vaduz Chisinau Bern Ljubljana Zagreb`

// europeanCapitals: exactly these cities in this order with commas between them, accents apart.
func europeanCapitals(*arguments) func(string) bool {
	want := strings.Fields(capitals)
	return func(s string) bool {
		cities := slices.DeleteFunc(strings.Split(ascii(s), ","), pytext.Blank)
		return slices.EqualFunc(cities, want, func(city, want string) bool { return pytext.Strip(city) == want })
	}
}

var date = pytext.MustCompile(`\A(\d{4})-(\d{2})-(\d{2})\z`, "")

// dateList: dates of Napoleon's lifetime as YYYY-MM-DD with commas between them. Month and day may be 00, and February
// always has 29 days.
func dateList(*arguments) func(string) bool {
	days := []int{99, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31} // month 00 has no limit
	return func(s string) bool {
		for d := range strings.SplitSeq(s, ",") {
			m := date.FindStringSubmatch(pytext.Strip(d))
			if m == nil {
				return false
			}
			year, month, day := pytext.Int(m[1]), pytext.Int(m[2]), pytext.Int(m[3])
			if year < 1769 || year > 1821 || month > 12 || day > days[month] {
				return false
			}
		}
		return true
	}
}
