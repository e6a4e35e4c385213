package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// report is scale-points.json.
type report struct {
	Machine string    `json:"machine"`
	Rates   rates     `json:"rates"` // that all times are predicted with
	Results []*result `json:"results"`
}

// result is a point measured and predicted.
type result struct {
	Point     point   `json:"point"`
	Measured  figures `json:"measured"`
	Predicted cost    `json:"predicted"`
	Commit    string  `json:"commit"`
	Date      string  `json:"date"`
}

const fileName = "scale-points.json"

// open is the report in dir, a new one if there is none.
func open(dir string) (*report, error) {
	here := processor()
	r := &report{Machine: here}
	if dir == "" {
		return r, nil
	}
	text, err := os.ReadFile(filepath.Join(dir, fileName))
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err == nil {
		err = json.Unmarshal(text, r)
	}
	if err == nil && r.Machine != here {
		err = fmt.Errorf("%s is of %q, this is %q: remove it to begin anew", fileName, r.Machine, here)
	}
	return r, err
}

func (r *report) write(dir string) error {
	text, err := json.MarshalIndent(r, "", " ")
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, fileName), append(text, '\n'), 0o644)
}

// processor is the name of this machine's, and how many there are.
func processor() string {
	text, _ := os.ReadFile("/proc/cpuinfo") // unreadable: unknown
	name := ""
	for line := range strings.Lines(string(text)) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == "model name" {
			name = strings.TrimSpace(v)
		}
	}
	return fmt.Sprintf("%s, %d processors", name, strings.Count(string(text), "model name"))
}

// measure takes all points and predicts them.
func (r *report) measure(ctx context.Context, list []sweep, o options) error {
	commit := revision()
	seen := map[point]bool{}
	for _, s := range list {
		for _, p := range s.points {
			if seen[p] {
				continue
			}
			seen[p] = true
			fmt.Fprintf(os.Stderr, "%s, %d layers, %d x %d tokens, checkpointing %v, threads %d:", p.Shape, p.Layers, p.Sequences, p.Length, p.Recompute, p.Threads)
			f, err := measure(ctx, order{p, o.passes, o.budget})
			if err != nil {
				return err
			}
			fmt.Fprintf(os.Stderr, " %.3g s, %s\n", f.median(), size(f.Peak))
			*r.at(p) = result{Point: p, Measured: f, Commit: commit, Date: time.Now().UTC().Format(time.RFC3339)}
			if o.out != "" { // what is measured is not lost with a later point
				if err := r.write(o.out); err != nil {
					return err
				}
			}
		}
	}
	return r.predict()
}

// predict sets the predictions of all points.
func (r *report) predict() (err error) {
	for _, q := range r.Results {
		if q.Predicted, err = predict(q.Point); err != nil {
			return err
		}
	}
	r.Rates = fit(r.Results)
	for _, q := range r.Results {
		q.Predicted.Seconds = r.Rates.seconds(q.Predicted, q.Point.Threads)
	}
	return nil
}

// at is the result of a point, a new one if there is none.
func (r *report) at(p point) *result {
	if q := r.find(p); q != nil {
		return q
	}
	r.Results = append(r.Results, &result{})
	return r.Results[len(r.Results)-1]
}

func (r *report) find(p point) *result {
	for _, q := range r.Results {
		if q.Point == p {
			return q
		}
	}
	return nil
}

// revision is the commit that is measured, with -dirty if files differ from it.
func revision() string {
	out, err := exec.Command("git", "describe", "--always", "--dirty", "--abbrev=12").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

// table prints sweeps as Markdown.
func (r *report) table(w io.Writer, list []sweep) {
	fmt.Fprintf(w, "%s. GFLOP/s a thread: products %.0f, attention %.0f.\n", r.Machine, r.Rates.Products/1e9, r.Rates.Attention/1e9)
	for _, s := range list {
		if len(s.points) == 0 {
			continue
		}
		fmt.Fprintf(w, "\n### %s\n\n", s.what)
		fmt.Fprintln(w, "| model | layers | B x T | checkpointing | threads | seconds | predicted | tokens/s | GFLOP/s | device | planned | process | predicted |")
		fmt.Fprintln(w, "|---|---:|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
		for _, p := range s.points {
			r.find(p).row(w)
		}
	}
}

func (r *result) row(w io.Writer) {
	p, m, c := r.Point, r.Measured, r.Predicted
	recompute := map[bool]string{true: "on", false: "off"}[p.Recompute]
	fmt.Fprintf(w, "| %s | %d | %d x %d | %s | %d |", p.Shape, p.Layers, p.Sequences, p.Length, recompute, p.Threads)
	fmt.Fprintf(w, " %.3g | %s | %.0f | %.0f |", m.median(), off(c.Seconds, m.median()), float64(p.tokens())/m.median(), (c.Products+c.Attention)/m.median()/1e9)
	fmt.Fprintf(w, " %s | %s | %s | %s |\n", size(m.Allocated), off(float64(c.Device), float64(m.Allocated)), size(m.Peak), off(float64(c.Peak), float64(m.Peak)))
}

// off is by how much a prediction differs.
func off(predicted, measured float64) string {
	return fmt.Sprintf("%+.1f %%", 100*(predicted/measured-1))
}

func size(bytes int64) string {
	if bytes < 1e9 {
		return fmt.Sprintf("%.0f MB", float64(bytes)/1e6)
	}
	return fmt.Sprintf("%.2f GB", float64(bytes)/1e9)
}
