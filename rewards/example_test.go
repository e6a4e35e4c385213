package rewards_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/rewards"
)

// Brevity rewards completions that have few words.
type Brevity struct{ Most int }

func (b Brevity) Score(_ context.Context, _ int, groups []grpo.Group) ([]rewards.Score, error) {
	var out []rewards.Score
	for _, g := range groups {
		for _, c := range g.Completions {
			n := len(strings.Fields(c.Text))
			if n == 0 {
				out = append(out, rewards.Unscorable("it has no words")) // never a silent zero
				continue
			}
			out = append(out, rewards.Score{Value: min(1, float64(b.Most)/float64(n)), Reason: fmt.Sprintf("%d words", n)})
		}
	}
	return out, nil
}

var _ rewards.Provider = Brevity{}

// Example is the provider of docs/tutorial.md.
func Example() {
	group := grpo.Group{Completions: []*grpo.Completion{{Text: "Pear and plum."}, {Text: "There are so many of them that I cannot say."}, {Text: " "}}}
	scores, err := Brevity{Most: 5}.Score(context.Background(), 0, []grpo.Group{group})
	if err != nil {
		panic(err)
	}
	for _, s := range scores {
		fmt.Println(s.Value, s.Reason, s.Unscorable)
	}
	// Output:
	// 1 3 words false
	// 0.5 10 words false
	// NaN it has no words true
}
