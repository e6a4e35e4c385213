package instruct

import (
	"strings"

	"github.com/rubicon-rl/rubicon/rewards/internal/pytext"
)

// twoResponses: two different answers divided by six asterisks.
func twoResponses(*arguments) func(string) bool {
	return func(s string) bool {
		parts := strings.Split(s, "******")
		n, ok := countParts(parts)
		if !ok || n != 2 {
			return false
		}
		var answers []string
		for _, p := range parts {
			if !pytext.Blank(p) {
				answers = append(answers, pytext.Strip(p))
			}
		}
		return answers[0] != answers[1]
	}
}

// repeatPrompt: the response starts with the prompt, case apart.
func repeatPrompt(a *arguments) func(string) bool {
	prompt := pytext.Lower(pytext.Strip(a.text("prompt_to_repeat")))
	return func(s string) bool { return strings.HasPrefix(pytext.Lower(pytext.Strip(s)), prompt) }
}

// endChecker: the response, quotation marks around it left out, ends with a phrase, case apart.
func endChecker(a *arguments) func(string) bool {
	phrase := pytext.Lower(pytext.Strip(a.text("end_phrase")))
	return func(s string) bool {
		return strings.HasSuffix(pytext.Lower(strings.Trim(pytext.Strip(s), `"`)), phrase)
	}
}

// quotation: the whole response stands in double quotation marks.
func quotation(*arguments) func(string) bool {
	return func(s string) bool {
		s = pytext.Strip(s)
		return len(s) > 1 && s[0] == '"' && s[len(s)-1] == '"'
	}
}

// noComma: there is no ASCII comma.
func noComma(*arguments) func(string) bool {
	return func(s string) bool { return !strings.Contains(s, ",") }
}
