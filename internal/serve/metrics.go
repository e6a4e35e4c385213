package serve

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rubicon-rl/rubicon/policy"
)

// metrics are what /metrics shows, in Prometheus' text format.
type metrics struct {
	mu                         sync.Mutex
	requests                   map[[2]string]int // by endpoint and status
	refusals                   int
	prompt, cached, completion int // tokens
	seconds                    histogram
}

// histogram counts durations.
type histogram struct {
	counts []int
	sum    float64
	n      int
}

// bounds are the upper ends of a histogram's buckets, seconds.
var bounds = []float64{0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300}

func newMetrics() *metrics {
	return &metrics{requests: map[[2]string]int{}, seconds: histogram{counts: make([]int, len(bounds))}}
}

func (m *metrics) request(pattern string, status int, took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, path, ok := strings.Cut(pattern, " ")
	if !ok {
		path = "other"
	}
	m.requests[[2]string{path, fmt.Sprint(status)}]++
	m.seconds.n++
	m.seconds.sum += took.Seconds()
	for i, most := range bounds {
		if took.Seconds() <= most {
			m.seconds.counts[i]++
		}
	}
}

func (m *metrics) refused() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refusals++
}

func (m *metrics) generated(g *generation) {
	if len(g.calls) < len(g.prompts) {
		return // it did not begin
	}
	u := g.usage()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.prompt, m.cached, m.completion = m.prompt+u.PromptTokens, m.cached+u.Details.CachedTokens, m.completion+u.CompletionTokens
}

// showMetrics answers /metrics.
func (s *Server) showMetrics(w http.ResponseWriter, r *http.Request) error {
	load, err := s.engine.load(r.Context())
	if err != nil {
		return err
	}
	w.(*answer).send(http.StatusOK, "text/plain; version=0.0.4", []byte(s.metrics.text(load)))
	return nil
}

func (m *metrics) text(load policy.SessionLoad) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var b strings.Builder
	family := func(name, kind, help string) { fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind) }
	one := func(name, kind, help string, value int) {
		family(name, kind, help)
		fmt.Fprintf(&b, "%s %d\n", name, value)
	}
	family("rubicon_requests_total", "counter", "Requests by endpoint and status.")
	keys := slices.SortedFunc(maps.Keys(m.requests), func(a, b [2]string) int { return strings.Compare(a[0]+" "+a[1], b[0]+" "+b[1]) })
	for _, k := range keys {
		fmt.Fprintf(&b, "rubicon_requests_total{endpoint=%q,status=%q} %d\n", k[0], k[1], m.requests[k])
	}
	family("rubicon_request_seconds", "histogram", "Time to answer a request.")
	for i, most := range bounds {
		fmt.Fprintf(&b, "rubicon_request_seconds_bucket{le=\"%g\"} %d\n", most, m.seconds.counts[i])
	}
	fmt.Fprintf(&b, "rubicon_request_seconds_bucket{le=\"+Inf\"} %d\nrubicon_request_seconds_sum %g\nrubicon_request_seconds_count %d\n", m.seconds.n, m.seconds.sum, m.seconds.n)
	one("rubicon_requests_refused_total", "counter", "Requests refused because the queue was full.", m.refusals)
	one("rubicon_prompt_tokens_total", "counter", "Tokens of prompts.", m.prompt)
	one("rubicon_prompt_tokens_cached_total", "counter", "Tokens of prompts that were computed for an earlier request.", m.cached)
	one("rubicon_generation_tokens_total", "counter", "Tokens generated.", m.completion)
	one("rubicon_samples_running", "gauge", "Completions being generated.", load.Running)
	one("rubicon_samples_waiting", "gauge", "Completions that wait for their turn.", load.Waiting)
	one("rubicon_cache_tokens", "gauge", "Room for keys and values, tokens.", load.Tokens)
	one("rubicon_cache_tokens_free", "gauge", "Of it not in use; what is kept for later requests counts as free.", load.Free)
	return b.String()
}
