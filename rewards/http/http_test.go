package http

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	nethttp "net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/rewards/http/wire"
	"github.com/rubicon-rl/rubicon/rewards/rewardtest"
)

// serve runs a reward server that answers each request by reply.
func serve(t testing.TB, reply func(w nethttp.ResponseWriter, r *nethttp.Request, q wire.Request)) string {
	t.Helper()
	s := httptest.NewServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
		var q wire.Request
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil || r.Method != nethttp.MethodPost || q.Version != 1 {
			t.Errorf("%s with the request %+v: %v", r.Method, q, err)
		}
		io.Copy(io.Discard, r.Body)
		reply(w, r, q)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// byLength scores a completion by its length; an empty one cannot be scored, and ? gets the wrong id.
func byLength(w nethttp.ResponseWriter, _ *nethttp.Request, q wire.Request) {
	results := make([]map[string]any, 0)
	for _, i := range q.Items {
		r := map[string]any{"id": i.ID, "score": len(i.Completion), "parts": []any{map[string]any{"name": "length", "credit": 1}}}
		switch i.Completion {
		case "":
			r["score"], r["reason"] = nil, "empty"
		case "?":
			r["id"] = "?"
		}
		results = append(results, r)
	}
	json.NewEncoder(w).Encode(map[string]any{"version": 1, "results": results})
}

// open makes a provider that does not wait between two attempts but writes down how long it would have.
func open(t testing.TB, url string, settings map[string]any) (*Provider, *[]time.Duration) {
	t.Helper()
	all := map[string]any{"url": url}
	for name, v := range settings {
		all[name] = v
	}
	made, err := New(rewards.Run{}, all)
	if err != nil {
		t.Fatal(err)
	}
	p := made.(*Provider)
	t.Cleanup(func() { p.Close() })
	var mu sync.Mutex
	var slept []time.Duration
	p.sleep = func(ctx context.Context, d time.Duration) error {
		mu.Lock()
		defer mu.Unlock()
		slept = append(slept, d)
		return ctx.Err()
	}
	return p, &slept
}

// texts makes one group for each list of completions.
func texts(lists ...[]string) []grpo.Group {
	var groups []grpo.Group
	for i, list := range lists {
		g := grpo.Group{Prompt: &grpo.Prompt{ID: fmt.Sprintf("p%d", i), Text: "say"}}
		for _, s := range list {
			g.Completions = append(g.Completions, &grpo.Completion{Text: s})
		}
		groups = append(groups, g)
	}
	return groups
}

func values(scores []rewards.Score) []float64 {
	var v []float64
	for _, s := range scores {
		v = append(v, s.Value)
	}
	return v
}

func TestConformance(t *testing.T) {
	fresh := func(t testing.TB, reply func(nethttp.ResponseWriter, *nethttp.Request, wire.Request)) rewards.Provider {
		p, _ := open(t, serve(t, reply), map[string]any{"batch_size": 2, "max_retries": 0})
		return p
	}
	rewardtest.Run(t, rewardtest.Suite{
		New: func(t testing.TB) rewards.Provider { return fresh(t, byLength) },
		Groups: func() []grpo.Group {
			return texts([]string{"a", "bb", "ccc"}, []string{"", "dd"}, []string{"eeeee", "f"})
		},
		Unscorable: []int{3},
		Hanging: func(t testing.TB) (rewards.Provider, <-chan struct{}) {
			waits := make(chan struct{}, 8)
			return fresh(t, func(_ nethttp.ResponseWriter, r *nethttp.Request, _ wire.Request) {
				waits <- struct{}{}
				<-r.Context().Done()
			}), waits
		},
		Fault: &rewardtest.Fault{
			Provider: fresh(t, byLength), Groups: texts([]string{"a", "b"}, []string{"c", "?"}), Prompt: "p1", Completion: 1,
		},
	})
}

func TestFailuresArePatientlyRetried(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var attempt atomic.Int64
	url := serve(t, func(w nethttp.ResponseWriter, r *nethttp.Request, q wire.Request) {
		switch attempt.Add(1) {
		case 1:
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(429)
		case 2:
			w.Header().Set("Retry-After", at.Add(40*time.Second).Format(nethttp.TimeFormat))
			w.WriteHeader(503)
		case 3: // cut off in the middle of the reply
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, `{"results": [`)
		case 4:
			w.WriteHeader(500)
		default:
			byLength(w, r, q)
		}
	})
	p, slept := open(t, url, nil)
	p.now = func() time.Time { return at }
	scores, err := p.Score(t.Context(), 0, texts([]string{"abc"}))
	if err != nil || !slices.Equal(values(scores), []float64{3}) {
		t.Fatalf("%+v %v", scores, err)
	}
	// The server's wish, where it has one; else half to one and a half times 0.5 s that double every time.
	want := [][2]float64{{7, 7}, {40, 40}, {1, 3}, {2, 6}}
	if len(*slept) != len(want) {
		t.Fatalf("waited %v, want four waits", *slept)
	}
	for i, d := range *slept {
		if s := d.Seconds(); s < want[i][0] || s > want[i][1] {
			t.Errorf("wait %d: %v, want %v seconds", i, d, want[i])
		}
	}
}

