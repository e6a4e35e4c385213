package trainer

import (
	"math"
	"reflect"
	"testing"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/policy"
)

func rowOf(p *grpo.Prompt, mask []bool, tokens ...int32) grpo.Row {
	return grpo.Row{Prompt: p, Completion: &grpo.Completion{Tokens: tokens}, Mask: mask}
}

// Rows of one prompt share its root wherever they stand in the micro-batch, and a row that is masked whole is not computed.
func TestPackSharesPrompts(t *testing.T) {
	a, b := &grpo.Prompt{ID: "a", Tokens: []int32{1, 2}}, &grpo.Prompt{ID: "b", Tokens: []int32{3}}
	rows := byPrompt([]grpo.Row{
		rowOf(a, nil, 10, 11), rowOf(b, nil, 20), rowOf(a, []bool{false, false}, 12, 13), rowOf(a, []bool{true, false, true}, 14, 15, 16),
	})
	f := pack(rows)
	var parents []int
	var tokens [][]int32
	for _, s := range f.Segments {
		parents = append(parents, s.Parent)
		tokens = append(tokens, s.Tokens)
	}
	if want := []int{policy.Root, 0, 0, policy.Root, 3}; !reflect.DeepEqual(parents, want) {
		t.Errorf("parents = %v, want %v", parents, want)
	}
	if want := [][]int32{{1, 2}, {10, 11}, {14, 15, 16}, {3}, {20}}; !reflect.DeepEqual(tokens, want) {
		t.Errorf("tokens = %v, want %v", tokens, want)
	}
	if f.Segments[1].ID == f.Segments[2].ID || f.Segments[0].ID == f.Segments[3].ID {
		t.Error("two segments share a dropout stream")
	}
	// Values come back in the order of the scored tokens and go to their places among all tokens.
	spreaded := spread(rows, []float32{1, 2, 3, 4, 5})
	if want := []float32{1, 2, 3, 0, 4, 5}; !reflect.DeepEqual(spreaded, want) {
		t.Errorf("spread = %v, want %v", spreaded, want)
	}
	if got := gather(rows, spreaded); !reflect.DeepEqual(got, []float32{1, 2, 3, 4, 5}) {
		t.Errorf("gather = %v", got)
	}
	if gather(rows, nil) != nil {
		t.Error("gather of no gradient is not nil")
	}
}

// The engine check must notice a single bit, at trained tokens only.
func TestSameBits(t *testing.T) {
	r := rowOf(&grpo.Prompt{}, []bool{true, false}, 1, 2)
	r.Completion.LogP = []float32{-1, -2}
	if err := sameBits([]grpo.Row{r}, []float32{-1, 0}); err != nil {
		t.Error(err)
	}
	if err := sameBits([]grpo.Row{r}, []float32{-1.0000001, -2}); err == nil {
		t.Error("a different bit went unnoticed")
	}
	nan := float32(math.NaN()) // of a policy that is beyond use: for the objective to say
	r.Completion.LogP[0] = nan
	if err := sameBits([]grpo.Row{r}, []float32{nan, 0}); err != nil {
		t.Error(err)
	}
}

// An end token is trained on although the tokenizer pads with the same one: nothing is padded, and what counts is a token's place.
func TestEndTokenThatPads(t *testing.T) {
	const end = 2 // of smollm, which pads with it
	p := &grpo.Prompt{Tokens: []int32{end, 7}}
	rows := []grpo.Row{rowOf(p, nil, 5, end), rowOf(p, nil, end, 6, 7, end)}
	f := pack(rows)
	if n := f.Tokens(); n != 2+2+4 {
		t.Errorf("%d tokens are computed, want 8", n)
	}
	for _, r := range rows {
		for i, is := range scored(r) {
			if !is {
				t.Errorf("token %d of %v is left out", i, r.Completion.Tokens)
			}
		}
	}
	if got := spread(rows, []float32{1, 2, 3, 4, 5, 6}); !reflect.DeepEqual(got, []float32{1, 2, 3, 4, 5, 6}) {
		t.Errorf("values of the tokens are %v", got)
	}
}
