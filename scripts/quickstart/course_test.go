package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rubicon-rl/rubicon/trainer/track"
)

// The answers of a step are scored by the tasks of their data, and have the version of the rubric that scored them: the log counts
// steps made, so that an update of step 1 is in force for the second step.
func TestCourse(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	run, out := filepath.Join(t.TempDir(), "run"), t.TempDir()
	for name, text := range map[string]string{
		// train-01 is: Name exactly 2 clothes. Use semicolons, not commas. Start with "Sure:" End with "That is all."
		"completions/step_1.jsonl": `{"id":"train-01","completion":"Sure: Shirt; coat. That is all."}` + "\n" + `{"id":"train-01","completion":"Shirt; shirt; shirt."}` + "\n",
		"completions/step_2.jsonl": `{"id":"train-01","completion":"Sure: Shirt; coat. That is all."}` + "\n",
		"eval/step_0.jsonl":        `{"id":"eval-00","completion":"very very very"}` + "\n",
		"rubrics/log.jsonl": `{"step":0,"scope":"global","version":1,"kind":"init","set":{"scope":"global","version":1,"criteria":[{"id":"a","text":"A.","weight":1}]}}` + "\n" +
			`{"step":1,"scope":"global","version":2,"kind":"update","set":{"scope":"global","version":2,"criteria":[{"id":"a","text":"A.","weight":2}]}}` + "\n",
	} {
		path := filepath.Join(run, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := courses(out, []string{run}); err != nil {
		t.Fatal(err)
	}
	records, err := track.ReadJSONL(filepath.Join(out, "run", "metrics.jsonl"))
	if err != nil || len(records) != 3 {
		t.Fatalf("%d records, %v", len(records), err)
	}
	for i, want := range []map[string]float64{
		{"eval_gaming": 1}, {"gaming": 0.5, "quality": 0.9, "version": 1}, {"gaming": 0, "quality": 1, "full": 1, "version": 2}, // a repetition costs 1 of 5
	} {
		for name, v := range want {
			if got, there := records[i].Values[name]; !there || got != v {
				t.Errorf("record %d: %s %v, want %v", i, name, got, v)
			}
		}
	}
	if _, there := records[0].Values["version"]; there || records[0].Step != 0 || records[2].Step != 2 {
		t.Errorf("%+v", records)
	}
}
