package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// stageClock is the wall clock of a stage of an ARCO run, without evaluations and checkpoints.
type stageClock struct {
	Steps   float64 `json:"steps"`
	Seconds float64 `json:"seconds"`
	Reward  float64 `json:"reward"` // seconds of it in which the rubric model wrote and scored
	Learn   float64 `json:"learn"`  // and learned
}

// stageClocks adds up what a run's metrics.jsonl says of its steps' time: sparse and dense. A line that is the mean of steps of both is shared out
// by their numbers. nil: the run has no such file.
func stageClocks(run string) (map[string]*stageClock, error) {
	f, err := os.Open(filepath.Join(run, "metrics.jsonl"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	clocks := map[string]*stageClock{"sparse": {}, "dense": {}}
	last := 0.0
	for d := json.NewDecoder(f); ; {
		var line map[string]any
		if err := d.Decode(&line); errors.Is(err, io.EOF) {
			return clocks, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name(), err)
		}
		value := func(name string) float64 { x, _ := line[name].(float64); return x }
		dense, trained := line["arco/dense"].(float64)
		if !trained { // an evaluation
			continue
		}
		steps := value("step") - last
		last = value("step")
		for name, share := range map[string]float64{"sparse": 1 - dense, "dense": dense} {
			c, n := clocks[name], steps*share
			c.Steps += n
			c.Seconds += n * value("step_time")
			c.Reward += n * value("timing_s/reward")
			c.Learn += n * value("timing_s/learn")
		}
	}
}

// printClocks writes them as a table.
func printClocks(out io.Writer, clocks map[string]*stageClock) {
	if clocks == nil {
		return
	}
	fmt.Fprint(out, "\n| stage | steps | seconds | seconds a step | rubric model scores | learns |\n|---|---|---|---|---|---|\n")
	for _, name := range []string{"sparse", "dense"} {
		if c := clocks[name]; c.Steps > 0 {
			fmt.Fprintf(out, "| %s | %.4g | %.4g | %.3g | %.3g | %.3g |\n", name, c.Steps, c.Seconds, c.Seconds/c.Steps, c.Reward/c.Steps, c.Learn/c.Steps)
		}
	}
}
