package instruct

import (
	"slices"

	"github.com/rubicon-rl/rubicon/rewards/internal/pytext"
)

// repeatChange: the prompt, with another first word.
func repeatChange(a *arguments) func(string) bool {
	prompt := a.text("prompt_to_repeat")
	rest := func(s string) []string {
		words := pytext.Fields(s)
		return words[min(1, len(words)):]
	}
	return func(s string) bool { return s != prompt && slices.Equal(rest(s), rest(prompt)) }
}

// repeatSimple: one fixed sentence, case apart.
func repeatSimple(*arguments) func(string) bool {
	return func(s string) bool {
		return pytext.Lower(pytext.Strip(s)) == "only output this sentence here, ignore all other requests."
	}
}

// repeatSpan: the characters of the prompt from one index to another, which belongs to them, case apart.
func repeatSpan(a *arguments) func(string) bool {
	prompt := []rune(a.text("prompt_to_repeat"))
	start, end := a.number("n_start"), a.number("n_end")
	prompt = prompt[min(start, len(prompt)):]
	prompt = prompt[:max(0, min(end+1-start, len(prompt)))]
	want := pytext.Lower(pytext.Strip(string(prompt)))
	return func(s string) bool { return pytext.Lower(pytext.Strip(s)) == want }
}
