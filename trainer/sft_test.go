package trainer

import (
	"math"
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

// Five rows, two in a micro-batch, two micro-batches in a step: steps of 2 and 1 micro-batches, each row once in an epoch, and
// the next epoch in its own order.
func TestNextGoesThroughTheData(t *testing.T) {
	p := parts(t, "per_device_train_batch_size=2", "gradient_accumulation_steps=2", "output_dir="+t.TempDir())
	var examples []Example
	for i := range int32(5) {
		examples = append(examples, example(1, 5, 10+i))
	}
	s, err := NewSFT(p, examples, nil)
	check(t, err)
	defer s.Close()
	if s.total != 6 {
		t.Errorf("%d steps in three epochs, want 6", s.total)
	}
	var epochs [2][]int32
	for e := range epochs {
		for _, want := range []int{2, 1} {
			micros, _ := s.next()
			if len(micros) != want {
				t.Fatalf("%d micro-batches, want %d", len(micros), want)
			}
			for _, m := range micros {
				for _, x := range m {
					epochs[e] = append(epochs[e], x.Tokens[1])
				}
			}
			s.state.Step++
		}
	}
	if slices.Equal(epochs[0], epochs[1]) {
		t.Errorf("both epochs have the order %v", epochs[0])
	}
	for _, e := range epochs {
		if slices.Sort(e); !slices.Equal(e, []int32{10, 11, 12, 13, 14}) {
			t.Errorf("an epoch has rows %v", e)
		}
	}
}

// The loss is the mean over the learned tokens of the whole step, however it is cut into micro-batches and rows.
func TestSFTLossDoesNotDependOnMicroBatches(t *testing.T) {
	examples := []Example{example(1, 5, 10, 11, 12, 13), example(2, 5, 20, 21)}
	step := func(overrides ...string) (loss, norm float64) {
		p := parts(t, append(overrides, "data.max_length=8", "output_dir="+t.TempDir())...)
		s, err := NewSFT(p, examples, nil)
		check(t, err)
		defer s.Close()
		s.schedule = func(int) float64 { return 0 }
		check(t, s.Step(t.Context()))
		return s.state.Window.Totals["loss"].Sum, s.state.Latest["grad_norm"]
	}
	loss, norm := step("per_device_train_batch_size=2")
	for _, other := range [][]string{{"per_device_train_batch_size=1", "gradient_accumulation_steps=2"}, {"per_device_train_batch_size=1", "data.packing=true"}} {
		l, n := step(other...)
		if !(math.Abs(l-loss) < 1e-6*loss && math.Abs(n-norm) < 1e-5*norm) {
			t.Errorf("%v: loss %v, gradient norm %v, want %v, %v", other, l, n, loss, norm)
		}
	}
	if loss < 1 || norm == 0 {
		t.Errorf("loss %v, gradient norm %v of a random model", loss, norm)
	}
}