func TestABatchThatFailsIsUnscorable(t *testing.T) {
	var attempts atomic.Int64
	url := serve(t, func(w nethttp.ResponseWriter, r *nethttp.Request, q wire.Request) {
		if q.Items[0].PromptID == "p1" {
			attempts.Add(1)
			w.WriteHeader(502)
			io.WriteString(w, "no upstream")
			return
		}
		byLength(w, r, q)
	})
	p, _ := open(t, url, map[string]any{"batch_size": 2, "max_retries": 3})
	scores, err := p.Score(t.Context(), 0, texts([]string{"a", "bb"}, []string{"c", "d"}, []string{"eee"}))
	if err != nil {
		t.Fatal(err)
	}
	if scores[0].Value != 1 || scores[1].Value != 2 || scores[4].Value != 3 {
		t.Errorf("the other batches: %v", values(scores))
	}
	for _, s := range scores[2:4] {
		if !s.Unscorable || !strings.Contains(s.Reason, `502 Bad Gateway: "no upstream"`) {
			t.Errorf("%+v", s)
		}
	}
	if n := attempts.Load(); n != 4 {
		t.Errorf("sent %d times, want once and 3 retries", n)
	}
	// A server that asks for a very long wait is not waited for.
	url = serve(t, func(w nethttp.ResponseWriter, _ *nethttp.Request, _ wire.Request) {
		w.Header().Set("Retry-After", "86400")
		w.WriteHeader(503)
	})
	p, slept := open(t, url, nil)
	if scores, err := p.Score(t.Context(), 0, texts([]string{"a"})); err != nil || !scores[0].Unscorable || len(*slept) != 0 {
		t.Errorf("%+v %v after waits of %v", scores, err, *slept)
	}
}

func TestNetworkFailures(t *testing.T) {
	down := httptest.NewServer(nil)
	url := down.URL
	down.Close()
	p, slept := open(t, url, map[string]any{"max_retries": 2})
	scores, err := p.Score(t.Context(), 0, texts([]string{"a"}))
	if err != nil || !scores[0].Unscorable || !strings.Contains(scores[0].Reason, "refused") || len(*slept) != 2 {
		t.Errorf("nobody listens: %+v %v, %d waits", scores, err, len(*slept))
	}
	url = serve(t, func(w nethttp.ResponseWriter, r *nethttp.Request, _ wire.Request) {
		io.WriteString(w, `{"results"`) // and no more: the body must be bounded in time too
		w.(nethttp.Flusher).Flush()
		<-r.Context().Done()
	})
	p, _ = open(t, url, map[string]any{"max_retries": 0, "timeout": 0.05})
	scores, err = p.Score(t.Context(), 0, texts([]string{"a"}))
	if err != nil || !scores[0].Unscorable || !strings.Contains(scores[0].Reason, "no reply within 0.05 seconds (timeout)") {
		t.Errorf("a slow server: %+v %v", scores, err)
	}
	tls := httptest.NewTLSServer(nil) // whose certificate nobody has signed
	defer tls.Close()
	p, slept = open(t, tls.URL, nil)
	if _, err = p.Score(t.Context(), 0, texts([]string{"a"})); err == nil || !strings.Contains(err.Error(), "certificate") || len(*slept) != 0 {
		t.Errorf("a bad certificate is asked again: %v, %d waits", err, len(*slept))
	}
}

func TestRefusalsEndTheRun(t *testing.T) {
	for status, want := range map[int]string{
		400: `400 Bad Request: "because"`, 401: "set headers_env", 403: "set headers_env", 404: "set url", 405: "set url", 413: "lower batch_size",
		302: `it has moved to "/elsewhere": set url to that`, 308: "set url to that", 422: "422",
	} {
		var attempts atomic.Int64
		url := serve(t, func(w nethttp.ResponseWriter, _ *nethttp.Request, _ wire.Request) {
			attempts.Add(1)
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(status)
			io.WriteString(w, "because")
		})
		p, _ := open(t, url, nil)
		_, err := p.Score(t.Context(), 0, texts([]string{"a"}))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `prompt "p0"`) {
			t.Errorf("%d: error %v, want %q in it", status, err, want)
		}
		if n := attempts.Load(); n != 1 {
			t.Errorf("%d: sent %d times", status, n)
		}
	}
}

func TestALargeReplyIsRefused(t *testing.T) {
	url := serve(t, func(w nethttp.ResponseWriter, _ *nethttp.Request, _ wire.Request) {
		io.WriteString(w, strings.Repeat(" ", 1<<20)+`{}`)
	})
	p, _ := open(t, url, map[string]any{"max_reply_mb": 1})
	if _, err := p.Score(t.Context(), 0, texts([]string{"a"})); err == nil || !strings.Contains(err.Error(), "larger than 1 MiB: set max_reply_mb") {
		t.Errorf("error %v", err)
	}
}

func TestScoresLandByIndex(t *testing.T) {
	const batches, limit = 6, 3
	var inFlight, most atomic.Int64
	first := make(chan struct{}) // closed when the first batch may be answered: after all the others
	var done atomic.Int64
	url := serve(t, func(w nethttp.ResponseWriter, r *nethttp.Request, q wire.Request) {
		n := inFlight.Add(1)
		defer inFlight.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		if q.Items[0].ID == "5/0" {
			<-first
		}
		byLength(w, r, q)
		if done.Add(1) == batches-1 {
			close(first)
		}
	})
	p, _ := open(t, url, map[string]any{"batch_size": 1, "max_concurrency": limit})
	scores, err := p.Score(t.Context(), 5, texts([]string{"a"}, []string{"aa"}, []string{"aaa"}, []string{"aaaa"}, []string{"aaaaa"}, []string{"aaaaaa"}))
	if err != nil || !slices.Equal(values(scores), []float64{1, 2, 3, 4, 5, 6}) {
		t.Errorf("%v %v", values(scores), err)
	}
	if n := most.Load(); n > limit {
		t.Errorf("%d requests at the same time, want at most %d", n, limit)
	}
}
