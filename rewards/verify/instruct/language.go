package instruct

import (
	"slices"
	"strings"

	"github.com/rubicon-rl/rubicon/rewards/internal/english"
	"github.com/rubicon-rl/rubicon/rewards/internal/langdetect"
	"github.com/rubicon-rl/rubicon/rewards/internal/pytext"
)

// inLanguage tells whether the detector takes s for the language; a text in which it finds nothing passes.
func inLanguage(s, code string) bool {
	language, ok := langdetect.Detect(s)
	return !ok || language == code
}

// responseLanguage: the response is in a language, given by its code.
func responseLanguage(a *arguments) func(string) bool {
	code := a.text("language")
	if known := langdetect.Languages(); a.err == nil && !slices.Contains(known, code) {
		a.fail("language", "is %q: use one of %s", code, strings.Join(known, ", "))
	}
	return func(s string) bool { return inLanguage(s, code) }
}

// englishCapital: English, all in capitals.
func englishCapital(*arguments) func(string) bool {
	return func(s string) bool { return pytext.IsUpper(s) && inLanguage(s, "en") }
}

// englishLowercase: English, all in small letters.
func englishLowercase(*arguments) func(string) bool {
	return func(s string) bool { return pytext.IsLower(s) && inLanguage(s, "en") }
}

// capitalWordFrequency counts words all in capitals.
func capitalWordFrequency(a *arguments) func(string) bool {
	enough := a.compare("capital_frequency", "capital_relation")
	return func(s string) bool {
		n := 0
		for _, w := range english.Words(s) {
			if pytext.IsUpper(w) {
				n++
			}
		}
		return enough(n)
	}
}
