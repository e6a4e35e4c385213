package grpo_test

import (
	"fmt"

	"github.com/rubicon-rl/rubicon/grpo"
)

// Two completions, on policy: the loss is minus the mean advantage over tokens, and each token's gradient its share.
func ExampleObjective() {
	objective, err := grpo.NewObjective(grpo.Default())
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := objective.Eval(grpo.Inputs{
		Rows:       []int{3, 1},
		LogP:       []float32{-0.5, -1.5, -0.25, -2},
		Advantages: []float64{1, -2},
		NumItems:   4,
	})
	fmt.Println(result.Loss, result.DLogP, err)
	// Output: -0.25 [-0.25 -0.25 -0.25 0.5] <nil>
}
