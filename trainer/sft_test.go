package trainer

import (
	"reflect"
	"slices"
	"testing"

	"github.com/rubicon-rl/rubicon/policy"
)

func example(prefix int, tokens ...int32) Example {
	e := Example{Tokens: tokens, Learn: make([]bool, len(tokens))}
	for i := max(1, prefix); i < len(tokens); i++ {
		e.Learn[i] = true
	}
	return e
}

// By hand: lengths 5 4 3 2 2 into rows of 6. Longest first, each into the fullest row with room: 5 | 4+2 | 3+2.
func TestFillPacksBestFit(t *testing.T) {
	var examples []Example
	for _, n := range []int{2, 5, 3, 2, 4} {
		examples = append(examples, Example{Tokens: make([]int32, n)})
	}
	want := [][]int{{1}, {4, 0}, {2, 3}}
	if got := fill(examples, 6); !reflect.DeepEqual(got, want) {
		t.Errorf("fill = %v, want %v", got, want)
	}
}

func TestPackExamplesSharesWhatStandsBefore(t *testing.T) {
	f := packExamples([]Example{example(2, 1, 2, 3), example(2, 1, 2, 4, 5), example(2, 1, 9, 3)})
	var parents []int
	scored := 0
	for _, s := range f.Segments {
		parents = append(parents, s.Parent)
		for _, on := range s.Score {
			if on {
				scored++
			}
		}
	}
	if want := []int{policy.Root, 0, 0, policy.Root, 3}; !slices.Equal(parents, want) || scored != 4 {
		t.Errorf("parents %v with %d learned tokens, want %v with 4", parents, scored, want)
	}
}
