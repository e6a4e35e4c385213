package serve

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/rubicon-rl/rubicon/policy"
	"github.com/rubicon-rl/rubicon/policy/grammar"
	"github.com/rubicon-rl/rubicon/policy/token"
)

// Options say what is served, and within which bounds.
type Options struct {
	Model     *policy.Model
	Tokenizer *token.Tokenizer
	Name      string  // of the base model, in requests
	EOS       []int32 // ids that end a completion
	Session   policy.SessionOptions
	Kwargs    map[string]any // of the chat template
	Now       func() time.Time
	Seed      uint64 // of requests that bring none

	APIKey    string                 // "": none is asked for
	Check     func(dir string) error // whether an adapter fits the model; nil: not asked
	Adapters  string                 // folder from which adapters may be loaded while it runs; "": none may
	MaxTokens int                    // of one completion
	MaxQueue  int                    // choices in flight; more are refused
	MaxBody   int64                  // bytes of a request
	Timeout   time.Duration          // of one request
}

// Server is an http.Handler for OpenAI's protocol.
type Server struct {
	o       Options
	engine  *engine
	mux     *http.ServeMux
	metrics *metrics

	mu       sync.Mutex
	adapters map[string]string // adapter sets by the name that requests have
	loads    int               // how many adapters were ever loaded; of the engine's goroutine
	asked    uint64            // requests without a seed
	flying   int               // choices in flight
	draining bool
	idle     chan struct{} // closed when it drains and nothing is in flight

	words    sync.Once
	vocabs   *grammar.Vocab
	vocabErr error
}

// New starts a server, which owns the model until Close.
func New(o Options) (*Server, error) {
	e, err := startEngine(o.Model, o.Session)
	if err != nil {
		return nil, err
	}
	s := &Server{o: o, engine: e, metrics: newMetrics(), adapters: map[string]string{}, idle: make(chan struct{})}
	s.mux = http.NewServeMux()
	for pattern, handle := range map[string]func(http.ResponseWriter, *http.Request) error{
		"POST /v1/chat/completions":    s.chat,
		"POST /v1/completions":         s.text,
		"POST /v1/embeddings":          s.embeddings,
		"GET /v1/models":               s.models,
		"GET /v1/models/{model...}":    s.oneModel,
		"POST /v1/load_lora_adapter":   s.loadAdapter,
		"POST /v1/unload_lora_adapter": s.unloadAdapter,
		"GET /health":                  s.health,
		"GET /metrics":                 s.showMetrics,
		"/":                            unknown,
	} {
		s.mux.HandleFunc(pattern, s.guarded(pattern, handle))
	}
	return s, nil
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Close ends what is still being generated.
func (s *Server) Close() { s.engine.close() }

// Drain refuses new requests and waits until those in flight are answered.
func (s *Server) Drain(ctx context.Context) error {
	s.mu.Lock()
	if !s.draining {
		s.draining = true
		if s.flying == 0 {
			close(s.idle)
		}
	}
	s.mu.Unlock()
	select {
	case <-s.idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// guarded checks the key, bounds body and time, and tells the client of errors.
func (s *Server) guarded(pattern string, handle func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		answer := &answer{ResponseWriter: w}
		ctx, cancel := context.WithTimeout(r.Context(), s.o.Timeout)
		defer cancel()
		r = r.WithContext(ctx)
		r.Body = http.MaxBytesReader(w, r.Body, s.o.MaxBody)
		var err error = &fault{status: http.StatusUnauthorized, kind: "invalid_request_error", code: "invalid_api_key", text: "the API key is missing or wrong: send it as Authorization: Bearer KEY"}
		if s.allowed(r) {
			err = handle(answer, r)
		}
		if err != nil && r.Context().Err() != context.Canceled {
			answer.fail(asFault(err))
		}
		s.metrics.request(pattern, answer.status, time.Since(began))
	}
}

// allowed compares the key in constant time. Who only asks whether the server lives needs none.
func (s *Server) allowed(r *http.Request) bool {
	if s.o.APIKey == "" || r.URL.Path == "/health" {
		return true
	}
	given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return ok && subtle.ConstantTimeCompare([]byte(given), []byte(s.o.APIKey)) == 1
}

func unknown(_ http.ResponseWriter, r *http.Request) error {
	return &fault{status: http.StatusNotFound, kind: "invalid_request_error", code: "unknown_url", text: fmt.Sprintf("there is no %s %s", r.Method, r.URL.Path)}
}

// enter counts choices in.
func (s *Server) enter(choices int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.draining:
		return errStopped
	case choices > s.o.MaxQueue:
		return wrong("n", "the request is for %d completions, this server takes at most %d at a time: ask for fewer, or start it with a larger --max-queue", choices, s.o.MaxQueue)
	case s.flying+choices > s.o.MaxQueue:
		s.metrics.refused()
		return &fault{status: http.StatusTooManyRequests, kind: "rate_limit_error", code: "queue_full",
			text: fmt.Sprintf("%d completions are in flight of the %d that this server takes: try again", s.flying, s.o.MaxQueue)}
	}
	s.flying += choices
	return nil
}

// leave counts a generation's choices out.
func (s *Server) leave(g *generation) {
	s.metrics.generated(g)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flying -= len(g.prompts) * g.n
	if s.draining && s.flying == 0 {
		select {
		case <-s.idle:
		default:
			close(s.idle)
		}
	}
}

// seed is that of a request that brings none: another one each time.
func (s *Server) seed() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	return s.o.Seed<<32 + s.asked
}

