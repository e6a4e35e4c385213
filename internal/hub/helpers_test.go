package hub

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rubicon-rl/rubicon/internal/hub/hubtest"
)

const tiny = "org/tiny"

// noise is so many bytes that no compression or luck gets right.
func noise(seed uint64, n int) []byte {
	r := rand.New(rand.NewPCG(seed, 0))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// tinyRepo has what a model needs, and what it does not.
func tinyRepo() hubtest.Repo {
	return hubtest.Repo{
		Files: map[string][]byte{
			"config.json": []byte("hello\n"), "tokenizer.json": noise(1, 5000), "model.safetensors": noise(2, 300_000),
			"README.md": []byte("# tiny"), "pytorch_model.bin": noise(3, 100), "onnx/model.onnx": noise(4, 100), ".gitattributes": []byte("*"),
		},
		LFS:  []string{"model.safetensors", "pytorch_model.bin", "onnx/model.onnx"},
		Refs: []string{"refs/pr/1", "v1"},
	}
}

func start(t *testing.T) (*hubtest.Server, hubtest.Repo) {
	repo := tinyRepo()
	return hubtest.Start(t, map[string]hubtest.Repo{tiny: repo}), repo
}

// pauses records how long a client would have slept.
type pauses struct {
	mu   sync.Mutex
	list []time.Duration
}

func (p *pauses) sleep(ctx context.Context, d time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = append(p.list, d)
	return ctx.Err()
}

// options are those of a client of s with an empty cache, that does not wait.
func options(t *testing.T, s *hubtest.Server) Options {
	o := DefaultOptions()
	o.Endpoint, o.Cache = s.URL, t.TempDir()
	o.Sleep = new(pauses).sleep
	return o
}

func client(t *testing.T, o Options) *Client {
	c := New(o)
	t.Cleanup(c.Close)
	return c
}

func parse(t *testing.T, text string) Repo {
	t.Helper()
	r, err := ParseRepo(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// tree lists the files below dir with their contents; a link with what it points to.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		if d.Type()&os.ModeSymlink != 0 {
			to, err := os.Readlink(path)
			out[filepath.ToSlash(name)] = "-> " + filepath.ToSlash(to)
			return err
		}
		b, err := os.ReadFile(path)
		out[filepath.ToSlash(name)] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// holds checks that the snapshot shows the repository's wanted files, byte for byte.
func holds(t *testing.T, dir string, repo hubtest.Repo) {
	t.Helper()
	for _, name := range []string{"config.json", "tokenizer.json", "model.safetensors"} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !slices.Equal(got, repo.Files[name]) {
			t.Errorf("%s: %d bytes, %v; want the repository's %d", name, len(got), err, len(repo.Files[name]))
		}
	}
}

// landed lists what has its final name among the blobs, and the snapshot's files.
func landed(t *testing.T, cache string) (list []string) {
	for name := range tree(t, cache) {
		if !strings.HasPrefix(name, ".locks/") && !strings.HasSuffix(name, partialSuffix) {
			list = append(list, name)
		}
	}
	return list
}

// files counts the requests for files' contents.
func files(s *hubtest.Server) (list []hubtest.Seen) {
	for _, r := range s.Seen() {
		if r.Host == "store" || strings.Contains(r.Path, "/resolve/") {
			list = append(list, r)
		}
	}
	return list
}
