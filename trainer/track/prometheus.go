package track

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Prometheus serves the latest value of every metric at /metrics, in Prometheus's text format, as long as the run goes on.
type Prometheus struct {
	run    Run
	addr   string
	server *http.Server

	mu     sync.Mutex
	step   int
	at     time.Time
	values map[string]float64
}

// NewPrometheus makes the sink of a run, which listens at addr.
func NewPrometheus(run Run, addr string) *Prometheus {
	return &Prometheus{run: run, addr: addr, values: map[string]float64{}}
}

// Begin implements Sink.
func (p *Prometheus) Begin(ctx context.Context) error {
	var listen net.ListenConfig
	l, err := listen.Listen(ctx, "tcp", p.addr)
	if err != nil {
		return fmt.Errorf("serve metrics: %w: set track.prometheus_addr", err)
	}
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: 10 * time.Second}
	go p.server.Serve(l) // until End
	p.addr = l.Addr().String()
	return nil
}

// Addr is where the metrics are served, after Begin.
func (p *Prometheus) Addr() string { return p.addr }

// Send implements Sink.
func (p *Prometheus) Send(_ context.Context, r Record, at time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.step, p.at = r.Step, at
	maps.Copy(p.values, r.Values)
	return nil
}

// End implements Sink.
func (p *Prometheus) End(ctx context.Context, _ End) error {
	return errors.Join(p.server.Shutdown(ctx), p.server.Close())
}

// ServeHTTP implements http.Handler.
func (p *Prometheus) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/metrics" {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	fmt.Fprint(w, p.text())
}

// text is the exposition. A name of Prometheus has letters, digits and _; the label metric has the name as it is, so that two names
// that become one stay two series.
func (p *Prometheus) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	families := map[string][]string{}
	add := func(name string, v float64) {
		family := prometheusName(name)
		families[family] = append(families[family], fmt.Sprintf("%s{run=%s,metric=%s} %s\n", family, label(p.run.Name), label(name), number(v)))
	}
	for _, name := range slices.Sorted(maps.Keys(p.values)) {
		add(name, p.values[name])
	}
	if !p.at.IsZero() {
		add("step", float64(p.step))
		add("logged_timestamp_seconds", float64(p.at.UnixNano())/1e9)
	}
	var b strings.Builder
	for _, family := range slices.Sorted(maps.Keys(families)) {
		fmt.Fprintf(&b, "# TYPE %s gauge\n%s", family, strings.Join(families[family], ""))
	}
	return b.String()
}

func prometheusName(name string) string {
	return "rubicon_" + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, name)
}

func label(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(strings.ToValidUTF8(s, "?")) + `"`
}

func number(v float64) string {
	switch {
	case math.IsInf(v, 1):
		return "+Inf"
	case math.IsInf(v, -1):
		return "-Inf"
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}
