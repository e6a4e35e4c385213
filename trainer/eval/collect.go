package eval

import (
	"bytes"
	"cmp"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
)

// Collect sums up the measurements of a benchmark whose files lie in a folder, by step: those that are complete and whose setting differs from like
// in policy and step alone.
func Collect(b Benchmark, like Setting, folder string) ([]*Result, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.jsonl"))
	if err != nil {
		return nil, err
	}
	order := map[string]int{}
	for i, it := range b.Items() {
		order[it.Key] = i
	}
	var out []*Result
	for _, file := range files {
		s, records, err := Read(file)
		if err != nil {
			return nil, err
		}
		if !same(s, like) || !complete(s, records) {
			continue
		}
		slices.SortFunc(records, func(x, y Record) int {
			return cmp.Or(x.Repeat-y.Repeat, order[x.Key]-order[y.Key])
		})
		r := Summarise(b, s, records)
		r.Label = strings.TrimSuffix(filepath.Base(file), ".jsonl")
		out = append(out, r)
	}
	slices.SortStableFunc(out, func(x, y *Result) int { return x.Setting.Step - y.Setting.Step })
	return out, nil
}

// same tells whether two settings differ in policy and step at most.
func same(x, y Setting) bool {
	x.Policy, x.Step = y.Policy, y.Step
	a, errA := json.Marshal(x) // as they stand in the files, where a list that is nil and an empty one are the same
	b, errB := json.Marshal(y)
	return errA == nil && errB == nil && bytes.Equal(a, b)
}

// complete tells whether every question was answered and its judge asked.
func complete(s Setting, records []Record) bool {
	return len(records) == s.Items*s.Repeats && !slices.ContainsFunc(records, func(r Record) bool { return r.Verdict.Unscorable == notScored })
}
