package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// report is the JSON file that a run writes.
type report struct {
	Commit   string            `json:"commit"`
	Date     string            `json:"date"`
	Machine  machine           `json:"machine"`
	Versions map[string]string `json:"versions"`
	Rounds   int               `json:"rounds"`
	Limit    float64           `json:"foreign_cpu_limit"` // samples with more do not count if there are others
	Results  []*result         `json:"results"`
	Ratios   []ratio           `json:"ratios"`
}

// result is what one subject reached at one point of a case.
type result struct {
	Case    string   `json:"case"`
	At      string   `json:"at"` // the point
	Subject string   `json:"subject"`
	Medians values   `json:"medians"`
	Clean   bool     `json:"clean"` // some samples were undisturbed, and the medians are theirs
	Samples []sample `json:"samples"`
}

// ratio is a claim at one point.
type ratio struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"` // above 1: ours is better
	Bar   float64 `json:"bar,omitempty"`
	Met   bool    `json:"met"`
	Clean bool    `json:"clean"`
}

func newReport(o options) *report {
	return &report{
		Commit: revision(), Date: time.Now().UTC().Format(time.RFC3339), Machine: thisMachine(o.threads),
		Versions: map[string]string{"go": runtime.Version()}, Rounds: o.rounds, Limit: o.foreign,
	}
}

// label is a point's name: its numbers without those that all points of the case share.
func label(c testCase, p point) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(p)) {
		differs := slices.ContainsFunc(c.Points, func(q point) bool { return q[name] != p[name] })
		if differs {
			parts = append(parts, fmt.Sprintf("%s %v", name, p[name]))
		}
	}
	return strings.Join(parts, ", ")
}

// add notes a sample.
func (r *report) add(c testCase, at point, s subject, got sample) {
	res := r.find(c.Name, label(c, at), s.Name)
	if res == nil {
		res = &result{Case: c.Name, At: label(c, at), Subject: s.Name}
		r.Results = append(r.Results, res)
	}
	res.Samples = append(res.Samples, got)
}

func (r *report) find(name, at, subject string) *result {
	for _, res := range r.Results {
		if res.Case == name && res.At == at && res.Subject == subject {
			return res
		}
	}
	return nil
}

// summarise sets the medians and the ratios of a case.
func (r *report) summarise(c testCase) {
	for _, res := range r.Results {
		if res.Case != c.Name {
			continue
		}
		res.Medians, res.Clean = values{}, true
		for metric := range res.Samples[0].Values {
			x, ok := clean(res.Samples, metric, r.Limit)
			res.Medians[metric], res.Clean = median(x), res.Clean && ok
		}
	}
	for _, p := range c.Points {
		for _, l := range c.Claims {
			if q, ok := r.ratio(c, p, l); ok {
				r.Ratios = append(r.Ratios, q)
			}
		}
	}
}

// ratio is a claim's value at a point; false if the point has not what it is about.
func (r *report) ratio(c testCase, p point, l claim) (q ratio, ok bool) {
	at := label(c, p)
	ours := r.find(c.Name, at, l.Ours)
	if ours == nil {
		return q, false
	}
	value, ok := ours.Medians[l.Metric]
	if !ok {
		return q, false
	}
	q = ratio{Name: claimName(c, at, l), Value: value, Bar: l.Bar, Clean: ours.Clean}
	var peers []float64
	for _, name := range l.Peers {
		peer := r.find(c.Name, at, name)
		if peer == nil {
			return q, false
		}
		peers = append(peers, peer.Medians[l.Metric])
		q.Clean = q.Clean && peer.Clean
	}
	if len(peers) > 0 {
		q.Value = gain(l.Metric, value, peers)
	}
	q.Met = q.Value >= q.Bar
	return q, true
}

// claimName begins with the case's name and a colon.
func claimName(c testCase, at string, l claim) string {
	name := c.Name + ": " + l.Ours
	if len(l.Peers) > 0 {
		name += " against " + strings.Join(l.Peers, " or ")
	}
	name += ", " + l.Metric
	if at != "" {
		name += " (" + at + ")"
	}
	return name
}

func (r *report) write(path string) error {
	b, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o644)
}

