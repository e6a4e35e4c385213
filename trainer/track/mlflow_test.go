package track

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tracking is a tracking server with one run, as far as the sink uses one; scripts/trackers has a real one.
type tracking struct {
	t       *testing.T
	known   bool // the experiment is there
	params  map[string]string
	metrics []string // key step value timestamp
	files   map[string]string
	states  []string
	created int
	auth    string
}

func (s *tracking) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.auth = r.Header.Get("Authorization")
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Error(err)
	}
	if name, ok := strings.CutPrefix(r.URL.Path, "/api/2.0/mlflow-artifacts/artifacts/7/r1/artifacts/"); ok && r.Method == http.MethodPut {
		s.files[name] = string(body)
		return
	}
	var in struct {
		Name, Status string
		RunID        string `json:"run_id"`
		ExperimentID string `json:"experiment_id"`
		RunName      string `json:"run_name"`
		Params       []struct{ Key, Value string }
		Metrics      []struct {
			Key       string
			Value     float64
			Step      int
			Timestamp int64
		}
	}
	if len(body) > 0 {
		if err := json.Unmarshal(body, &in); err != nil {
			s.t.Error(err)
		}
	}
	const info = `{"run":{"info":{"run_id":"r1","artifact_uri":"mlflow-artifacts:/7/r1/artifacts"}}}`
	switch call := strings.TrimPrefix(r.URL.Path, "/api/2.0/mlflow/"); call {
	case "experiments/get-by-name":
		if !s.known {
			http.Error(w, `{"error_code":"RESOURCE_DOES_NOT_EXIST"}`, http.StatusNotFound)
			return
		}
		fmt.Fprint(w, `{"experiment":{"experiment_id":"7"}}`)
	case "experiments/create":
		s.known = true
		fmt.Fprint(w, `{"experiment_id":"7"}`)
	case "runs/create":
		s.created++
		if in.ExperimentID != "7" || in.RunName != "first" {
			s.t.Errorf("created %s", body)
		}
		fmt.Fprint(w, info)
	case "runs/get":
		fmt.Fprint(w, info)
	case "runs/update":
		s.states = append(s.states, in.Status)
	case "runs/log-batch":
		if len(in.Params) > 100 || len(in.Metrics) > 1000 {
			http.Error(w, "too many", http.StatusBadRequest)
			return
		}
		for _, p := range in.Params {
			s.params[p.Key] = p.Value
		}
		for _, m := range in.Metrics {
			s.metrics = append(s.metrics, fmt.Sprint(m.Key, " ", m.Step, " ", m.Value, " ", m.Timestamp))
		}
	default:
		s.t.Errorf("unexpected %s", call)
	}
}

func TestMLflow(t *testing.T) {
	s := &tracking{t: t, params: map[string]string{}, files: map[string]string{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	run := Run{Name: "first", Project: "rubicon", Dir: t.TempDir(), Config: map[string]string{"long": strings.Repeat("x", 501)}}
	for i := range 150 {
		run.Config[fmt.Sprint("key", i)] = "v"
	}
	env := map[string]string{"MLFLOW_TRACKING_TOKEN": "secret"}
	file := filepath.Join(run.Dir, "config.yaml")
	if err := os.WriteFile(file, []byte("seed: 1"), 0o644); err != nil {
		t.Fatal(err)
	}
	drive := func(step int, status Status) {
		t.Helper()
		run.Step = step
		m := NewMLflow(run, server.URL+"/", func(k string) string { return env[k] }, clock)
		if err := m.Begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := m.Send(t.Context(), Record{step + 1, map[string]float64{"reward": 0.5, "kl": math.NaN(), "criteria/a?b/mean": 1}}, clock()); err != nil {
			t.Fatal(err)
		}
		files := map[string]string{"config.yaml": file, "adapter/weights": file, "absent": filepath.Join(run.Dir, "absent")}
		if err := m.End(t.Context(), End{status, files}); err != nil {
			t.Fatal(err)
		}
	}
	drive(0, Interrupted)
	drive(4, Finished)
	if want := []string{"KILLED", "RUNNING", "FINISHED"}; s.created != 1 || !slices.Equal(s.states, want) {
		t.Errorf("created %d runs with states %v, want one with %v", s.created, s.states, want)
	}
	if len(s.params) != 151 || len([]rune(s.params["long"])) != 500 {
		t.Errorf("%d parameters, the long one with %d characters", len(s.params), len(s.params["long"]))
	}
	want := []string{"reward 1 0.5 100000", "criteria/a_b/mean 1 1 100000", "reward 5 0.5 100000", "criteria/a_b/mean 5 1 100000"}
	if !slices.Equal(s.metrics, want) {
		t.Errorf("metrics %q, want %q", s.metrics, want)
	}
	if len(s.files) != 2 || s.files["adapter/weights"] != "seed: 1" {
		t.Errorf("artifacts %v", s.files)
	}
	if s.auth != "Bearer secret" {
		t.Errorf("authorization %q", s.auth)
	}
}

func TestMLflowRefusals(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "who are you?", http.StatusUnauthorized)
	}))
	t.Cleanup(server.Close)
	none := func(string) string { return "" }
	err := NewMLflow(Run{Project: "p"}, server.URL, none, clock).Begin(t.Context())
	if err == nil || !strings.Contains(err.Error(), "401 Unauthorized: who are you?") {
		t.Errorf("Begin = %v, want what the server says", err)
	}
	m := NewMLflow(Run{}, server.URL, none, clock)
	m.artifacts = "s3://bucket/x"
	if err := m.upload(t.Context(), "a", "b"); err == nil || !strings.Contains(err.Error(), "--serve-artifacts") {
		t.Errorf("upload to S3 = %v, want what to set", err)
	}
}
