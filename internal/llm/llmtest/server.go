// Package llmtest is a server for tests that speaks OpenAI's protocol. It answers as a function of the request says, and
// fails in all the ways in which servers fail.
package llmtest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Config describes a server.
type Config struct {
	// Answer answers a request. It is called by many goroutines at once.
	Answer  func(r *Request) Response
	Models  []string      // that it lists and serves; nil: it has no list and serves any
	Key     string        // that it wants; "": it wants none
	Formats []string      // response formats that it takes; nil: all
	Slow    time.Duration // of SlowHeaders and SlowBody
}

// Request is what a client asks.
type Request struct {
	Model               string    `json:"model"`
	Messages            []Message `json:"messages"`
	Temperature         *float64  `json:"temperature"`
	TopP                *float64  `json:"top_p"`
	MaxTokens           int       `json:"max_tokens"`
	MaxCompletionTokens int       `json:"max_completion_tokens"`
	Seed                *int64    `json:"seed"`
	ResponseFormat      struct {
		Type       string `json:"type"`
		JSONSchema struct {
			Name   string          `json:"name"`
			Schema json.RawMessage `json:"schema"`
			Strict bool            `json:"strict"`
		} `json:"json_schema"`
	} `json:"response_format"`

	Raw    []byte      `json:"-"` // the body as it was sent
	Header http.Header `json:"-"`
}

// Message is one turn of a conversation.
type Message struct{ Role, Content string }

// Last returns the text of the last message.
func (r *Request) Last() string {
	if len(r.Messages) == 0 {
		return ""
	}
	return r.Messages[len(r.Messages)-1].Content
}

// Response is an answer.
type Response struct {
	Content          string
	Reasoning        string // "": none
	Finish           string // "": stop
	PromptTokens     int    // 0: the words of the messages
	CompletionTokens int    // 0: the words of the content
	NoUsage          bool   // tell no tokens at all
	Fault            Fault
}

// Server is a running server.
type Server struct {
	URL          string            // root of its API
	RoundTripper http.RoundTripper // the way to it, if it is in memory

	c        Config
	mu       sync.Mutex
	requests int
	inWork   int
	peak     int
}

// Start runs a server on the loopback address until the test ends.
func Start(t testing.TB, c Config) *Server {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{URL: "http://" + listener.Addr().String() + "/v1", c: c}
	s.serve(t, listener)
	return s
}

// StartInMemory runs a server that only its RoundTripper reaches, at any address, until the test ends. It works within
// a synctest bubble, where hours of pauses and hangs take no time.
func StartInMemory(t testing.TB, c Config) *Server {
	p := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	way := &http.Transport{DialContext: p.dial, MaxIdleConnsPerHost: 256}
	s := &Server{URL: "http://judge.test/v1", RoundTripper: way, c: c}
	s.serve(t, p)
	t.Cleanup(way.CloseIdleConnections)
	return s
}

func (s *Server) serve(t testing.TB, listener net.Listener) {
	server := &http.Server{Handler: s, ErrorLog: log.New(io.Discard, "", 0)}
	var running sync.WaitGroup
	running.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() {
		_ = server.Close()
		running.Wait()
	})
}

// Requests returns how many completions were asked for.
func (s *Server) Requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

// Peak returns how many completions were in work at once.
func (s *Server) Peak() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.peak
}

// enter counts a request in; the function counts it out.
func (s *Server) enter() func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	s.inWork++
	s.peak = max(s.peak, s.inWork)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.inWork--
	}
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/v1/chat/completions" && r.Method == http.MethodPost:
		defer s.enter()()
		s.complete(w, r)
	case !s.admits(r):
		refuse(w, http.StatusUnauthorized, "Incorrect API key provided: "+r.Header.Get("Authorization"))
	case r.URL.Path == "/v1/models" && s.c.Models != nil:
		list := make([]map[string]string, len(s.c.Models))
		for i, id := range s.c.Models {
			list[i] = map[string]string{"id": id, "object": "model"}
		}
		write(w, http.StatusOK, map[string]any{"object": "list", "data": list})
	default:
		refuse(w, http.StatusNotFound, "Not Found")
	}
}

func (s *Server) admits(r *http.Request) bool {
	return s.c.Key == "" || r.Header.Get("Authorization") == "Bearer "+s.c.Key
}

func (s *Server) complete(w http.ResponseWriter, r *http.Request) {
	// The key is checked as real servers do it, who say in their refusal what they were sent.
	if !s.admits(r) {
		refuse(w, http.StatusUnauthorized, "Incorrect API key provided: "+r.Header.Get("Authorization"))
		return
	}
	body, err := io.ReadAll(r.Body)
	q := &Request{Raw: body, Header: r.Header}
	if err == nil {
		err = json.Unmarshal(body, q)
	}
	format := q.ResponseFormat.Type
	switch {
	case err != nil:
		refuse(w, http.StatusBadRequest, err.Error())
	case s.c.Models != nil && !slices.Contains(s.c.Models, q.Model):
		refuse(w, http.StatusNotFound, fmt.Sprintf("The model `%s` does not exist.", q.Model))
	case s.c.Formats != nil && format != "" && !slices.Contains(s.c.Formats, format):
		refuse(w, http.StatusBadRequest, "unsupported response_format")
	default:
		s.respond(w, r, q)
	}
}

// respond writes the answer, in the way in which its fault spoils it.
func (s *Server) respond(w http.ResponseWriter, r *http.Request, q *Request) {
	a := s.c.Answer(q)
	if a.Fault.transport(w, r, s.c.Slow) {
		return
	}
	a = a.Fault.content(a)
	message := map[string]any{"role": "assistant", "content": a.Content}
	if a.Reasoning != "" {
		message["reasoning"], message["reasoning_content"] = a.Reasoning, a.Reasoning
	}
	if a.Finish == "" {
		a.Finish = "stop"
	}
	reply := map[string]any{
		"id": "chatcmpl-1", "object": "chat.completion", "model": q.Model,
		"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": a.Finish}},
	}
	if !a.NoUsage {
		reply["usage"] = usage(q, a)
	}
	text, err := json.Marshal(reply)
	if err != nil {
		refuse(w, http.StatusInternalServerError, err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	a.Fault.body(w, r, text, s.c.Slow)
}

func usage(q *Request, a Response) map[string]int {
	if a.PromptTokens == 0 {
		for _, m := range q.Messages {
			a.PromptTokens += len(strings.Fields(m.Content))
		}
	}
	if a.CompletionTokens == 0 {
		a.CompletionTokens = len(strings.Fields(a.Content))
	}
	return map[string]int{
		"prompt_tokens": a.PromptTokens, "completion_tokens": a.CompletionTokens, "total_tokens": a.PromptTokens + a.CompletionTokens,
	}
}

func write(w http.ResponseWriter, code int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(value)
}

func refuse(w http.ResponseWriter, code int, text string) {
	write(w, code, map[string]any{"error": map[string]string{"message": text, "type": "error"}})
}

// pipes is a listener whose connections are in memory.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return ours, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "unix"} }
