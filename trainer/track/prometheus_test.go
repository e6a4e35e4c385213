package track

import (
	"context"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"
)

// The text is what Prometheus's exposition format 0.0.4 says, written by hand.
func TestPrometheus(t *testing.T) {
	p := NewPrometheus(Run{Name: `a "b" \`}, "127.0.0.1:0")
	if err := p.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := NewPrometheus(Run{}, p.Addr()).Begin(t.Context()); err == nil || !strings.Contains(err.Error(), "track.prometheus_addr") {
		t.Errorf("a second one at %s: %v, want what to set", p.Addr(), err)
	}
	send := func(step int, values map[string]float64) {
		if err := p.Send(t.Context(), Record{step, values}, time.Unix(5, 0)); err != nil {
			t.Fatal(err)
		}
	}
	send(1, map[string]float64{"reward": 0.5, "eval_reward": 1, "x/y": 2, "x_y": math.Inf(1)})
	send(2, map[string]float64{"reward": 0.75, "kl": math.NaN()})
	get := func(path string) (int, string) {
		r, err := http.Get("http://" + p.Addr() + path)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return r.StatusCode, string(b)
	}
	want := `# TYPE rubicon_eval_reward gauge
rubicon_eval_reward{run="a \"b\" \\",metric="eval_reward"} 1
# TYPE rubicon_kl gauge
rubicon_kl{run="a \"b\" \\",metric="kl"} NaN
# TYPE rubicon_logged_timestamp_seconds gauge
rubicon_logged_timestamp_seconds{run="a \"b\" \\",metric="logged_timestamp_seconds"} 5
# TYPE rubicon_reward gauge
rubicon_reward{run="a \"b\" \\",metric="reward"} 0.75
# TYPE rubicon_step gauge
rubicon_step{run="a \"b\" \\",metric="step"} 2
# TYPE rubicon_x_y gauge
rubicon_x_y{run="a \"b\" \\",metric="x/y"} 2
rubicon_x_y{run="a \"b\" \\",metric="x_y"} +Inf
`
	if code, got := get("/metrics"); code != http.StatusOK || got != want {
		t.Errorf("%d\n%s\nwant\n%s", code, got, want)
	}
	if code, _ := get("/"); code != http.StatusNotFound {
		t.Errorf("/ gives %d, want not found", code)
	}
	if err := p.End(context.Background(), End{}); err != nil {
		t.Fatal(err)
	}
	if _, err := http.Get("http://" + p.Addr() + "/metrics"); err == nil {
		t.Error("it is served after the end")
	}
}
