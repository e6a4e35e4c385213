package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rubicon-rl/rubicon/internal/embedded"
	"github.com/rubicon-rl/rubicon/rewards/criteria"
	"github.com/rubicon-rl/rubicon/trainer/track"
)

// courses writes DIR/NAME/metrics.jsonl for each run: the scores of the answers of every step, of the held-out ones with
// eval_ before their names, and the version of the rubric.
func courses(dir string, runs []string) error {
	for _, run := range runs {
		records, err := courseOf(run)
		if err == nil {
			err = writeCourse(filepath.Join(dir, filepath.Base(run)), records)
		}
		if err != nil {
			return fmt.Errorf("run %s: %w", run, err)
		}
	}
	return nil
}

func courseOf(run string) (records []track.Record, err error) {
	versions, err := versionsOf(run)
	if err != nil {
		return nil, err
	}
	for step, last := 0, 0; step <= last+1; step++ {
		values := map[string]float64{}
		for prefix, file := range map[string]string{"": "completions", "eval_": "eval"} {
			path := filepath.Join(run, file, fmt.Sprintf("step_%d.jsonl", step))
			if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err := addScores(values, prefix, path); err != nil {
				return nil, err
			}
			last = step
		}
		if len(values) == 0 {
			continue
		}
		if v := versions(step); v > 0 {
			values["version"] = float64(v)
		}
		records = append(records, track.Record{Step: step, Values: values})
	}
	return records, nil
}

// addScores adds those of the answers in a file, training answers or held-out ones.
func addScores(values map[string]float64, prefix, path string) error {
	name := "train"
	if prefix != "" {
		name = "eval"
	}
	tasks, err := embedded.Path(embedded.Scheme + "quickstart/" + name + ".jsonl")
	if err != nil {
		return err
	}
	groups, err := readGroups(path, tasks)
	if err != nil {
		return err
	}
	s, err := measure(groups)
	if err != nil {
		return err
	}
	for name, v := range map[string]float64{"gaming": s.gaming, "full": s.full, "quality": s.quality} {
		values[prefix+name] = v
	}
	return nil
}

// versionsOf gives the version of the global rubric that a step was scored by, from the run's log; 0: there is none.
func versionsOf(run string) (func(step int) int, error) {
	events, err := criteria.ReadLog(criteria.LogPath(run))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return func(step int) int {
		version := 0
		for _, e := range events {
			if e.Scope == criteria.Global && e.Step < step { // the log counts the steps made, the files the steps from 1
				version = e.Version
			}
		}
		return version
	}, nil
}

func writeCourse(dir string, records []track.Record) (err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	out, err := track.OpenJSONL(filepath.Join(dir, "metrics.jsonl"), 0)
	if err != nil {
		return err
	}
	for _, r := range records {
		if err := out.Log(r); err != nil {
			return errors.Join(err, out.Close())
		}
	}
	return out.Close()
}
