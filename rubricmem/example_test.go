package rubricmem_test

import (
	"context"
	"fmt"

	"github.com/rubicon-rl/rubicon/rubricmem"
)

// A memory without a folder and without a model.
func ExampleMemory_Search() {
	ctx := context.Background()
	m, err := rubricmem.Open(rubricmem.Options{})
	if err != nil {
		panic(err)
	}
	defer m.Close()
	err = m.Add(ctx,
		rubricmem.Doc{ID: "s-1", Kind: rubricmem.StepSummary, Scope: "global", Step: 1, Text: "Answers repeat a sentence to gain length."},
		rubricmem.Doc{ID: "s-2", Kind: rubricmem.StepSummary, Scope: "global", Step: 2, Text: "Citations are made up."},
	)
	if err != nil {
		panic(err)
	}
	hits, err := m.Search(ctx, []string{"repeated sentences"}, 1, rubricmem.Filter{Kinds: []rubricmem.Kind{rubricmem.StepSummary}})
	if err != nil {
		panic(err)
	}
	fmt.Println(hits[0][0].Step, hits[0][0].Text)
	// Output: 1 Answers repeat a sentence to gain length.
}
