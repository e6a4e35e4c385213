package llm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// maxReply bounds the bytes of a reply: far above what a judge writes, reasoning included, and small enough that many
// runaway replies at once do no harm.
const maxReply = 2 << 20

// minSecret is the length from which a key is a secret. Shorter ones ("EMPTY", "x") are words that local servers want to
// see, and striking them out would spoil replies.
const minSecret = 8

// errPage is the error for HTML: a proxy's page, or the address of something else.
var errPage = errors.New("the server answered with a web page instead of JSON")

// wire is what one request of go-openai goes through: it adds fields to the body, bounds the reply, and turns refusals into
// *StatusError.
type wire struct {
	http   *http.Client
	key    string
	fields map[string]any
	head   string // beginning of the reply
}

// Do implements openai.HTTPDoer.
func (w *wire) Do(r *http.Request) (*http.Response, error) {
	if err := w.extend(r); err != nil {
		return nil, fmt.Errorf("writing the request: %w", err)
	}
	response, err := w.http.Do(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return nil, w.refusal(response)
	}
	body, err := bounded(response)
	if err != nil {
		return nil, err
	}
	body = []byte(w.redact(string(body)))
	w.head = clip(string(body), 300)
	switch {
	case bytes.HasPrefix(bytes.TrimSpace(body), []byte("<")):
		return nil, fmt.Errorf("%w: %s", errPage, w.head)
	case !json.Valid(body):
		return nil, fmt.Errorf("the server's reply is not JSON: %s", w.head)
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, nil
}

// extend adds the fields to a request that has a body.
func (w *wire) extend(r *http.Request) error {
	if r.Body == nil || len(w.fields) == 0 {
		return nil
	}
	var body map[string]json.RawMessage // raw, so that a schema keeps the order of its properties
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return err
	}
	for name, value := range w.fields {
		text, err := json.Marshal(value)
		if err != nil {
			return err
		}
		body[name] = text
	}
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }
	r.Body, err = r.GetBody()
	r.ContentLength = int64(len(text))
	return err
}

// bounded reads a reply's body. One that is too long is not read to its end, and not at all if it says so in its head.
func bounded(r *http.Response) ([]byte, error) {
	tooLong := fmt.Errorf("the reply is longer than %d bytes", maxReply)
	if r.ContentLength > maxReply {
		return nil, tooLong
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxReply+1))
	if err != nil {
		return nil, fmt.Errorf("the reply broke off after %d bytes: %w", len(body), err)
	}
	if len(body) > maxReply {
		return nil, tooLong
	}
	return body, nil
}

// refusal is the error for a status other than success.
func (w *wire) refusal(r *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(r.Body, 4096)) // what cannot be read only makes the message shorter
	if to := r.Header.Get("Location"); to != "" {
		text = append([]byte("moved to "+to+" "), text...)
	}
	return &StatusError{Code: r.StatusCode, Body: clip(w.redact(string(text)), 500), RetryAfter: retryAfter(r.Header, time.Now())}
}

// redact strikes the API key out of what a server says.
func (w *wire) redact(text string) string {
	if len(w.key) < minSecret {
		return text
	}
	return strings.ReplaceAll(text, w.key, "[API key]")
}

// retryAfter reads how long the server wants to be left alone: a number of seconds, or a date by the server's own clock
// if it tells the time, else by ours.
func retryAfter(h http.Header, now time.Time) time.Duration {
	text := strings.TrimSpace(h.Get("Retry-After"))
	if seconds, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(seconds) {
		return time.Duration(min(max(seconds, 0), 1e6) * float64(time.Second))
	}
	date, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	if theirs, err := http.ParseTime(h.Get("Date")); err == nil {
		now = theirs
	}
	return max(0, date.Sub(now))
}

// clip makes text fit for a message: one line of printable characters, n at most.
func clip(text string, n int) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, text)
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) > n {
		return string(runes[:n]) + " ..."
	}
	return string(runes)
}
