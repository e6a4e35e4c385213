package report

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/rubicon-rl/rubicon/internal/plot"
	"github.com/rubicon-rl/rubicon/rewards/criteria"
	"github.com/rubicon-rl/rubicon/trainer/eval"
	"github.com/rubicon-rl/rubicon/trainer/health"
)

func number(v float64) string { return fmt.Sprintf("%.4g", v) }

// overview is a line for each run.
func overview(runs []*Run) (section, error) {
	t := block{head: []string{"run", "steps", "reward, first to last", "held out, first to last", "length, first to last"}}
	for _, r := range runs {
		row := []string{r.Name, fmt.Sprint(r.steps())}
		for _, metric := range []string{"reward", "eval_reward", "completions/mean_length"} {
			cell := ""
			if first, last, ok := r.firstLast(metric); ok {
				cell = number(first) + " to " + number(last)
			}
			row = append(row, cell)
		}
		t.rows = append(t.rows, row)
	}
	return section{"Runs", []block{t}}, nil
}

// settings are the keys of the configurations: of several runs, those that differ.
func settings(runs []*Run) (section, error) {
	var all []map[string]string
	keys := map[string]bool{}
	for _, r := range runs {
		flat, err := readConfig(filepath.Join(r.Dir, "config.yaml"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return section{}, err
		}
		all = append(all, flat)
		for k := range flat {
			keys[k] = true
		}
	}
	t := block{head: []string{"key"}}
	for _, r := range runs {
		t.head = append(t.head, r.Name)
	}
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		row, same := []string{k}, len(runs) > 1
		for _, flat := range all {
			row = append(row, flat[k])
			same = same && flat[k] == all[0][k]
		}
		if !same {
			t.rows = append(t.rows, row)
		}
	}
	s := section{title: "Settings"}
	if len(runs) > 1 {
		s.title = "Settings that differ"
	}
	if len(t.rows) > 0 {
		s.blocks = []block{t}
	}
	return s, nil
}

// curves are pictures of the metrics over the steps, all runs in each.
func curves(runs []*Run) (section, error) {
	s := section{title: "Curves"}
	for _, metric := range curveNames {
		var lines []plot.Line
		for _, r := range runs {
			line := plot.Line{Name: r.Name}
			for _, rec := range r.Records {
				if v, ok := rec.Values[metric]; ok && !math.IsNaN(v) && !math.IsInf(v, 0) {
					line.Points = append(line.Points, plot.Point{X: float64(rec.Step), Y: v, Low: v, High: v})
				}
			}
			if len(line.Points) > 1 {
				lines = append(lines, line)
			}
		}
		if len(lines) > 0 {
			s.blocks = append(s.blocks, block{text: metric, name: strings.ReplaceAll(metric, "/", "-"), figure: plot.SVG(metric, "", lines)})
		}
	}
	return s, nil
}

// evaluations are the benchmarks that rubicon eval measured, with their intervals.
func evaluations(runs []*Run) (section, error) {
	t := block{head: []string{"run", "benchmark", "of", "metric", "value", "95 % interval", "answers", "unscorable"}}
	for _, r := range runs {
		files, err := filepath.Glob(filepath.Join(r.Dir, "eval", "*", "summary.json"))
		if err != nil {
			return section{}, err
		}
		for _, file := range files {
			var all []eval.Result
			raw, err := os.ReadFile(file)
			if err == nil {
				err = json.Unmarshal(raw, &all)
			}
			if err != nil {
				return section{}, fmt.Errorf("read %s: %w", file, err)
			}
			for _, m := range all {
				for _, f := range m.Metrics {
					t.rows = append(t.rows, []string{r.Name, m.Setting.Benchmark, m.Label, f.Name, number(f.Value),
						number(f.Low) + " to " + number(f.High), fmt.Sprint(m.Answers), fmt.Sprint(m.Unscorable)})
				}
			}
		}
	}
	if len(t.rows) == 0 {
		return section{}, nil
	}
	return section{"Evaluation", []block{t}}, nil
}

// mostRows bounds a table of what a run may have thousands of.
const mostRows = 200

// rubrics are the operations on each run's rubric, and the one that it ended with.
func rubrics(runs []*Run) (section, error) {
	s := section{title: "Rubric"}
	for _, r := range runs {
		events, err := criteria.ReadLog(criteria.LogPath(r.Dir))
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, criteria.ErrTorn) {
			return s, err
		}
		ops := block{head: []string{"run", "step", "scope", "version", "operation", "before", "after", "reason"}}
		last := map[string]criteria.Event{}
		left := 0
		for _, e := range events {
			if e.Set != nil {
				last[e.Scope] = e
			}
			for _, o := range e.Ops {
				if len(ops.rows) == mostRows {
					left++
					continue
				}
				ops.rows = append(ops.rows, []string{r.Name, fmt.Sprint(e.Step), e.Scope, fmt.Sprint(e.Version), o.Kind, strings.Join(o.Before, ", "), strings.Join(o.After, ", "), o.Reason})
			}
		}
		if len(ops.rows) > 0 {
			s.blocks = append(s.blocks, ops)
		}
		if left > 0 {
			s.blocks = append(s.blocks, block{text: fmt.Sprintf("%d more operations of %s are in its rubrics/log.jsonl.", left, r.Name)})
		}
		s.blocks = append(s.blocks, finalSets(r.Name, last)...)
	}
	return s, nil
}

