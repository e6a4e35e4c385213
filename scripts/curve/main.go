// Command curve draws one metric of one or more runs over their steps as an SVG picture.
//
//	go run ./scripts/curve -metric reward -title "Quickstart" -o docs/img/quickstart.svg runs/a runs/b
package main

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/rubicon-rl/rubicon/internal/plot"
	"github.com/rubicon-rl/rubicon/trainer/track"
)

func main() {
	metric := flag.String("metric", "reward", "metric of the training steps")
	title := flag.String("title", "", "title")
	out := flag.String("o", "", "file to write")
	flag.Parse()
	if err := draw(*out, *title, *metric, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "curve:", err)
		os.Exit(1)
	}
}

func draw(out, title, metric string, runs []string) error {
	if out == "" || len(runs) == 0 {
		return fmt.Errorf("give -o FILE and the folders of runs")
	}
	var lines []plot.Line
	for _, run := range runs {
		records, err := track.ReadJSONL(filepath.Join(run, "metrics.jsonl"))
		if err != nil {
			return err
		}
		name := filepath.Base(run)
		for _, l := range []plot.Line{{Name: name, Points: series(records, metric)}, {Name: name, Points: series(records, "eval_"+metric), Marked: true}} {
			if len(l.Points) > 0 {
				lines = append(lines, l)
			}
		}
	}
	if len(lines) == 0 {
		return fmt.Errorf("no run has the metric %s", metric)
	}
	return os.WriteFile(out, []byte(plot.SVG(title, metric+"; line: training, dots: held out", lines)), 0o644)
}

func series(records []track.Record, name string) []plot.Point {
	var out []plot.Point
	for _, r := range records {
		if v, ok := r.Values[name]; ok && !math.IsNaN(v) {
			out = append(out, plot.Point{X: float64(r.Step), Y: v, Low: v, High: v})
		}
	}
	return out
}
