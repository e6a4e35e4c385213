package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// embeddings is a server; answer gets the number of a request, from 0, and its body.
type embeddings struct {
	mu     sync.Mutex
	bodies []map[string]any
	answer func(n int, w http.ResponseWriter, texts []string)
}

func (s *embeddings) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/v1/embeddings" {
		http.Error(w, "not here", http.StatusNotFound)
		return
	}
	var body map[string]any
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var texts []string
	for _, x := range body["input"].([]any) {
		texts = append(texts, x.(string))
	}
	s.mu.Lock()
	n := len(s.bodies)
	s.bodies = append(s.bodies, body)
	s.mu.Unlock()
	s.answer(n, w, texts)
}

// lengths answers with vectors of two numbers, the second the text's own, last text first.
func lengths(w http.ResponseWriter, texts []string) {
	var data []string
	for i := len(texts) - 1; i >= 0; i-- {
		own, _ := strconv.Atoi(texts[i])
		data = append(data, fmt.Sprintf(`{"object":"embedding","index":%d,"embedding":[1,%d]}`, i, own))
	}
	fmt.Fprintf(w, `{"object":"list","data":[%s],"usage":{"prompt_tokens":1}}`, strings.Join(data, ","))
}

func openEmbedder(t *testing.T, s *embeddings, change func(o *Options)) *Embedder {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	o := DefaultOptions()
	o.URL, o.APIKey, o.Model = server.URL+"/v1", secret, "small"
	o.Sleep = func(context.Context, time.Duration) error { return nil }
	if change != nil {
		change(&o)
	}
	e, err := NewEmbedder(o, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// Vectors belong to the texts that their index names, in whatever order they and the requests come back.
func TestEmbeddingsAreOrderedByIndex(t *testing.T) {
	s := &embeddings{answer: func(_ int, w http.ResponseWriter, texts []string) { lengths(w, texts) }}
	e := openEmbedder(t, s, nil)
	var texts []string
	var want [][]float32
	for i := range 40 {
		texts, want = append(texts, strconv.Itoa(i)), append(want, []float32{1, float32(i)})
	}
	got, err := e.Embed(t.Context(), texts)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	if len(s.bodies) != 3 {
		t.Errorf("%d requests for 40 texts, want 3 of up to 16", len(s.bodies))
	}
	for _, body := range s.bodies {
		if body["model"] != "small" || body["encoding_format"] != "float" || body["dimensions"] != nil {
			t.Errorf("request %v", body)
		}
	}
	if e.Name() != "openai small" {
		t.Errorf("name %q", e.Name())
	}
	if got, err := e.Embed(t.Context(), nil); len(got) != 0 || err != nil {
		t.Errorf("no texts: %v, %v", got, err)
	}
}

// Failures that pass are tried again with the pause that the server asks for; replies that make no sense as well.
func TestEmbedderTriesAgain(t *testing.T) {
	s := &embeddings{answer: func(n int, w http.ResponseWriter, texts []string) {
		switch n {
		case 0:
			w.Header().Set("Retry-After", "77")
			w.WriteHeader(http.StatusTooManyRequests)
		case 1:
			fmt.Fprint(w, `{"data":[{"index":0,"embedding":[1,2]}]}`)
		case 2:
			fmt.Fprint(w, `{"data":[{"index":0,"embedding":[1,2]},{"index":0,"embedding":[1,2]}]}`)
		case 3:
			fmt.Fprint(w, `{"data":[{"index":0,"embedding":[1,2]},{"index":1,"embedding":[1]}]}`)
		case 4:
			fmt.Fprint(w, `{"data":[{"index":0,"embedding":[]},{"index":1,"embedding":[]}]}`)
		default:
			lengths(w, texts)
		}
	}}
	var pauses []time.Duration
	e := openEmbedder(t, s, func(o *Options) {
		o.Sleep = func(_ context.Context, d time.Duration) error { pauses = append(pauses, d); return nil }
	})
	got, err := e.Embed(t.Context(), []string{"3", "4"})
	if want := [][]float32{{1, 3}, {1, 4}}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	if len(pauses) != 5 || pauses[0] != 77*time.Second {
		t.Errorf("pauses %v", pauses)
	}
}

// What cannot pass is not tried again; the error says what to look at, and never has the key.
func TestEmbedderGivesUp(t *testing.T) {
	for code, want := range map[int]string{401: "API key", 404: "no embeddings", 400: "too long"} {
		s := &embeddings{answer: func(_ int, w http.ResponseWriter, _ []string) { http.Error(w, "too long for "+secret, code) }}
		_, err := openEmbedder(t, s, nil).Embed(t.Context(), []string{"1"})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), secret) || len(s.bodies) != 1 {
			t.Errorf("%d: error %v after %d requests", code, err, len(s.bodies))
		}
	}
	s := &embeddings{answer: func(_ int, w http.ResponseWriter, _ []string) { w.WriteHeader(http.StatusBadGateway) }}
	if _, err := openEmbedder(t, s, nil).Embed(t.Context(), []string{"1"}); statusOf(err) != 502 || len(s.bodies) != 6 {
		t.Errorf("error %v after %d requests", err, len(s.bodies))
	}
}

// A reply without end is not read to its end, and a caller who leaves does not wait for one.
func TestEmbedderBounds(t *testing.T) {
	s := &embeddings{answer: func(_ int, w http.ResponseWriter, _ []string) {
		fmt.Fprint(w, `{"data":[{"index":0,"embedding":[1`)
		for range maxReply {
			fmt.Fprint(w, ",1")
		}
	}}
	e := openEmbedder(t, s, func(o *Options) { o.MaxRetries = 0 })
	if _, err := e.Embed(t.Context(), []string{"1"}); err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s = &embeddings{answer: func(int, http.ResponseWriter, []string) { cancel() }}
	if _, err := openEmbedder(t, s, nil).Embed(ctx, []string{"1"}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// Of a long text the beginning is sent, in whole characters.
func TestLongTextsAreCut(t *testing.T) {
	s := &embeddings{answer: func(_ int, w http.ResponseWriter, texts []string) { lengths(w, texts) }}
	if _, err := openEmbedder(t, s, nil).Embed(t.Context(), []string{"x" + strings.Repeat("é", embedBytes)}); err != nil {
		t.Fatal(err)
	}
	if got, want := s.bodies[0]["input"].([]any)[0], "x"+strings.Repeat("é", embedBytes/2-1); got != want {
		t.Errorf("sent %d bytes, want %d", len(got.(string)), len(want))
	}
}

func TestEmbedderOptions(t *testing.T) {
	for _, c := range []struct {
		url, model string
		dims       int
	}{{"", "m", 0}, {"http://127.0.0.1:1/v1", "", 0}, {"ftp://x", "m", 0}, {"http://127.0.0.1:1/v1", "m", -1}} {
		o := DefaultOptions()
		o.URL, o.Model = c.url, c.model
		if _, err := NewEmbedder(o, c.dims); err == nil {
			t.Errorf("%+v: no error", c)
		}
	}
	o := DefaultOptions()
	o.URL, o.Model = "http://127.0.0.1:1/v1", "m"
	if e, err := NewEmbedder(o, 256); err != nil || e.Name() != "openai m 256" {
		t.Errorf("got %v, %v", e, err)
	}
}
