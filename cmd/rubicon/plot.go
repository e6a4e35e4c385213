package main

import (
	"fmt"
	"math"
	"os"

	"github.com/spf13/cobra"

	"github.com/rubicon-rl/rubicon/internal/board"
	"github.com/rubicon-rl/rubicon/internal/plot"
)

func plotCommand() *cobra.Command {
	var metric, out string
	cmd := &cobra.Command{
		Use:   "plot RUN... --metric NAME -o FILE.svg",
		Short: "Draw a metric of runs over their steps as an SVG picture",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, folders []string) error {
			var lines []plot.Line
			for _, dir := range folders {
				line, err := metricLine(dir, metric)
				if err != nil {
					return err
				}
				lines = append(lines, line)
			}
			if err := os.WriteFile(out, []byte(plot.SVG(metric, "", lines)), 0o644); err != nil {
				return fmt.Errorf("write the picture: %w", err)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&metric, "metric", "reward", "name of the metric in metrics.jsonl")
	cmd.Flags().StringVarP(&out, "output", "o", "plot.svg", "file to write")
	return cmd
}

// metricLine is the finite values of a metric of the run in the folder dir.
func metricLine(dir, metric string) (plot.Line, error) {
	run, err := board.Open(dir)
	if err != nil {
		return plot.Line{}, err
	}
	records, _, err := run.Records()
	if err != nil {
		return plot.Line{}, err
	}
	line := plot.Line{Name: run.Name}
	for _, r := range records {
		if v, ok := r.Values[metric]; ok && !math.IsNaN(v) {
			line.Points = append(line.Points, plot.Point{X: float64(r.Step), Y: v, Low: v, High: v})
		}
	}
	if len(line.Points) == 0 {
		return plot.Line{}, fmt.Errorf("%s has no values of %q: give a name that stands in its metrics.jsonl (--metric)", dir, metric)
	}
	return line, nil
}