// finalSets are the rubrics that a run ended with, a table each.
func finalSets(run string, last map[string]criteria.Event) []block {
	t := block{head: []string{"run", "scope", "version", "criterion", "weight", "text"}}
	for _, scope := range slices.Sorted(maps.Keys(last)) {
		for _, c := range last[scope].Set.List() {
			if len(t.rows) < mostRows {
				t.rows = append(t.rows, []string{run, scope, fmt.Sprint(last[scope].Version), c.ID, number(c.Weight), c.Text})
			}
		}
	}
	if len(t.rows) == 0 {
		return nil
	}
	return []block{t}
}

// costs are seconds by phase, tokens, and what the judge took.
func costs(runs []*Run) (section, error) {
	names := map[string]bool{}
	for _, r := range runs {
		for _, rec := range r.Records {
			for name := range rec.Values {
				if strings.HasPrefix(name, "timing_s/") || name == "judge/calls" || name == "judge/cost" || name == "judge/prompt_tokens" || name == "judge/completion_tokens" {
					names[name] = true
				}
			}
		}
	}
	t := block{head: []string{"of the whole run"}}
	for _, r := range runs {
		t.head = append(t.head, r.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		row := []string{name}
		for _, r := range runs {
			row = append(row, number(r.sum(name)))
		}
		t.rows = append(t.rows, row)
	}
	if len(t.rows) == 0 {
		return section{}, nil
	}
	return section{"Time and cost", []block{t}}, nil
}

// diagnoses is what was wrong with the runs.
func diagnoses(runs []*Run) (section, error) {
	t := block{head: []string{"run", "what was wrong"}}
	for _, r := range runs {
		for _, f := range health.Diagnose(r.Records) {
			t.rows = append(t.rows, []string{r.Name, f.String()})
		}
	}
	if len(t.rows) == 0 {
		return section{"Health", []block{{text: "Nothing was wrong."}}}, nil
	}
	return section{"Health", []block{t}}, nil
}

// sampled is what a report reads of a completion.
type sampled struct {
	Prompt, Completion string
	Rewards            map[string]*float64
}

// total is the sum of what the reward functions gave; NaN if none could score.
func (c *sampled) total() float64 {
	sum, n := 0.0, 0
	for _, v := range c.Rewards {
		if v != nil {
			sum, n = sum+*v, n+1
		}
	}
	if n == 0 {
		return math.NaN()
	}
	return sum
}

// examples are the best and the worst completion of the first and the last step.
func examples(runs []*Run) (section, error) {
	t := block{head: []string{"run", "step", "reward", "prompt", "completion"}}
	for _, r := range runs {
		steps := r.Steps()
		if len(steps) == 0 {
			continue
		}
		for _, step := range slices.Compact([]int{steps[0], steps[len(steps)-1]}) {
			lines, err := r.Completions(step)
			if err != nil {
				return section{}, err
			}
			var all []sampled
			for _, line := range lines {
				var c sampled
				if err := json.Unmarshal(line, &c); err != nil {
					return section{}, fmt.Errorf("completions of step %d of %s: %w", step, r.Name, err)
				}
				if !math.IsNaN(c.total()) {
					all = append(all, c)
				}
			}
			slices.SortStableFunc(all, func(a, b sampled) int { return cmp.Compare(b.total(), a.total()) })
			for _, i := range slices.Compact([]int{0, len(all) - 1}) {
				if i >= 0 && i < len(all) {
					t.rows = append(t.rows, []string{r.Name, fmt.Sprint(step), number(all[i].total()), beginning(all[i].Prompt), beginning(all[i].Completion)})
				}
			}
		}
	}
	if len(t.rows) == 0 {
		return section{}, nil
	}
	return section{"Examples: best and worst of the first and the last step", []block{t}}, nil
}

// longest is how much of a text an example shows, characters.
const longest = 600

func beginning(text string) string {
	if r := []rune(text); len(r) > longest {
		return string(r[:longest]) + " …"
	}
	return text
}

// readConfig is a run's configuration, by the dotted names of its keys.
func readConfig(path string) (map[string]string, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var tree map[string]any
	if err := yaml.Unmarshal(raw, &tree); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	flat := map[string]string{}
	flatten(flat, "", tree)
	return flat, nil
}

func flatten(flat map[string]string, prefix string, v any) {
	if m, ok := v.(map[string]any); ok && len(m) > 0 {
		for k, x := range m {
			flatten(flat, strings.TrimPrefix(prefix+"."+k, "."), x)
		}
		return
	}
	if b, err := json.Marshal(v); err == nil {
		flat[prefix] = strings.Trim(string(b), `"`)
	}
}
