// Command curve draws one metric of one or more runs over their steps as an SVG picture.
//
//	go run ./scripts/curve -metric reward -title "Quickstart" -o docs/img/quickstart.svg runs/a runs/b
package main

import (
	"flag"
	"fmt"
	"html"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/rubicon-rl/rubicon/trainer/track"
)

// Picture, plot area and colours.
const (
	width, height         = 720, 300
	left, right, top, low = 56, 16, 40, 40
)

var colours = []string{"#1f6feb", "#d1582b", "#2da44e", "#8250df", "#9a6700", "#57606a"}

type point struct{ step, value float64 }

type line struct {
	name   string
	points []point
	colour string
	dots   bool // held out: few points, marked
}

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
	var lines []line
	for i, run := range runs {
		records, err := track.ReadJSONL(filepath.Join(run, "metrics.jsonl"))
		if err != nil {
			return err
		}
		name, colour := filepath.Base(run), colours[i%len(colours)]
		for _, l := range []line{{name, series(records, metric), colour, false}, {name, series(records, "eval_"+metric), colour, true}} {
			if len(l.points) > 0 {
				lines = append(lines, l)
			}
		}
	}
	if len(lines) == 0 {
		return fmt.Errorf("no run has the metric %s", metric)
	}
	return os.WriteFile(out, []byte(svg(title, metric, lines)), 0o644)
}

func series(records []track.Record, name string) []point {
	var out []point
	for _, r := range records {
		if v, ok := r.Values[name]; ok && !math.IsNaN(v) {
			out = append(out, point{float64(r.Step), v})
		}
	}
	return out
}

func svg(title, metric string, lines []line) string {
	last, lo, hi := 1.0, 0.0, 0.0
	for _, l := range lines {
		for _, p := range l.points {
			last, lo, hi = max(last, p.step), min(lo, p.value), max(hi, p.value)
		}
	}
	unit := math.Pow(10, math.Floor(math.Log10(hi-lo)))
	if (hi-lo)/unit < 2 {
		unit /= 5
	}
	lo, hi = math.Floor(lo/unit)*unit, math.Ceil(hi/unit)*unit
	x := func(step float64) float64 { return left + step/last*(width-left-right) }
	y := func(v float64) float64 { return height - low - (v-lo)/(hi-lo)*(height-top-low) }
	var b, marks strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12" fill="#57606a">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="white"/><text x="%d" y="20" font-size="15" fill="#24292f">%s</text>`+"\n", left, html.EscapeString(title))
	for v := lo; v <= hi+unit/2; v += unit {
		fmt.Fprintf(&b, `<path d="M%d %.1fH%d" stroke="#d0d7de"/><text x="%d" y="%.1f" text-anchor="end">%.4g</text>`+"\n", left, y(v), width-right, left-8, y(v)+4, v)
	}
	for i := range 6 {
		s := math.Round(last * float64(i) / 5)
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle">%.0f</text>`+"\n", x(s), height-low+18, s)
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">step</text>`+"\n", width-right, height-4)
	fmt.Fprintf(&b, `<text x="%d" y="20" text-anchor="end">`, width-right)
	for _, l := range lines {
		drawLine(&marks, l, x, y)
		if !l.dots {
			fmt.Fprintf(&b, `&#160; <tspan fill="%s">%s</tspan>`, l.colour, html.EscapeString(l.name))
		}
	}
	fmt.Fprintf(&b, "</text>\n"+`<text x="%d" y="%d">%s; line: training, dots: held out</text>`+"\n", left, height-4, html.EscapeString(metric))
	return b.String() + marks.String() + "</svg>\n"
}

func drawLine(b *strings.Builder, l line, x, y func(float64) float64) {
	var path []string
	for _, p := range l.points {
		path = append(path, fmt.Sprintf("%.1f,%.1f", x(p.step), y(p.value)))
		if l.dots {
			fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="4" fill="%s"/>`+"\n", x(p.step), y(p.value), l.colour)
		}
	}
	dash := `1" stroke-opacity="0.5"`
	if l.dots {
		dash = `2" stroke-dasharray="4 4"`
	}
	fmt.Fprintf(b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="%s/>`+"\n", strings.Join(path, " "), l.colour, dash)
}
