package llmtest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// Fault is a way in which a server fails.
type Fault int

// The faults. Those from Empty on spoil the content alone.
const (
	None            Fault = iota
	TooManyRequests       // 429
	RetryAfter            // 429 that asks for two seconds
	RetryAtDate           // 429 that asks to wait for a time three seconds ahead
	ServerError           // 500
	Unavailable           // 503 with a web page
	SlowHeaders           // nothing for a while, then the answer
	SlowBody              // half of the answer, and after a while the rest
	Cut                   // half of the answer, then the connection is closed
	HTML                  // a web page with status 200
	Huge                  // 20 MB without an announced length
	HugeAnnounced         // 20 MB
	Hang                  // nothing until the client leaves
	Empty                 // no content
	Prose                 // the answer, and then something else
	WrongTypes            // texts in place of numbers
	OutOfRange            // numbers that are far too large
	Duplicated            // every list holds its first item twice
	Missing               // every list lacks its last item
	Truncated             // the first half, ended by the limit of tokens
	Reasoning             // no fault at all: the answer, and reasoning beside it and before it
	lastFault
)

// All lists every fault but None.
func All() []Fault {
	var list []Fault
	for f := None + 1; f < lastFault; f++ {
		list = append(list, f)
	}
	return list
}

// OfContent tells whether the fault is in an answer's content, so that asking again in other words may help.
func (f Fault) OfContent() bool { return f >= Empty && f < Reasoning }

// hugeBytes is the size of a huge reply.
const hugeBytes = 20 << 20

// transport acts out a fault that leaves nothing of the answer, or waits before it; it tells whether all is done.
func (f Fault) transport(w http.ResponseWriter, r *http.Request, slow time.Duration) bool {
	switch f {
	case TooManyRequests:
		refuse(w, http.StatusTooManyRequests, "slow down")
	case RetryAfter:
		w.Header().Set("Retry-After", "2")
		refuse(w, http.StatusTooManyRequests, "slow down")
	case RetryAtDate:
		w.Header().Set("Retry-After", time.Now().Add(3*time.Second).UTC().Format(http.TimeFormat))
		refuse(w, http.StatusTooManyRequests, "slow down")
	case ServerError:
		refuse(w, http.StatusInternalServerError, "something broke")
	case Unavailable:
		page(w, http.StatusServiceUnavailable)
	case HTML:
		page(w, http.StatusOK)
	case HugeAnnounced, Huge:
		if f == HugeAnnounced {
			w.Header().Set("Content-Length", strconv.Itoa(hugeBytes))
		}
		huge(w)
	case Hang:
		<-r.Context().Done()
	case SlowHeaders:
		wait(r, slow)
		return false
	default:
		return false
	}
	return true
}

func page(w http.ResponseWriter, code int) {
	w.Header().Set("Content-Type", "text/html")
	w.WriteHeader(code)
	_, _ = w.Write([]byte("<html><body><h1>Oops</h1></body></html>"))
}

// huge writes a reply that would be valid if it were not so long.
func huge(w http.ResponseWriter) {
	part := bytes.Repeat([]byte{' '}, 1<<16)
	for range hugeBytes / len(part) {
		if _, err := w.Write(part); err != nil {
			return // the client has had enough
		}
	}
}

// wait waits unless the client leaves.
func wait(r *http.Request, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
	}
}

// body writes a reply's text.
func (f Fault) body(w http.ResponseWriter, r *http.Request, text []byte, slow time.Duration) {
	switch f {
	case SlowBody:
		_, _ = w.Write(text[:len(text)/2])
		_ = http.NewResponseController(w).Flush()
		wait(r, slow)
		_, _ = w.Write(text[len(text)/2:])
	case Cut:
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
		_, _ = w.Write(text[:len(text)/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler) // net/http's way to close a connection
	default:
		_, _ = w.Write(text)
	}
}

// content spoils an answer's content.
func (f Fault) content(a Response) Response {
	switch f {
	case Empty:
		a.Content = ""
	case Prose:
		a.Content += "\n\nI hope this helps!"
	case WrongTypes:
		a.Content = change(a.Content, func(v any) any {
			if n, ok := v.(float64); ok {
				return strconv.FormatFloat(n, 'g', -1, 64)
			}
			return v
		})
	case OutOfRange:
		a.Content = change(a.Content, func(v any) any {
			if n, ok := v.(float64); ok {
				return n + 1e6
			}
			return v
		})
	case Duplicated:
		a.Content = change(a.Content, func(v any) any {
			if list, ok := v.([]any); ok && len(list) > 0 {
				return append(list, list[0])
			}
			return v
		})
	case Missing:
		a.Content = change(a.Content, func(v any) any {
			if list, ok := v.([]any); ok && len(list) > 0 {
				return list[:len(list)-1]
			}
			return v
		})
	case Truncated:
		a.Content, a.Finish = a.Content[:len(a.Content)/2], "length"
	case Reasoning:
		a.Content, a.Reasoning = "<think>{\"scores\": []}? No.</think>\n"+a.Content, "Let me see."
	}
	return a
}

// change applies to every value within a JSON text, the innermost first.
func change(text string, to func(any) any) string {
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return text
	}
	out, err := json.Marshal(walk(v, to))
	if err != nil {
		return text
	}
	return string(out)
}

func walk(v any, to func(any) any) any {
	switch x := v.(type) {
	case []any:
		for i := range x {
			x[i] = walk(x[i], to)
		}
	case map[string]any:
		for name := range x {
			x[name] = walk(x[name], to)
		}
	}
	return to(v)
}
