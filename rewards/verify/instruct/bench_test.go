package instruct

import (
	"testing"

	"github.com/rubicon-rl/rubicon/rewards/internal/oracle"
)

// BenchmarkStrict times each instruction on 1,024 responses, a step of 256 prompts and 4 completions each.
func BenchmarkStrict(b *testing.B) {
	for _, name := range []string{"ifeval_verdicts.jsonl", "ifbench_verdicts.jsonl"} {
		rows := oracle.Rows[verdict](b, name)
		kwargs := map[string]map[string]any{}
		for _, row := range rows {
			for i, id := range row.IDs {
				kwargs[id] = row.Kwargs[i]
			}
		}
		for id, args := range kwargs {
			c, err := Compile(id, args)
			if err != nil {
				b.Fatal(err)
			}
			b.Run(id, func(b *testing.B) {
				for b.Loop() {
					for i := range 1024 {
						c.Strict(rows[i%len(rows)].Response)
					}
				}
			})
		}
	}
}
