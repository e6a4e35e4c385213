package board

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// runFolder makes a run with the given metrics.jsonl.
func runFolder(t *testing.T, metrics string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "metrics.jsonl"), metrics)
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func serve(t *testing.T, dir, token string) http.Handler {
	t.Helper()
	run, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	h, err := Handler([]*Run{run}, token)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func ask(h http.Handler, host, path string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", "http://"+host+path, nil)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

type answer struct {
	Epoch, Count int
	Whole        bool
	Steps        []int
	Series       map[string]struct{ Low, Mean, High []*float64 }
}

func metricsOf(t *testing.T, h http.Handler, query string) answer {
	t.Helper()
	w := ask(h, "localhost", "/api/metrics?run=0&"+query)
	var a answer
	if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil {
		t.Fatalf("%v: %s", err, w.Body)
	}
	return a
}

func TestMetricsAreThoseOfTheFile(t *testing.T) {
	dir := runFolder(t, `{"step": 1, "reward": 0.1, "kl": null}`+"\n"+`{"step": 2, "reward": 0.30000000000000004}`+"\n"+`{"step": 3, "rew`)
	h := serve(t, dir, "")
	a := metricsOf(t, h, "epoch=-1")
	reward := a.Series["reward"]
	if a.Count != 2 || !a.Whole || fmt.Sprint(a.Steps) != "[1 2]" {
		t.Errorf("got %+v, want the two records before the torn line", a)
	}
	if *reward.Mean[0] != 0.1 || *reward.Mean[1] != 0.30000000000000004 || *reward.Low[1] != *reward.High[1] {
		t.Error("the values are not those of the file")
	}
	if _, ok := a.Series["kl"]; ok {
		t.Error("a metric that is null everywhere has a series")
	}

	write(t, filepath.Join(dir, "metrics.jsonl"), `{"step": 1, "reward": 0.1, "kl": null}`+"\n"+`{"step": 2, "reward": 0.30000000000000004}`+"\n"+`{"step": 3, "reward": 7}`+"\n")
	if a := metricsOf(t, h, fmt.Sprintf("epoch=%d&after=2", a.Epoch)); a.Whole || fmt.Sprint(a.Steps) != "[3]" || *a.Series["reward"].Mean[0] != 7 {
		t.Errorf("got %+v, want only the line that was completed", a)
	}

	write(t, filepath.Join(dir, "metrics.jsonl"), `{"step": 1, "reward": 0.1, "kl": null}`+"\n"+`{"step": 2, "reward": 5}`+"\n")
	if b := metricsOf(t, h, fmt.Sprintf("epoch=%d&after=3", a.Epoch)); !b.Whole || b.Epoch == a.Epoch || *b.Series["reward"].Mean[1] != 5 {
		t.Errorf("got %+v, want the file that a resumed run has cut, from its beginning", b)
	}
}

func TestLongRunsComeInBuckets(t *testing.T) {
	var b strings.Builder
	for i := 1; i <= 50000; i++ {
		v := 1.0
		if i == 31234 { // one spike must not get lost
			v = 9
		}
		fmt.Fprintf(&b, `{"step": %d, "reward": %v}`+"\n", i, v)
	}
	a := metricsOf(t, serve(t, runFolder(t, b.String()), ""), "epoch=-1")
	if len(a.Steps) != buckets || a.Steps[buckets-1] != 50000 || a.Count != 50000 {
		t.Fatalf("%d buckets up to step %d of %d records", len(a.Steps), a.Steps[len(a.Steps)-1], a.Count)
	}
	spikes := 0
	for i, high := range a.Series["reward"].High {
		if *high == 9 {
			spikes++
			// 62 or 63 records a bucket, all of them 1 but the spike
			if mean := *a.Series["reward"].Mean[i]; mean < 1+8/63.5 || mean > 1+8/61.5 {
				t.Errorf("mean of the spike's bucket is %v", mean)
			}
		}
		if *a.Series["reward"].Low[i] != 1 {
			t.Errorf("bucket %d has the least value %v, want 1", i, *a.Series["reward"].Low[i])
		}
	}
	if spikes != 1 {
		t.Errorf("the spike is in %d buckets", spikes)
	}
}

func TestCompletionsAndPaths(t *testing.T) {
	dir := runFolder(t, "")
	write(t, filepath.Join(dir, "completions", "step_3.jsonl"), `{"completion": "<script>"}`+"\n"+`{"compl`)
	write(t, filepath.Join(dir, "secret.jsonl"), "{}\n")
	h := serve(t, dir, "")
	w := ask(h, "localhost", "/api/completions?run=0&step=3")
	var lines []struct{ Completion string }
	if err := json.Unmarshal(w.Body.Bytes(), &lines); err != nil || len(lines) != 1 || lines[0].Completion != "<script>" {
		t.Errorf("got %s, %v", w.Body, err)
	}
	if strings.Contains(w.Body.String(), "<script>") || !strings.HasPrefix(w.Header().Get("Content-Type"), "application/json") {
		t.Errorf("the answer holds markup: %s", w.Body)
	}
	for path, code := range map[string]int{
		"/api/completions?run=0&step=4":            404,
		"/api/completions?run=0&step=../../secret": 400,
		"/api/completions?run=1&step=3":            400,
		"/api/metrics?run=-1":                      400,
		"/../board.go":                             404,
		"/%2e%2e/server.go":                        404,
	} {
		if w := ask(h, "localhost", path); w.Code != code && !(code == 404 && w.Code == 307) {
			t.Errorf("%s: status %d, want %d", path, w.Code, code)
		}
	}
}

func TestRubricEvents(t *testing.T) {
	dir := runFolder(t, "")
	h := serve(t, dir, "")
	if w := ask(h, "localhost", "/api/rubric?run=0"); w.Body.String() != "[]" {
		t.Errorf("a run without a rubric answers %s", w.Body)
	}
	write(t, filepath.Join(dir, "rubrics", "log.jsonl"), `{"step":0,"kind":"init"}`+"\n"+`{"step":5`)
	if w := ask(h, "localhost", "/api/rubric?run=0"); w.Body.String() != `[{"step":0,"kind":"init"}]` {
		t.Errorf("got %s, want the event before the torn line", w.Body)
	}
}

func TestWhoMayAsk(t *testing.T) {
	dir := runFolder(t, "")
	open, closed := serve(t, dir, ""), serve(t, dir, "sesame")
	for _, c := range []struct {
		h          http.Handler
		host, path string
		code       int
	}{
		{open, "127.0.0.1:7700", "/api/runs", 200},
		{open, "[::1]:7700", "/", 200},
		{open, "evil.example", "/api/runs", 403}, // a foreign name that was bound to 127.0.0.1
		{closed, "host.example", "/api/runs", 401},
		{closed, "host.example", "/api/runs?token=open", 401},
		{closed, "host.example", "/api/runs?token=sesame", 200},
	} {
		w := ask(c.h, c.host, c.path)
		if w.Code != c.code || !strings.Contains(w.Header().Get("Content-Security-Policy"), "script-src 'self'") {
			t.Errorf("%s%s: status %d, want %d; headers %v", c.host, c.path, w.Code, c.code, w.Header())
		}
	}
	for address, refused := range map[string]bool{":7700": false, "0.0.0.0:7700": true, "127.0.0.1:0": false, "localhost:1": false, "[::1]:7700": false} {
		if _, err := Address(address, ""); (err != nil) != refused {
			t.Errorf("%s without a token: %v", address, err)
		}
		if _, err := Address(address, "sesame"); err != nil {
			t.Errorf("%s with a token: %v", address, err)
		}
	}
	if got, err := Address(":7700", ""); got != "127.0.0.1:7700" || err != nil {
		t.Errorf(":7700 without a token is %s, %v", got, err)
	}
}

// What is wrong with a run stands in the answer, and nothing when nothing is.
func TestHealth(t *testing.T) {
	calm := runFolder(t, `{"step": 1, "reward": 0.5, "kl": 0.01}`+"\n")
	if got := ask(serve(t, calm, ""), "localhost", "/api/health").Body.String(); strings.TrimSpace(got) != "[]" {
		t.Errorf("a calm run: %s", got)
	}
	var lines strings.Builder
	for step := 1; step <= 20; step++ {
		fmt.Fprintf(&lines, `{"step": %d, "num_tokens": 9, "reward": 0.5, "kl": 2}`+"\n", step)
	}
	if got := ask(serve(t, runFolder(t, lines.String()), ""), "localhost", "/api/health").Body.String(); !strings.Contains(got, "nats a token away from the reference") {
		t.Errorf("a run that is far from its reference: %s", got)
	}
}