// table prints a case as Markdown: medians, then ratios.
func (r *report) table(w io.Writer, c testCase) {
	columns := r.metrics(c)
	fmt.Fprintf(w, "\n### %s\n\n| | |", c.Name)
	for _, m := range columns {
		fmt.Fprintf(w, " %s |", m)
	}
	fmt.Fprintf(w, "\n|---|---|%s\n", strings.Repeat("---:|", len(columns)))
	for _, p := range c.Points {
		for _, s := range c.Subjects {
			res := r.find(c.Name, label(c, p), s.Name)
			fmt.Fprintf(w, "| %s | %s%s |", res.At, res.Subject, disturbed(res.Clean))
			for _, m := range columns {
				if v, ok := res.Medians[m]; ok {
					fmt.Fprintf(w, " %.4g |", v)
				} else {
					fmt.Fprint(w, " |")
				}
			}
			fmt.Fprintln(w)
		}
	}
	fmt.Fprint(w, "\n| ratio | value | asked for | |\n|---|---:|---:|---|\n")
	for _, q := range r.Ratios {
		if in(c, q.Name) {
			bar, met := "", ""
			if q.Bar > 0 {
				bar, met = fmt.Sprintf("%.4g", q.Bar), map[bool]string{true: "met", false: "**missed**"}[q.Met]
			}
			fmt.Fprintf(w, "| %s%s | %.3g | %s | %s |\n", strings.TrimPrefix(q.Name, c.Name+": "), disturbed(q.Clean), q.Value, bar, met)
		}
	}
}

// disturbed marks what was measured while others used the processors.
func disturbed(clean bool) string {
	if clean {
		return ""
	}
	return " (disturbed)"
}

// metrics are the names of a case's figures, the most telling first.
func (r *report) metrics(c testCase) []string {
	set := map[string]bool{}
	for _, res := range r.Results {
		if res.Case == c.Name {
			for m := range res.Medians {
				set[m] = true
			}
		}
	}
	claimed := func(m string) int {
		if slices.ContainsFunc(c.Claims, func(l claim) bool { return l.Metric == m }) {
			return 0
		}
		return 1
	}
	return slices.SortedFunc(maps.Keys(set), func(a, b string) int {
		if d := claimed(a) - claimed(b); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
}

// in reports whether a ratio's name is one of the case's.
func in(c testCase, name string) bool { return strings.HasPrefix(name, c.Name+":") }

// baseline is the committed file of ratios. They are those of one kind of machine.
type baseline struct {
	Commit  string             `json:"commit"`
	Machine machine            `json:"machine"`
	Ratios  map[string]float64 `json:"ratios"`
}

// readBaseline reads the baseline if it is of this kind of machine.
func readBaseline(path string, here machine) (b baseline, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return b, err
	}
	if err := json.Unmarshal(text, &b); err != nil {
		return b, fmt.Errorf("%s: %w", path, err)
	}
	if b.Machine.CPU != here.CPU || b.Machine.Threads != here.Threads {
		return b, fmt.Errorf("%s is of %q with %d threads, this is %q with %d: its ratios say nothing here; measure there, or begin a new baseline with -update after removing it",
			path, b.Machine.CPU, b.Machine.Threads, here.CPU, here.Threads)
	}
	return b, nil
}

// values are the ratios by name.
func (r *report) values() map[string]float64 {
	v := map[string]float64{}
	for _, q := range r.Ratios {
		v[q.Name] = q.Value
	}
	return v
}

// measured reports whether a ratio is of a case that has results.
func (r *report) measured(name string) bool {
	return slices.ContainsFunc(r.Results, func(res *result) bool { return in(testCase{Name: res.Case}, name) })
}

// compare is the error of -check.
func (r *report) compare(o options) error {
	if !o.check {
		return nil
	}
	b, err := readBaseline(o.baseline, r.Machine)
	if err != nil {
		return err
	}
	if lost := losses(b.Ratios, r.values(), r.measured); len(lost) > 0 {
		return fmt.Errorf("lost against %s:\n%s", b.Commit, strings.Join(lost, "\n"))
	}
	return nil
}

// keep is -update: the ratios of the cases that were measured take the place of the baseline's.
func (r *report) keep(o options) error {
	if !o.update {
		return nil
	}
	b, err := readBaseline(o.baseline, r.Machine)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if i := slices.IndexFunc(r.Ratios, func(q ratio) bool { return !q.Clean }); i >= 0 {
		return fmt.Errorf("the baseline stays as it is: others used the machine during all samples of %q", r.Ratios[i].Name)
	}
	if b.Ratios == nil {
		b.Ratios = map[string]float64{}
	}
	maps.DeleteFunc(b.Ratios, func(name string, _ float64) bool { return r.measured(name) })
	maps.Copy(b.Ratios, r.values())
	b.Commit, b.Machine = r.Commit, r.Machine
	text, err := json.MarshalIndent(b, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(o.baseline, append(text, '\n'), 0o644)
}
