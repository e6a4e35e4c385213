package instruct

import (
	"fmt"
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

// BenchmarkIFEval is the scoring of one answer to each of IFEval's prompts, in both readings: ns/op is the time for all of them.
func BenchmarkIFEval(b *testing.B) {
	type answer struct {
		all      []*Instruction
		response string
	}
	var answers []answer
	seen := map[string]bool{}
	for _, row := range oracle.Rows[verdict](b, "ifeval_verdicts.jsonl") {
		if key := fmt.Sprint(row.Key); seen[key] {
			continue
		} else {
			seen[key] = true
		}
		a := answer{response: row.Response}
		for i, id := range row.IDs {
			c, err := Compile(id, row.Kwargs[i])
			if err != nil {
				b.Fatal(err)
			}
			a.all = append(a.all, c)
		}
		answers = append(answers, a)
	}
	for b.Loop() {
		for _, a := range answers {
			for _, i := range a.all {
				i.Strict(a.response)
				i.Loose(a.response)
			}
		}
	}
	b.ReportMetric(float64(len(answers)), "prompts")
}
