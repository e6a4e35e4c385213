package track

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// fakeClient is a package wandb that writes down what it is told, or fails as WANDB_FAKE says. scripts/trackers has the real one.
const fakeClient = `
import json, os

class Run:
    def __init__(self, **args):
        self.out = open(os.environ["WANDB_OUT"], "a")
        self.note("init", **args)
    def note(self, call, **args):
        print(json.dumps({"call": call, **args}), file=self.out, flush=True)
    def define_metric(self, name, **args):
        pass
    def log(self, values):
        self.note("log", values=values)
    def save(self, path, base_path, policy):
        self.note("save", path=os.path.relpath(path, base_path))
    def finish(self, exit_code):
        self.note("finish", exit_code=exit_code)

def init(**args):
    if os.environ.get("WANDB_FAKE") == "fails":
        raise RuntimeError("No API key configured")
    return Run(**args)
`

// python is one that has the fake client, and the file that it writes.
func python(t *testing.T) (path, out string) {
	t.Helper()
	path, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	packages := t.TempDir()
	if err := os.WriteFile(filepath.Join(packages, "wandb.py"), []byte(fakeClient), 0o644); err != nil {
		t.Fatal(err)
	}
	out = filepath.Join(t.TempDir(), "out")
	t.Setenv("PYTHONPATH", packages)
	t.Setenv("WANDB_OUT", out)
	return path, out
}

// drive makes a short run with the sink, and returns the errors of its lines and its end.
func drive(t *testing.T, w *Wandb) (lines []error, end error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := w.Begin(ctx); err != nil {
		t.Fatal(err)
	}
	for step := range 3 {
		lines = append(lines, w.Send(ctx, Record{step, map[string]float64{"reward": 0.5, "kl": math.NaN()}}, time.Unix(7, 5e8)))
	}
	config := filepath.Join(w.run.Dir, "config.yaml")
	if err := os.WriteFile(config, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	return lines, w.End(ctx, End{Failed, map[string]string{"config.yaml": config, "elsewhere": os.Args[0]}})
}

func TestWandb(t *testing.T) {
	py, out := python(t)
	w := NewWandb(Run{Name: "first", Project: "rubicon", Dir: t.TempDir(), Config: map[string]string{"seed": "1"}}, py, "id1")
	lines, end := drive(t, w)
	for _, err := range append(lines, end) {
		if err != nil {
			t.Fatal(err)
		}
	}
	check := func() {
		t.Helper()
		b, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{`{"call": "init", "dir": "` + w.path("") + `", "resume": "allow", "config": {"seed": "1"}, "id": "id1", "name": "first", "project": "rubicon"}`,
			`{"call": "log", "values": {"reward": 0.5, "global_step": 0, "_timestamp": 7.5}}`,
			`{"call": "log", "values": {"reward": 0.5, "global_step": 1, "_timestamp": 7.5}}`,
			`{"call": "log", "values": {"reward": 0.5, "global_step": 2, "_timestamp": 7.5}}`,
			`{"call": "save", "path": "config.yaml"}`, `{"call": "finish", "exit_code": 1}`, ""}
		if got := string(b); got != strings.Join(want, "\n") {
			t.Errorf("the client was told\n%s\nwant\n%s", got, strings.Join(want, "\n"))
		}
	}
	check()

	// The lines that are kept say the same later.
	if err := os.Remove(out); err != nil {
		t.Fatal(err)
	}
	kept, err := os.Open(w.path("wandb.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	later := exec.Command(py, w.path(wandbScriptName))
	later.Stdin = kept
	if said, err := later.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	check()
}

// Without the client, or with one that fails, every line is an error that says what to do, and every line is kept.
func TestWandbWithoutClient(t *testing.T) {
	py, _ := python(t)
	t.Run("missing", func(t *testing.T) {
		t.Setenv("PYTHONPATH", "")
		if exec.Command(py, "-c", "import wandb").Run() == nil {
			t.Skip("this python has the real client")
		}
		w := NewWandb(Run{Name: "first", Dir: t.TempDir()}, py, "id1")
		lines, _ := drive(t, w)
		checkLost(t, w, lines[len(lines)-1], "has no package wandb")
	})
	t.Run("fails", func(t *testing.T) {
		t.Setenv("WANDB_FAKE", "fails")
		w := NewWandb(Run{Name: "first", Dir: t.TempDir()}, py, "id1")
		_, end := drive(t, w) // a line may come before the client has failed, the end may not
		checkLost(t, w, end, "wandb.log")
	})
}

func checkLost(t *testing.T, w *Wandb, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "wandb.jsonl") {
		t.Errorf("%v, want %q and where the lines are", err, want)
	}
	b, err := os.ReadFile(w.path("wandb.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	kept := 0
	for line := range strings.Lines(string(b)) {
		if !json.Valid([]byte(line)) {
			t.Errorf("kept %q", line)
		}
		kept++
	}
	if kept != 5 {
		t.Errorf("kept %d lines, want a beginning, three of metrics and an end", kept)
	}
}
