package llm

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rubicon-rl/rubicon/internal/llm/llmtest"
)

const secret = "sk-a-very-secret-key-0123456789"

var verdictSchema = json.RawMessage(`{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"],"additionalProperties":false}`)

func open(t *testing.T, o OpenAIOptions) *OpenAI {
	t.Helper()
	if o.ResponseFormat == "" {
		o.ResponseFormat = formatAuto
	}
	server, err := NewOpenAI(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return server
}

// A schema reaches the server as it was written: reasons come before scores because their properties do.
func TestSchemaKeepsItsOrder(t *testing.T) {
	schema := `{"type":"object","properties":{"why":{"type":"string"},"ok":{"type":"boolean"}},"required":["why","ok"],"additionalProperties":false}`
	var raw string
	s := llmtest.Start(t, llmtest.Config{Answer: func(r *llmtest.Request) llmtest.Response {
		raw = string(r.Raw)
		return llmtest.Response{Content: `{"why":"","ok":true}`}
	}})
	call := &Call{Model: "m", Messages: []Message{{"user", "?"}}, Name: "n", Schema: json.RawMessage(schema), TopP: 1, MaxTokens: 64}
	if _, err := open(t, OpenAIOptions{URL: s.URL, ResponseFormat: formatSchema}).Complete(t.Context(), call); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(raw, `"schema":`+schema) {
		t.Errorf("the request does not hold the schema as it is: %s", raw)
	}
}

// The bytes matter: go-openai leaves out a temperature of 0, and the server then takes 1.
func TestWire(t *testing.T) {
	var raw map[string]json.RawMessage
	var header http.Header
	s := llmtest.Start(t, llmtest.Config{Answer: func(r *llmtest.Request) llmtest.Response {
		header = r.Header
		raw = nil
		if err := json.Unmarshal(r.Raw, &raw); err != nil {
			t.Error(err)
		}
		return llmtest.Response{Content: "fine", PromptTokens: 7, CompletionTokens: 3}
	}})
	call := &Call{Model: "m", Messages: []Message{{"system", "be <brief>"}, {"user", "hé"}}, TopP: 1, MaxTokens: 64, Seed: 1<<31 - 1}
	reply, err := open(t, OpenAIOptions{URL: s.URL + "/", APIKey: " " + secret + "\n", SendSeed: true}).Complete(t.Context(), call)
	if want := (Reply{Text: "fine", PromptTokens: 7, CompletionTokens: 3}); err != nil || *reply != want {
		t.Fatalf("got %+v, %v", reply, err)
	}
	for name, want := range map[string]string{
		"temperature": "0", "top_p": "1", "max_tokens": "64", "seed": "2147483647", "model": `"m"`, "stream": "false",
		"messages": `[{"role":"system","content":"be \u003cbrief\u003e"},{"role":"user","content":"hé"}]`, "response_format": "",
	} {
		if got := string(raw[name]); got != want {
			t.Errorf("%s is %s on the wire, want %s", name, got, want)
		}
	}
	if got := header.Get("Authorization"); got != "Bearer "+secret {
		t.Errorf("Authorization: %q", got)
	}

	// go-openai refuses these settings for this model by itself, and the server wants the limit under another name.
	call.Model, call.Temperature, call.Schema, call.Name = "o3-mini", 0.7, verdictSchema, "verdict"
	if _, err := open(t, OpenAIOptions{URL: s.URL}).Complete(t.Context(), call); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"temperature": "0.7", "max_tokens": "", "max_completion_tokens": "64", "seed": ""} {
		if got := string(raw[name]); got != want {
			t.Errorf("%s is %s on the wire, want %s", name, got, want)
		}
	}
	var format, want any
	text := `{"type": "json_schema", "json_schema": {"name": "verdict", "strict": true, "schema": ` + string(verdictSchema) + `}}`
	if err := errors.Join(json.Unmarshal(raw["response_format"], &format), json.Unmarshal([]byte(text), &want)); err != nil || !reflect.DeepEqual(format, want) {
		t.Errorf("response_format %s, %v", raw["response_format"], err)
	}
	if header.Get("Authorization") != "" {
		t.Error("an Authorization header without a key")
	}
}

