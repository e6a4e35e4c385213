// Package instruct decides whether a response follows a verifiable instruction of IFEval (Zhou et al. 2023,
// arXiv:2311.07911) or IFBench (Pyatkin et al. 2025, arXiv:2507.02833), with the verdicts of their official checkers: the
// same rules with Python's Unicode meaning, sentences and words as NLTK finds them, the same strict and loose readings.
// The file registry.go lists the 25 ids of IFEval and the 58 of IFBench. Where an official check does not do what its
// prompt says, so does this one.
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

// Known tells whether id is one of the 83.
func Known(id string) bool { return instructions[id] != nil }

// Compile reads the arguments of instruction id (a row's kwargs, as decoded JSON; null arguments count as absent). An
// unknown id, a missing, unknown or wrong argument is an error.
func Compile(id string, kwargs map[string]any) (*Instruction, error) {
	build := instructions[id]
	if build == nil {
		return nil, fmt.Errorf("unknown instruction %q: use one of the ids of IFEval or IFBench, such as keywords:existence", id)
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
