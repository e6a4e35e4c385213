package eval

import (
	"cmp"
	"fmt"
	"strings"
)

// Markdown is a table of results.
func Markdown(results []*Result) string {
	var b strings.Builder
	b.WriteString("| benchmark | of | metric | value | 95 % interval | std. error of repeats | answers | cut off | refused | unscorable |\n")
	b.WriteString("|---|---|---|---:|---:|---:|---:|---:|---:|---:|\n")
	for _, r := range results {
		for i, m := range r.Metrics {
			name, of, counts := "", "", " | | | "
			if i == 0 {
				name, of = r.Setting.Benchmark, cmp.Or(r.Label, fmt.Sprint("step ", r.Setting.Step))
				counts = fmt.Sprintf("%d | %d | %d | %d", r.Answers, r.CutOff, r.Refused, r.Unscorable)
			}
			se := ""
			if r.Setting.Repeats > 1 {
				se = fmt.Sprintf("%.4f", m.StdErr)
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %.4f | %.4f to %.4f | %s | %s |\n", name, of, m.Name, m.Value, m.Low, m.High, se, counts)
		}
		if len(r.Metrics) == 0 {
			fmt.Fprintf(&b, "| %s | %s | nothing could be scored | | | | %d | %d | %d | %d |\n", r.Setting.Benchmark, cmp.Or(r.Label, fmt.Sprint("step ", r.Setting.Step)),
				r.Answers, r.CutOff, r.Refused, r.Unscorable)
		}
	}
	return b.String()
}
