// Package hubtest is a stand-in for a hub of models and data sets, and for plain file servers: it keeps repositories in memory,
// hands large files out by another host, and fails in the ways that a test asks for.
package hubtest

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Repo is a repository. Its one commit is a function of its files.
type Repo struct {
	Dataset bool
	Files   map[string][]byte
	LFS     []string // paths of the files that are large in name: handed out by the other host, known by their SHA-256
	Refs    []string // names of the commit beside main
	Gated   bool     // only for who has Token
}

// Token opens gated repositories.
const Token = "hf_standin"

// Seen is a request as the server saw it.
type Seen struct {
	Host          string // hub or store
	Method, Path  string
	Range         string
	IfRange       string
	Authorization string
}

// Server is a hub and its store.
type Server struct {
	URL   string // of the hub
	Store string // of the other host
	Page  int    // entries of the tree on a page; 0: all

	repos map[string]Repo   // by models/ORG/NAME, datasets/ORG/NAME
	plain map[string][]byte // by path: files without a hub around them

	mu     sync.Mutex
	faults []Fault
	seen   []Seen
}

// Start runs a server until the test ends.
func Start(t testing.TB, repos map[string]Repo) *Server {
	s := &Server{repos: map[string]Repo{}, plain: map[string][]byte{}}
	for name, r := range repos {
		s.repos[kind(r.Dataset)+"/"+name] = r
	}
	hub := httptest.NewServer(http.HandlerFunc(s.hub))
	store := httptest.NewServer(http.HandlerFunc(s.store))
	t.Cleanup(hub.Close)
	t.Cleanup(store.Close)
	s.URL, s.Store = hub.URL, store.URL
	return s
}

// Plain serves a file at URL/plain/NAME and returns its address.
func (s *Server) Plain(name string, content []byte) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plain[name] = content
	return s.URL + "/plain/" + name
}

// Seen returns the requests so far.
func (s *Server) Seen() []Seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

func kind(dataset bool) string {
	if dataset {
		return "datasets"
	}
	return "models"
}

// Commit is the repository's commit.
func (r Repo) Commit() string {
	h := sha1.New()
	for _, name := range slices.Sorted(maps.Keys(r.Files)) {
		fmt.Fprintf(h, "%s %s\n", name, r.Hash(name))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Hash is what the hub knows a file by.
func (r Repo) Hash(name string) string {
	if slices.Contains(r.LFS, name) {
		sum := sha256.Sum256(r.Files[name])
		return hex.EncodeToString(sum[:])
	}
	return gitBlob(r.Files[name])
}

func gitBlob(content []byte) string {
	sum := sha1.Sum(append(fmt.Appendf(nil, "blob %d\x00", len(content)), content...))
	return hex.EncodeToString(sum[:])
}

// note records a request and returns the fault that it meets.
func (s *Server) note(host string, r *http.Request) Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, Seen{host, r.Method, r.URL.EscapedPath(), r.Header.Get("Range"), r.Header.Get("If-Range"), r.Header.Get("Authorization")})
	for i, f := range s.faults {
		if f.meets(host, r) {
			if f.Times > 0 {
				if s.faults[i].Times--; s.faults[i].Times == 0 {
					s.faults = slices.Delete(s.faults, i, i+1)
				}
			}
			return f
		}
	}
	return Fault{}
}

// hub answers at the hub's address: /api/KIND/ORG/NAME/CALL/REVISION, [/datasets]/ORG/NAME/resolve/REVISION/PATH, /plain/NAME.
func (s *Server) hub(w http.ResponseWriter, r *http.Request) {
	f := s.note("hub", r)
	if f.answer(w, r) {
		return
	}
	path := r.URL.EscapedPath()
	if name, ok := strings.CutPrefix(path, "/plain/"); ok {
		s.file(w, r, f, name)
		return
	}
	if rest, ok := strings.CutPrefix(path, "/api/"); ok {
		s.api(w, r, strings.SplitN(rest, "/", 5))
		return
	}
	parts := strings.SplitN(strings.TrimPrefix(path, "/"), "/", 5)
	key := "models"
	if parts[0] == "datasets" {
		key = "datasets"
		parts = strings.SplitN(strings.TrimPrefix(path, "/datasets/"), "/", 5)
	}
	if len(parts) < 5 || parts[2] != "resolve" {
		refuse(w, http.StatusNotFound, "")
		return
	}
	if repo, ok := s.open(w, r, key+"/"+parts[0]+"/"+parts[1], parts[3]); ok {
		s.resolve(w, r, f, repo, parts[4])
	}
}

// file hands out what Plain was given.
func (s *Server) file(w http.ResponseWriter, r *http.Request, f Fault, name string) {
	s.mu.Lock()
	content, there := s.plain[name]
	s.mu.Unlock()
	if !there {
		refuse(w, http.StatusNotFound, "")
		return
	}
	f.send(w, r, content, `"`+gitBlob(content)+`"`)
}