func TestStrict(t *testing.T) {
	for schema, want := range map[string]bool{
		string(verdictSchema): true,
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`:                                                           false, // open
		`{"type":"object","properties":{"a":{"type":"string"}},"required":[],"additionalProperties":false}`:                                 false, // optional
		`{"type":"array","items":{"type":"object","properties":{"a":{}},"required":[],"additionalProperties":false}}`:                       false, // deep
		`{"type":"array","items":{"anyOf":[{"type":"object","properties":{},"required":[],"additionalProperties":false},{"type":"null"}]}}`: true,
	} {
		if got := strict(json.RawMessage(schema)); got != want {
			t.Errorf("strict(%s) = %v", schema, got)
		}
	}
}

func TestRetryAfterHeader(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		after, date string
		want        time.Duration
	}{
		{"7", "", 7 * time.Second},
		{"0.25", "", 250 * time.Millisecond},
		{" 3 ", "", 3 * time.Second},
		{"-5", "", 0},
		{"1e300", "", 1e6 * time.Second},
		{"NaN", "", 0},
		{"soon", "", 0},
		{"", "", 0},
		{"Sun, 01 Mar 2026 12:01:30 GMT", "", 90 * time.Second},
		{"Sun, 01 Mar 2026 12:01:30 GMT", "Sun, 01 Mar 2026 12:01:10 GMT", 20 * time.Second}, // the server's clock is ahead of ours
		{"Sun, 01 Mar 2026 11:00:00 GMT", "", 0},
	} {
		h := http.Header{}
		h.Set("Retry-After", c.after)
		h.Set("Date", c.date)
		if got := retryAfter(h, now); got != c.want {
			t.Errorf("Retry-After %q, Date %q: %s, want %s", c.after, c.date, got, c.want)
		}
	}
}

func TestReplies(t *testing.T) {
	for _, c := range []struct {
		fault llmtest.Fault
		want  string // of the error; "": a reply
		code  int
		after time.Duration
	}{
		{llmtest.TooManyRequests, "slow down", 429, 0},
		{llmtest.RetryAfter, "slow down", 429, 2 * time.Second},
		{llmtest.RetryAtDate, "slow down", 429, 3 * time.Second},
		{llmtest.ServerError, "HTTP 500 Internal Server Error", 500, 0},
		{llmtest.Unavailable, "HTTP 503 Service Unavailable", 503, 0},
		{llmtest.HTML, "web page", 0, 0},
		{llmtest.Cut, "broke off", 0, 0},
		{llmtest.Huge, "longer than 2097152 bytes", 0, 0},
		{llmtest.HugeAnnounced, "longer than 2097152 bytes", 0, 0},
		{llmtest.Empty, "no content", 0, 0},
		{llmtest.SlowBody, "", 0, 0},
		{llmtest.SlowHeaders, "", 0, 0},
	} {
		s := llmtest.Start(t, llmtest.Config{Slow: time.Millisecond, Answer: func(*llmtest.Request) llmtest.Response {
			return llmtest.Response{Content: "fine", Fault: c.fault}
		}})
		reply, err := open(t, OpenAIOptions{URL: s.URL}).Complete(t.Context(), &Call{Model: "m", MaxTokens: 1})
		if c.want == "" {
			if err != nil || reply.Text != "fine" {
				t.Errorf("fault %d: %+v, %v", c.fault, reply, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || statusOf(err) != c.code {
			t.Errorf("fault %d: %v, want %q and status %d", c.fault, err, c.want, c.code)
		}
		status, _ := errors.AsType[*StatusError](err)
		// The server writes a date without parts of a second.
		if c.after > 0 && (status.RetryAfter > c.after || status.RetryAfter < c.after-time.Second) {
			t.Errorf("fault %d: Retry-After %s", c.fault, status.RetryAfter)
		}
	}
}

// A reply that is too long must not be read to its end, and one that says so not at all.
func TestHugeReplyTakesLittleMemory(t *testing.T) {
	for fault, most := range map[llmtest.Fault]uint64{llmtest.Huge: 16 << 20, llmtest.HugeAnnounced: 1 << 20} {
		s := llmtest.Start(t, llmtest.Config{Answer: func(*llmtest.Request) llmtest.Response { return llmtest.Response{Fault: fault} }})
		server := open(t, OpenAIOptions{URL: s.URL})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := server.Complete(t.Context(), &Call{Model: "m", MaxTokens: 1}); err == nil {
			t.Error("no error")
		}
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > most { // all of it would be about 100 MB
			t.Errorf("fault %d: %d bytes allocated", fault, used)
		}
	}
}

// A reply that was cut off is one, even if it is empty: the model may have thought for too long.
func TestTruncatedReply(t *testing.T) {
	for _, content := range []string{"fine", ""} {
		s := llmtest.Start(t, llmtest.Config{Answer: func(*llmtest.Request) llmtest.Response {
			return llmtest.Response{Content: content, Finish: "length"}
		}})
		reply, err := open(t, OpenAIOptions{URL: s.URL}).Complete(t.Context(), &Call{Model: "m", MaxTokens: 1})
		if err != nil || !reply.Truncated || reply.Text != content {
			t.Errorf("%q: %+v, %v", content, reply, err)
		}
	}
}

func TestOddReplies(t *testing.T) {
	for body, want := range map[string]string{
		`{"choices": []}`: "no choices",
		`{"error": {"message": "upstream is gone"}}`: "upstream is gone", // with status 200, as some routers do it
		`data: {"choices"`:                           "not JSON",
		``:                                           "not JSON",
		`{"choices": [{"message": {"content": "a"}}]} trailing`:                                                     "not JSON",
		`{"choices": [{"message": {"content": 7}}]}`:                                                                "cannot unmarshal",
		`{"choices": [{"message": {"content": null, "refusal": "I would rather not"}, "finish_reason": "stop"}]}`:   "I would rather not",
		`{"choices": [{"message": {"content": "", "reasoning_content": "hm"}, "finish_reason": "content_filter"}]}`: "content_filter",
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }))
		_, err := open(t, OpenAIOptions{URL: s.URL}).Complete(t.Context(), &Call{Model: "m", MaxTokens: 1})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", body, err, want)
		}
		s.Close()
	}
}

// A redirect could carry the key and the question to another host.
func TestRedirectIsNotFollowed(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") }))
	defer other.Close()
	s := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer s.Close()
	_, err := open(t, OpenAIOptions{URL: s.URL, APIKey: secret}).Complete(t.Context(), &Call{Model: "m", MaxTokens: 1})
	if statusOf(err) != http.StatusTemporaryRedirect || !strings.Contains(err.Error(), other.URL) {
		t.Errorf("got %v", err)
	}
}

func TestBadURLs(t *testing.T) {
	for raw, want := range map[string]string{
		"":                                       "set judge.url",
		"api.example.com/v1":                     "http:// or https://",
		"ftp://example.com/v1":                   "http:// or https://",
		"http://":                                "a host",
		"http://me:pass@example.com/":            "judge.api_key_env",
		"http://example.com/?key=pass":           "judge.api_key_env",
		"http://example.com/v1/chat/completions": "leave out /chat/completions",
		"http://pass word:x@[::1/v1":             "not a URL",
	} {
		_, err := NewOpenAI(OpenAIOptions{URL: raw})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "pass") {
			t.Errorf("%q: %v, want %q", raw, err, want)
		}
	}
	if _, err := NewOpenAI(OpenAIOptions{URL: "http://example.com", APIKey: "sk-a\nX-Other: 1"}); err == nil || strings.Contains(err.Error(), "sk-a") {
		t.Errorf("a key of two lines: %v", err)
	}
}
