package main

import (
	"fmt"
	"strings"
)

// markdown is the report for people.
func (r *report) markdown() string {
	var b strings.Builder
	m := r.Machine
	fmt.Fprintf(&b, "# GPU check\n\n%s", m.Device)
	if m.Capability != "" {
		fmt.Fprintf(&b, ", compute capability %s, %.1f GB; %s; %s", m.Capability, float64(m.Memory)/1e9, m.Driver, m.Blas)
	}
	fmt.Fprintf(&b, "; %s on %s; %s\n\n| part | seconds | |\n|---|---|---|\n", m.Go, m.System, m.Made.Format("2006-01-02 15:04"))
	for _, p := range r.Parts {
		fmt.Fprintf(&b, "| %s | %.1f | %s |\n", p.Name, p.Seconds, cell(p.Fault))
	}
	r.tests(&b)
	r.rates(&b)
	r.steps(&b)
	if l := r.Learning; len(l.BFloat16) > 0 {
		b.WriteString("\n## Loss before each update\n\n| update | CPU | float32 | bfloat16 |\n|---|---|---|---|\n")
		for i := range l.CPU {
			fmt.Fprintf(&b, "| %d | %.4f | %.4f | %.4f |\n", i+1, l.CPU[i], l.Float32[i], l.BFloat16[i])
		}
	}
	return b.String()
}

// cell is text in a cell of a table.
func cell(s string) string {
	if s == "" {
		return "ok"
	}
	return strings.NewReplacer("|", "/", "\n", "; ").Replace(s)
}

func (r *report) tests(b *strings.Builder) {
	if len(r.SelfTest) > 0 {
		b.WriteString("\n## Operations against the CPU\n\nThe largest difference, relative to the largest element.\n\n| operation | float32 | bfloat16 |\n|---|---|---|\n")
		cells := map[string][2]string{}
		var ops []string
		for _, o := range r.SelfTest {
			c, seen := cells[o.Op]
			if !seen {
				ops = append(ops, o.Op)
			}
			text, i := fmt.Sprintf("%.1e", o.Worst), 0
			if o.Fault != "" {
				text = "**" + cell(o.Fault) + "**"
			}
			if o.BFloat16 {
				i = 1
			}
			c[i] = text
			cells[o.Op] = c
		}
		for _, op := range ops {
			fmt.Fprintf(b, "| %s | %s | %s |\n", op, cells[op][0], cells[op][1])
		}
	}
	if c := r.Conformance; c.Passed+len(c.Failed) > 0 {
		fmt.Fprintf(b, "\nConformance suite: %d cases passed, %d failed. %s\n", c.Passed, len(c.Failed), strings.Join(c.Failed, ", "))
	}
}

func (r *report) rates(b *strings.Builder) {
	if len(r.Models) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## Models of random weights\n\nThe device at best: %.1f TFLOP/s in a product, %.0f GB/s of a copy. Rates are tokens a second. Training is forward and backward with LoRA of rank 16 and recomputed layers; its share is 4 operations a weight and token. Decoding's share is of what reading weights, keys and values takes.\n\n", r.Arithmetic.TFLOPS, r.Arithmetic.Bandwidth)
	b.WriteString("| model | forward | training | of best | decoding (batch, context) | of best | LoRA: forward, decoding | memory: plan, used | load, s |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, m := range r.Models {
		fmt.Fprintf(b, "| %s | %.0f | %.0f | %.1f %% | %.0f (%d, %d) | %.1f %% | %+.1f %%, %+.1f %% | %.2f GB, %.2f GB | %.1f |\n", m.Shape, m.Forward, m.Train, 100*m.Utilisation,
			m.Decode, m.Batch, m.Context, 100*m.DecodeOfBest, 100*m.LoRAForward, 100*m.LoRADecode, float64(m.PlanBytes)/1e9, float64(m.UsedBytes)/1e9, m.LoadSeconds)
	}
	if len(r.Torch) > 0 {
		b.WriteString("\nThe same shapes in torch and transformers (bfloat16, scaled-dot-product attention, layers recomputed, LoRA of rank 16):\n\n| model | forward | training |\n|---|---|---|\n")
		for _, t := range r.Torch {
			fmt.Fprintf(b, "| %s | %.0f | %.0f |\n", t.Shape, t.Forward, t.Train)
		}
	}
}

func (r *report) steps(b *strings.Builder) {
	if len(r.Models) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## One step, seconds, and the gap between sampler and trainer\n\n| model | sampling %d tokens each | forward | backward | update | completions sampled, trained | mean, largest difference of log-probabilities | mean ratio |\n|---|---|---|---|---|---|---|---|\n", longDecode)
	for _, m := range r.Models {
		s, g := m.Step, m.Gap
		fmt.Fprintf(b, "| %s | %.2f | %.2f | %.2f | %.3f | %d, %d | %.4f, %.3f | %.5f |\n", m.Shape, s.Sampling, s.Forward, s.Backward, s.Update, s.Completions, s.Trained,
			g.MeanDifference, g.MaxDifference, g.MeanRatio)
	}
}
