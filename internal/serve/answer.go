package serve

import (
	"encoding/json"
	"net/http"
	"time"
)

// patience is how long a client may take to read an answer, or a piece of a stream.
const patience = 30 * time.Second

// answer is what a client is sent.
type answer struct {
	http.ResponseWriter
	status int // 0: nothing was sent
	stream bool
}

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// json sends a whole answer.
func (a *answer) json(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	a.send(http.StatusOK, "application/json", append(b, '\n'))
	return nil
}

func (a *answer) send(status int, kind string, body []byte) {
	a.Header().Set("Content-Type", kind)
	_ = http.NewResponseController(a.ResponseWriter).SetWriteDeadline(time.Now().Add(patience))
	a.WriteHeader(status)
	_, _ = a.Write(body) // the client may be gone
}

// event sends a piece of a stream, which it begins.
func (a *answer) event(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return a.line(b)
}

func (a *answer) line(b []byte) error {
	if !a.stream {
		a.stream = true
		a.Header().Set("Content-Type", "text/event-stream")
		a.Header().Set("Cache-Control", "no-cache")
		a.WriteHeader(http.StatusOK)
	}
	out := http.NewResponseController(a.ResponseWriter)
	_ = out.SetWriteDeadline(time.Now().Add(patience)) // where the server cannot, there is the request's time
	if _, err := a.Write([]byte("data: " + string(b) + "\n\n")); err != nil {
		return err
	}
	return out.Flush()
}

// done ends a stream.
func (a *answer) done() error { return a.line([]byte("[DONE]")) }

// fail tells the client of a fault, in the middle of a stream as an event.
func (a *answer) fail(f *fault) {
	switch {
	case a.stream:
		_ = a.line(f.body())
	case a.status == 0:
		if f.status == http.StatusTooManyRequests || f.status == http.StatusServiceUnavailable {
			a.Header().Set("Retry-After", "1")
		}
		a.send(f.status, "application/json", append(f.body(), '\n'))
	}
}
