package hubtest

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Fault is a way in which requests fail. The zero Fault is none.
type Fault struct {
	// Which requests: those to this host ("": both) whose path contains Path, Times of them (0: all).
	Host, Path string
	Times      int

	Status      int           // answered with this status
	RetryAfter  string        // and this header
	Redirect    string        // sent on to this address
	Hang        bool          // never answered
	Cut         int           // the connection is closed after this many bytes of the body; 0: it is not
	Drip        int           // bytes of the body are sent, then nothing until the client leaves; 0: all are
	Pace        time.Duration // the body comes in five parts, this far apart
	Spoil       bool          // one byte of the body is another one
	Short       bool          // the body lacks its last byte, and the length agrees
	Long        bool          // the body has one byte more, and the length agrees
	NoRange     bool          // Range is ignored
	WrongRange  bool          // a part begins ten bytes later than was asked for
	Weak        bool          // the version has a weak name
	NoETag      bool          // the version has no name
	WebPage     bool          // a web page comes instead
	Gzip        bool          // it says that the body is compressed
	Chunked     bool          // without a length
	AfterHeader func()        // called when the answer has begun
}

// Fail makes requests fail from now on. Of several faults that meet a request the first counts.
func (s *Server) Fail(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, faults...)
}

// Heal ends all faults.
func (s *Server) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

func (f Fault) meets(host string, r *http.Request) bool {
	return r.Method == http.MethodGet && (f.Host == "" || f.Host == host) && strings.Contains(r.URL.Path, f.Path)
}

// answer acts out a fault that leaves nothing of the answer; it tells whether all is done.
func (f Fault) answer(w http.ResponseWriter, r *http.Request) bool {
	switch {
	case f.Hang:
		<-r.Context().Done()
	case f.Redirect != "":
		http.Redirect(w, r, f.Redirect, http.StatusFound)
	case f.WebPage:
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte("<html>Are you sure?</html>"))
	case f.Status != 0:
		if f.RetryAfter != "" {
			w.Header().Set("Retry-After", f.RetryAfter)
		}
		http.Error(w, "no", f.Status)
	default:
		return false
	}
	return true
}

// send hands out a file with the fault.
func (f Fault) send(w http.ResponseWriter, r *http.Request, content []byte, etag string) {
	content = f.spoil(content)
	if f.Weak {
		etag = "W/" + etag
	}
	if f.NoETag {
		etag = ""
	} else {
		w.Header().Set("ETag", etag)
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	if f.Gzip {
		w.Header().Set("Content-Encoding", "gzip")
	}
	from, code := f.begin(w, r, len(content), etag)
	if code == http.StatusRequestedRangeNotSatisfiable {
		w.WriteHeader(code)
		return
	}
	body := content[from:]
	if !f.Chunked {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	}
	w.WriteHeader(code)
	if f.AfterHeader != nil {
		f.AfterHeader()
	}
	if r.Method == http.MethodHead {
		return
	}
	for _, limit := range []int{f.Cut, f.Drip} {
		if limit > 0 {
			body = body[:min(limit, len(body))]
		}
	}
	f.write(w, body)
	if f.Drip > 0 {
		<-r.Context().Done()
	}
	if f.Cut > 0 || f.Drip > 0 {
		panic(http.ErrAbortHandler)
	}
}

func (f Fault) write(w http.ResponseWriter, body []byte) {
	parts := 1
	if f.Pace > 0 {
		parts = 5
	}
	for i := range parts {
		if i > 0 {
			time.Sleep(f.Pace)
		}
		_, _ = w.Write(body[i*len(body)/parts : (i+1)*len(body)/parts])
		_ = http.NewResponseController(w).Flush()
	}
}

func (f Fault) spoil(content []byte) []byte {
	content = bytes.Clone(content)
	switch {
	case f.Spoil && len(content) > 0:
		content[len(content)/2] ^= 1
	case f.Short && len(content) > 0:
		content = content[:len(content)-1]
	case f.Long:
		content = append(content, '!')
	}
	return content
}

// begin is where the answer to a request for a part begins, and its status.
func (f Fault) begin(w http.ResponseWriter, r *http.Request, size int, etag string) (from, code int) {
	text, asked := strings.CutPrefix(r.Header.Get("Range"), "bytes=")
	version := r.Header.Get("If-Range")
	if !asked || f.NoRange || version != "" && version != etag {
		return 0, http.StatusOK
	}
	from, _ = strconv.Atoi(strings.TrimSuffix(text, "-"))
	if from >= size {
		return 0, http.StatusRequestedRangeNotSatisfiable
	}
	if f.WrongRange {
		from = min(from+10, size-1)
	}
	w.Header().Set("Content-Range", "bytes "+strconv.Itoa(from)+"-"+strconv.Itoa(size-1)+"/"+strconv.Itoa(size))
	return from, http.StatusPartialContent
}
