package http

import (
	"errors"
	"io"
	nethttp "net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/rewards/http/wire"
)

func TestHeadersComeFromTheEnvironment(t *testing.T) {
	t.Setenv("RUBICON_TEST_AUTH", "Bearer s3cret")
	var got atomic.Value
	url := serve(t, func(w nethttp.ResponseWriter, r *nethttp.Request, q wire.Request) {
		got.Store(r.Header.Get("Authorization") + " " + r.Header.Get("Content-Type"))
		byLength(w, r, q)
	})
	p, _ := open(t, url, map[string]any{"headers_env": map[string]any{"authorization": "RUBICON_TEST_AUTH"}})
	if err := p.Preflight(t.Context()); err != nil || got.Load() != "Bearer s3cret application/json" {
		t.Errorf("%v, headers %q", err, got.Load())
	}
	_, err := New(rewards.Run{}, map[string]any{"url": url, "headers_env": map[string]any{"Authorization": "RUBICON_TEST_NONE"}})
	if err == nil || !strings.Contains(err.Error(), "the environment variable RUBICON_TEST_NONE, which is not set") {
		t.Errorf("error %v", err)
	}
}

func TestPreflight(t *testing.T) {
	p, _ := open(t, serve(t, byLength), nil)
	if err := p.Preflight(t.Context()); err != nil {
		t.Error(err)
	}
	down := httptest.NewServer(nil)
	down.Close()
	page := serve(t, func(w nethttp.ResponseWriter, _ *nethttp.Request, _ wire.Request) { io.WriteString(w, "<html>") })
	missing := serve(t, func(w nethttp.ResponseWriter, _ *nethttp.Request, _ wire.Request) { w.WriteHeader(404) })
	for url, want := range map[string]string{down.URL: "refused", page: "not a JSON object", missing: "404 Not Found"} {
		p, slept := open(t, url, nil)
		err := p.Preflight(t.Context())
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "set url") || !strings.Contains(err.Error(), url) {
			t.Errorf("error %v, want %q and what to set", err, want)
		}
		if len(*slept) != 0 {
			t.Errorf("%s: waited %v", want, *slept)
		}
	}
}

func TestSettings(t *testing.T) {
	for _, c := range []struct {
		settings map[string]any
		want     string
	}{
		{map[string]any{}, "url is not set"},
		{map[string]any{"url": "localhost:9000"}, "give a whole address"},
		{map[string]any{"url": "ftp://u:secret@h/"}, `url is "ftp://u:xxxxx@h/": give a whole address`},
		{map[string]any{"url": "http://h", "timeout": 0}, "timeout is 0: give seconds above 0"},
		{map[string]any{"url": "http://h", "batch_size": 0}, "must be at least 1"},
		{map[string]any{"url": "http://h", "max_retries": -1}, "must not be negative"},
		{map[string]any{"url": "http://h", "colums": []any{"a"}}, `unknown option "colums": did you mean "columns"?`},
	} {
		if _, err := New(rewards.Run{}, c.settings); err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "http: ") {
			t.Errorf("%v: error %v, want %q in it", c.settings, err, c.want)
		}
	}
	p, _ := open(t, "http://h", map[string]any{"columns": []any{"gold"}})
	if err := p.Check(&grpo.Prompt{ID: "a:1"}); err == nil || err.Error() != `http: prompt "a:1": the row has no column gold: take it out of columns, or map it in data.columns` {
		t.Errorf("error %v", err)
	}
	var place *rewards.Error
	if _, err := p.Score(t.Context(), 0, texts([]string{"a"})); !errors.As(err, &place) || place.Prompt != "p0" {
		t.Errorf("error %v", err)
	}
}