// vocab is the vocabulary for constraints, made when the first is asked for.
func (s *Server) vocab() (*grammar.Vocab, error) {
	s.words.Do(func() {
		s.vocabs, s.vocabErr = grammar.NewVocab(s.o.Tokenizer, s.o.Model.Config().Vocab, s.o.EOS)
	})
	return s.vocabs, s.vocabErr
}

// set is the adapter set that a request names.
func (s *Server) set(model string) (string, error) {
	if model == "" || model == s.o.Name {
		return "", nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	set, ok := s.adapters[model]
	if !ok {
		return "", &fault{status: http.StatusNotFound, kind: "invalid_request_error", param: "model", code: "model_not_found",
			text: fmt.Sprintf("there is no model %q here: GET /v1/models lists those that are", model)}
	}
	return set, nil
}

// Load loads an adapter from a PEFT folder under a name.
func (s *Server) Load(ctx context.Context, name, dir string) error {
	if name == "" {
		return wrong("lora_name", "lora_name is missing")
	}
	if s.o.Check != nil {
		if err := s.o.Check(dir); err != nil {
			return wrong("lora_path", "%v", err)
		}
	}
	_, err := value(ctx, s.engine, true, func() (struct{}, error) { return struct{}{}, s.adopt(name, dir) })
	return err
}

// adopt is called by the engine's goroutine, so that of those who load under one name at the same time the first gets it.
func (s *Server) adopt(name, dir string) error {
	if _, err := s.set(name); err == nil {
		return wrong("lora_name", "there is a model %q already: unload it first, or take another name", name)
	}
	s.loads++
	set := fmt.Sprintf("%s@%d", name, s.loads) // a name may come again while the last of its requests are answered
	if err := s.o.Model.LoadAdapter(set, dir); err != nil {
		return wrong("lora_path", "%v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.adapters[name] = set
	return nil
}

// Unload takes an adapter's name away at once, and its weights when the last request that uses them is answered.
func (s *Server) Unload(ctx context.Context, name string) error {
	s.mu.Lock()
	set, there := s.adapters[name]
	delete(s.adapters, name)
	s.mu.Unlock()
	if !there {
		return &fault{status: http.StatusNotFound, kind: "invalid_request_error", param: "lora_name", code: "model_not_found", text: fmt.Sprintf("there is no adapter %q", name)}
	}
	return s.engine.wait(ctx, func() (bool, error) {
		if s.engine.session.Busy(set) {
			return false, nil
		}
		return true, errors.Join(s.engine.session.Forget(set), s.o.Model.DropAdapter(set))
	})
}

// inside is a path below the folder of adapters.
func (s *Server) inside(path string) (string, error) {
	if s.o.Adapters == "" {
		return "", &fault{status: http.StatusForbidden, kind: "invalid_request_error", text: "this server loads no adapters while it runs: start it with --lora-dir"}
	}
	if filepath.IsAbs(path) {
		rel, err := filepath.Rel(s.o.Adapters, path)
		if err != nil {
			return "", wrong("lora_path", "%v", err)
		}
		path = rel
	}
	if !filepath.IsLocal(path) {
		return "", wrong("lora_path", "lora_path has to be below %s", s.o.Adapters)
	}
	return filepath.Join(s.o.Adapters, path), nil
}