// open finds a repository at a revision, or refuses as the hub does.
func (s *Server) open(w http.ResponseWriter, r *http.Request, key, revision string) (Repo, bool) {
	repo, there := s.repos[key]
	revision, _ = url.PathUnescape(revision)
	allowed := r.Header.Get("Authorization") == "Bearer "+Token
	switch {
	case !there && allowed:
		refuse(w, http.StatusNotFound, "RepoNotFound")
	case !there:
		refuse(w, http.StatusUnauthorized, "RepoNotFound")
	case repo.Gated && r.Header.Get("Authorization") == "":
		refuse(w, http.StatusUnauthorized, "GatedRepo")
	case repo.Gated && !allowed:
		refuse(w, http.StatusForbidden, "GatedRepo")
	case revision != "main" && revision != repo.Commit() && !slices.Contains(repo.Refs, revision):
		refuse(w, http.StatusNotFound, "RevisionNotFound")
	default:
		return repo, true
	}
	return repo, false
}

func refuse(w http.ResponseWriter, code int, name string) {
	if name != "" {
		w.Header().Set("X-Error-Code", name)
	}
	http.Error(w, `{"error":"no"}`, code)
}

// api answers KIND, ORG, NAME, CALL, REVISION.
func (s *Server) api(w http.ResponseWriter, r *http.Request, parts []string) {
	if len(parts) < 5 || strings.Contains(parts[4], "/") { // a slash in a revision is %2F
		refuse(w, http.StatusNotFound, "")
		return
	}
	repo, ok := s.open(w, r, strings.Join(parts[:3], "/"), parts[4])
	if !ok {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if parts[3] == "revision" {
		siblings := []map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(repo.Files)) {
			siblings = append(siblings, map[string]any{"rfilename": name})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"id": parts[1] + "/" + parts[2], "sha": repo.Commit(), "siblings": siblings, "private": false, "downloads": 0, "likes": 0, "tags": []string{}})
		return
	}
	list := repo.tree()
	if s.Page > 0 {
		at, _ := strconv.Atoi(r.URL.Query().Get("cursor"))
		end := min(len(list), at+s.Page)
		if end < len(list) {
			q := r.URL.Query()
			q.Set("cursor", strconv.Itoa(end))
			w.Header().Set("Link", fmt.Sprintf(`<%s%s?%s>; rel="next"`, s.URL, r.URL.EscapedPath(), q.Encode()))
		}
		list = list[at:end]
	}
	_ = json.NewEncoder(w).Encode(list)
}

// tree lists a repository as the API does.
func (r Repo) tree() []map[string]any {
	list := []map[string]any{}
	dirs := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(r.Files)) {
		if dir, _, ok := strings.Cut(name, "/"); ok && dir != ".." && !dirs[dir] {
			dirs[dir] = true
			list = append(list, map[string]any{"type": "directory", "oid": strings.Repeat("0", 40), "size": 0, "path": dir})
		}
		entry := map[string]any{"type": "file", "oid": gitBlob(r.Files[name]), "size": len(r.Files[name]), "path": name}
		if slices.Contains(r.LFS, name) {
			entry["lfs"] = map[string]any{"oid": r.Hash(name), "size": len(r.Files[name]), "pointerSize": 134}
		}
		list = append(list, entry)
	}
	return list
}

// resolve hands out a file, or says where the store has it.
func (s *Server) resolve(w http.ResponseWriter, r *http.Request, f Fault, repo Repo, path string) {
	name, _ := url.PathUnescape(path)
	content, there := repo.Files[name]
	if !there {
		refuse(w, http.StatusNotFound, "EntryNotFound")
		return
	}
	w.Header().Set("X-Repo-Commit", repo.Commit())
	if !slices.Contains(repo.LFS, name) {
		f.send(w, r, content, `"`+repo.Hash(name)+`"`)
		return
	}
	w.Header().Set("X-Linked-Size", strconv.Itoa(len(content)))
	w.Header().Set("X-Linked-Etag", `"`+repo.Hash(name)+`"`)
	http.Redirect(w, r, s.Store+"/"+repo.Hash(name), http.StatusFound)
}

// store answers at the other host: /HASH.
func (s *Server) store(w http.ResponseWriter, r *http.Request) {
	f := s.note("store", r)
	if f.answer(w, r) {
		return
	}
	for _, repo := range s.repos {
		for name, content := range repo.Files {
			if "/"+repo.Hash(name) == r.URL.Path {
				f.send(w, r, bytes.Clone(content), `"store-`+repo.Hash(name)[:8]+`"`)
				return
			}
		}
	}
	refuse(w, http.StatusNotFound, "")
}
