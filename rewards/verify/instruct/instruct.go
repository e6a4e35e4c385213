// Package instruct decides whether a response follows a verifiable instruction of IFEval (Zhou et al. 2023,
// arXiv:2311.07911), with the verdicts of its official checker: the same patterns with Python's Unicode meaning, the
// same strict and loose readings. It has the 20 instructions that need neither a sentence splitter nor a language
// detector; the other five are errors that say so.
package instruct

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rubicon-rl/rubicon/rewards/internal/pytext"
)

// Instruction is one instruction with its arguments.
type Instruction struct {
	ID      string
	follows func(response string) bool
}

// instructions maps an id to what reads its arguments and returns its check.
var instructions = map[string]func(*arguments) func(string) bool{
	"keywords:existence":                            existence,
	"keywords:frequency":                            frequency,
	"keywords:forbidden_words":                      forbiddenWords,
	"keywords:letter_frequency":                     letterFrequency,
	"length_constraints:number_words":               numberWords,
	"length_constraints:number_paragraphs":          numberParagraphs,
	"length_constraints:nth_paragraph_first_word":   nthParagraphFirstWord,
	"detectable_content:number_placeholders":        numberPlaceholders,
	"detectable_content:postscript":                 postscript,
	"detectable_format:number_bullet_lists":         numberBulletLists,
	"detectable_format:constrained_response":        constrainedResponse,
	"detectable_format:number_highlighted_sections": numberHighlightedSections,
	"detectable_format:multiple_sections":           multipleSections,
	"detectable_format:json_format":                 jsonFormat,
	"detectable_format:title":                       title,
	"combination:two_responses":                     twoResponses,
	"combination:repeat_prompt":                     repeatPrompt,
	"startend:end_checker":                          endChecker,
	"startend:quotation":                            quotation,
	"punctuation:no_comma":                          noComma,
}

// needs names what the remaining ids of IFEval ask for.
var needs = map[string]string{
	"language:response_language":          "a language detector",
	"length_constraints:number_sentences": "a sentence splitter",
	"change_case:capital_word_frequency":  "a word tokeniser",
	"change_case:english_capital":         "a language detector",
	"change_case:english_lowercase":       "a language detector",
}

// Supported tells whether Compile knows id.
func Supported(id string) bool { return instructions[id] != nil }

// Known tells whether id is one of IFEval's 25, supported or not.
func Known(id string) bool { return Supported(id) || needs[id] != "" }

// Compile reads the arguments of instruction id (a row's kwargs, as decoded JSON; null arguments count as absent). An
// unknown or unsupported id, a missing, unknown or wrong argument is an error.
func Compile(id string, kwargs map[string]any) (*Instruction, error) {
	build := instructions[id]
	switch {
	case needs[id] != "":
		return nil, fmt.Errorf("instruction %s needs %s, which is not supported: leave rows with it out", id, needs[id])
	case build == nil:
		return nil, fmt.Errorf("unknown instruction %q: use one of IFEval's ids, such as keywords:existence", id)
	}
	args := &arguments{values: kwargs}
	follows := build(args)
	if err := args.finish(); err != nil {
		return nil, fmt.Errorf("instruction %s: %w", id, err)
	}
	return &Instruction{ID: id, follows: follows}, nil
}

// Follows is the bare check, without the rule about blank responses.
func (i *Instruction) Follows(response string) bool { return i.follows(response) }

// Strict is the official strict reading: the response is not blank and follows the instruction.
func (i *Instruction) Strict(response string) bool {
	return !pytext.Blank(response) && i.follows(response)
}

// Loose is the official loose reading: the response, or what remains of it without its first line, its last line or
// both, with or without asterisks, passes strictly.
func (i *Instruction) Loose(response string) bool {
	lines := strings.Split(response, "\n")
	join := func(lines []string) string { return pytext.Strip(strings.Join(lines, "\n")) }
	variants := []string{response, join(lines[1:]), join(lines[:len(lines)-1]), ""}
	if len(lines) > 2 {
		variants[3] = join(lines[1 : len(lines)-1])
	}
	return slices.ContainsFunc(variants, func(v string) bool {
		return i.Strict(v) || i.Strict(strings.ReplaceAll(v, "*", ""))
	})
}
