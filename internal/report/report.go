// Package report writes what a paper's appendix wants to know of runs: their curves, evaluations with intervals, how the rubric changed, what
// it cost, what was wrong with them, and examples. It reads the runs' folders alone.
package report

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/rubicon-rl/rubicon/internal/board"
	"github.com/rubicon-rl/rubicon/trainer/track"
)

// Run is a run with what was read of it.
type Run struct {
	*board.Run
	Dir     string
	Records []track.Record
}

// Open reads the run in a folder.
func Open(dir string) (*Run, error) {
	r, err := board.Open(dir)
	if err != nil {
		return nil, err
	}
	records, _, err := r.Records()
	if err != nil {
		return nil, err
	}
	if len(records) == 0 {
		return nil, fmt.Errorf("%s has no line of metrics yet: there is nothing to report", dir)
	}
	return &Run{r, dir, records}, nil
}

// section is a part of a report.
type section struct {
	title  string
	blocks []block
}

// block is a paragraph, a table or a figure.
type block struct {
	text   string
	head   []string
	rows   [][]string
	figure string // SVG
	name   string // of the figure, a file name without its ending
}

// Write writes report.md with its figures beside it, and report.html, which has them in it, into the folder dir.
func Write(runs []*Run, dir string) error {
	sections, err := all(runs)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	files := map[string]string{"report.md": markdown(sections), "report.html": page(sections)}
	for _, s := range sections {
		for _, b := range s.blocks {
			if b.figure != "" {
				files[b.name+".svg"] = b.figure
			}
		}
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return fmt.Errorf("write the report: %w", err)
		}
	}
	return nil
}

// all are the sections that the runs have something to say in.
func all(runs []*Run) ([]section, error) {
	var out []section
	for _, make := range []func([]*Run) (section, error){overview, settings, curves, evaluations, rubrics, costs, diagnoses, examples} {
		s, err := make(runs)
		if err != nil {
			return nil, err
		}
		if len(s.blocks) > 0 {
			out = append(out, s)
		}
	}
	return out, nil
}

// curveNames are the metrics that are drawn, in this order, where the runs have them.
var curveNames = []string{
	"reward", "eval_reward", "kl", "entropy", "completions/mean_length", "completions/clipped_ratio", "frac_reward_zero_std", "grad_norm", "loss",
	"clip_ratio/region_mean", "judge/unscorable_frac", "amaris/criteria", "rare/replaced", "learning_rate",
}

// firstLast are the first and the last value of a metric; false: there is none.
func (r *Run) firstLast(metric string) (first, last float64, ok bool) {
	for _, rec := range r.Records {
		if v, there := rec.Values[metric]; there {
			if !ok {
				first, ok = v, true
			}
			last = v
		}
	}
	return first, last, ok
}

// sum adds up a metric over the lines, each of which is the mean of the steps since the line before.
func (r *Run) sum(metric string) float64 {
	total, before := 0.0, 0
	for _, rec := range r.Records {
		if v, ok := rec.Values[metric]; ok {
			total += v * float64(rec.Step-before)
			before = rec.Step
		}
	}
	return total
}

func (r *Run) steps() int { return r.Records[len(r.Records)-1].Step }

// escape is a text that Markdown shows as it is, in one line of a table.
func escape(s string) string {
	return strings.NewReplacer("\n", " ", "\r", " ", "|", `\|`, "<", "&lt;", "`", "'", "*", `\*`, "_", `\_`, "[", `\[`).Replace(s)
}

// markdown is the report as Markdown.
func markdown(sections []section) string {
	var b strings.Builder
	b.WriteString("# Report\n")
	for _, s := range sections {
		fmt.Fprintf(&b, "\n## %s\n", s.title)
		for _, x := range s.blocks {
			b.WriteString("\n")
			switch {
			case x.figure != "":
				fmt.Fprintf(&b, "![%s](%s.svg)\n", escape(x.text), x.name)
			case x.head != nil:
				writeRow(&b, x.head)
				fmt.Fprintf(&b, "|%s\n", strings.Repeat("---|", len(x.head)))
				for _, row := range x.rows {
					writeRow(&b, row)
				}
			default:
				fmt.Fprintf(&b, "%s\n", escape(x.text))
			}
		}
	}
	return b.String()
}

func writeRow(b *strings.Builder, cells []string) {
	for _, c := range cells {
		fmt.Fprintf(b, "| %s ", escape(c))
	}
	b.WriteString("|\n")
}
