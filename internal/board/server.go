package board

import (
	"crypto/subtle"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"strconv"

	"github.com/rubicon-rl/rubicon/trainer/health"
)

//go:embed page
var bundle embed.FS

// buckets is how many points of a metric the page gets at most; a chart has fewer pixels.
const buckets = 800

// policy lets the page load nothing but its own files, run no inline script and stand in no frame.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Handler serves the page of runs. With a token, every request must carry it (see Address); without one, only
// requests addressed to this machine by a loopback name are answered, so that no other site's page can read the runs.
func Handler(runs []*Run, token string) (http.Handler, error) {
	files, err := fs.Sub(bundle, "page")
	if err != nil {
		return nil, fmt.Errorf("open the page: %w", err)
	}
	b := board(runs)
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServerFS(files))
	mux.HandleFunc("GET /api/runs", b.list)
	mux.HandleFunc("GET /api/metrics", b.metrics)
	mux.HandleFunc("GET /api/completions", b.completions)
	mux.HandleFunc("GET /api/rubric", b.rubric)
	mux.HandleFunc("GET /api/health", b.health)
	return guard(mux, token), nil
}

// Address is where to listen: :PORT is one of this machine alone, unless there is a token. Without one, an address that other machines can
// reach is refused.
func Address(address, token string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", fmt.Errorf("address %q: %w: write it as HOST:PORT or :PORT", address, err)
	}
	if host == "" && token == "" {
		return net.JoinHostPort("127.0.0.1", port), nil
	}
	if token == "" && !loopback(host) {
		return "", fmt.Errorf("address %q can be reached from other machines: give a token too (--token), or listen on 127.0.0.1", address)
	}
	return address, nil
}

func loopback(host string) bool {
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

func guard(next http.Handler, token string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		if token == "" {
			host, _, err := net.SplitHostPort(r.Host)
			if err != nil {
				host = r.Host
			}
			if !loopback(host) {
				http.Error(w, "this page answers to localhost only", http.StatusForbidden)
				return
			}
		} else if !authorised(w, r, token) {
			http.Error(w, "open the page with ?token=TOKEN", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// authorised looks for the token in the address, which sets a cookie for what the page asks next, then in the cookie.
func authorised(w http.ResponseWriter, r *http.Request, token string) bool {
	const name = "rubicon_token"
	same := func(s string) bool { return subtle.ConstantTimeCompare([]byte(s), []byte(token)) == 1 }
	if same(r.URL.Query().Get("token")) {
		http.SetCookie(w, &http.Cookie{Name: name, Value: token, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
		return true
	}
	c, err := r.Cookie(name)
	return err == nil && same(c.Value)
}

// board answers the page's questions. A request names a run and a step by numbers only, never by a path.
type board []*Run

func (b board) list(w http.ResponseWriter, _ *http.Request) {
	type entry struct {
		Name  string `json:"name"`
		Steps []int  `json:"steps"` // with completions
	}
	out := make([]entry, len(b))
	for i, r := range b {
		out[i] = entry{r.Name, r.Steps()}
	}
	reply(w, out, nil)
}

// metrics answers with what follows the first `after` records of the epoch, or with everything if the epoch is
// another one or more than a table of buckets has come since.
func (b board) metrics(w http.ResponseWriter, r *http.Request) {
	run, err := b.run(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	records, epoch, err := run.Records()
	after, _ := strconv.Atoi(r.URL.Query().Get("after")) // none: 0, everything
	known, _ := strconv.Atoi(r.URL.Query().Get("epoch"))
	if known != epoch || after < 0 || after > len(records) || len(records)-after > buckets {
		after = 0
	}
	reply(w, struct {
		Epoch int  `json:"epoch"`
		Count int  `json:"count"` // records so far
		Whole bool `json:"whole"` // the table replaces what the page has; otherwise it is appended
		table
	}{epoch, len(records), after == 0, tabulate(records[after:], buckets)}, err)
}

func (b board) completions(w http.ResponseWriter, r *http.Request) {
	run, err := b.run(r)
	step, bad := strconv.Atoi(r.URL.Query().Get("step"))
	if err = errors.Join(err, bad); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	lines, err := run.Completions(step)
	reply(w, lines, err)
}

func (b board) rubric(w http.ResponseWriter, r *http.Request) {
	run, err := b.run(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	events, err := run.Rubric()
	reply(w, events, err)
}

// health answers with what is wrong with each run now, in sentences.
func (b board) health(w http.ResponseWriter, _ *http.Request) {
	type entry struct {
		Run  string `json:"run"`
		Text string `json:"text"`
	}
	out := []entry{}
	for _, run := range b {
		records, _, err := run.Records()
		if err != nil {
			reply(w, nil, err)
			return
		}
		var m health.Monitor
		for _, r := range records {
			m.Observe(r)
		}
		for _, f := range m.Active() {
			out = append(out, entry{run.Name, f.String()})
		}
	}
	reply(w, out, nil)
}

func (b board) run(r *http.Request) (*Run, error) {
	i, err := strconv.Atoi(r.URL.Query().Get("run"))
	if err != nil || i < 0 || i >= len(b) {
		return nil, fmt.Errorf("run must be a number from 0 to %d", len(b)-1)
	}
	return b[i], nil
}

func reply(w http.ResponseWriter, v any, err error) {
	if errors.Is(err, fs.ErrNotExist) {
		http.Error(w, "not written", http.StatusNotFound)
		return
	}
	var body []byte
	if err == nil {
		body, err = json.Marshal(v)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(body) // a page that has gone away needs no answer
}
