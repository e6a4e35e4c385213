//go:build slow

package hub

import (
	"cmp"
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/hub/hubtest"
)

// python runs a program with huggingface_hub against a hub and a cache. RUBICON_TEST_PYTHON names a Python that has it.
func python(t *testing.T, s *hubtest.Server, cache, program string) string {
	t.Helper()
	bin := cmp.Or(os.Getenv("RUBICON_TEST_PYTHON"), "python3")
	if out, err := exec.Command(bin, "-c", "import huggingface_hub").CombinedOutput(); err != nil {
		t.Skipf("%s has no huggingface_hub: %v %s", bin, err, out)
	}
	cmd := exec.Command(bin, "-c", program)
	cmd.Env = append(os.Environ(), "HF_ENDPOINT="+s.URL, "HF_HOME="+cache, "HF_HUB_CACHE="+cache, "HF_HUB_DISABLE_TELEMETRY=1", "HF_HUB_DISABLE_PROGRESS_BARS=1", "HF_HUB_DISABLE_XET=1")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, err.(*exec.ExitError).Stderr)
	}
	return strings.TrimSpace(string(out))
}

// common is what both must make of a repository: not the locks, and not what huggingface_hub notes for itself.
func common(t *testing.T, cache string) map[string]string {
	out := tree(t, filepath.Join(cache, "models--org--tiny"))
	maps.DeleteFunc(out, func(name, _ string) bool { return strings.HasPrefix(name, "trees/") })
	return out
}

const wantedFiles = `["config.json", "tokenizer.json", "model.safetensors"]`

// The cache that we fill is the one that huggingface_hub fills, file by file and link by link.
func TestLayoutIsHuggingFaceHubs(t *testing.T) {
	s, _ := start(t)
	ours, theirs := options(t, s), t.TempDir()
	if _, err := client(t, ours).Pull(context.Background(), parse(t, tiny), Selection{}); err != nil {
		t.Fatal(err)
	}
	python(t, s, theirs, `import huggingface_hub; huggingface_hub.snapshot_download("org/tiny", allow_patterns=`+wantedFiles+`)`)
	got, want := common(t, ours.Cache), common(t, theirs)
	if len(want) < 7 || !maps.Equal(got, want) {
		t.Errorf("we made\n%v\nhuggingface_hub made\n%v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
}

// It finds what we fetched without asking a server.
func TestHuggingFaceHubFindsOurs(t *testing.T) {
	s, _ := start(t)
	o := options(t, s)
	dir, err := client(t, o).Pull(context.Background(), parse(t, tiny), Selection{})
	if err != nil {
		t.Fatal(err)
	}
	before := len(s.Seen())
	found := python(t, s, o.Cache, `import huggingface_hub as h
print(h.hf_hub_download("org/tiny", "model.safetensors", local_files_only=True))
print(h.snapshot_download("org/tiny", local_files_only=True))`)
	if want := filepath.Join(dir, "model.safetensors") + "\n" + dir; found != want {
		t.Errorf("it finds\n%s\nwant\n%s", found, want)
	}
	if n := len(s.Seen()); n != before {
		t.Errorf("%d requests", n-before)
	}
}

// We find what it fetched, and fetch nothing of it again.
func TestWeUseHuggingFaceHubs(t *testing.T) {
	s, repo := start(t)
	o := options(t, s)
	dir := python(t, s, o.Cache, `import huggingface_hub; print(huggingface_hub.snapshot_download("org/tiny", allow_patterns=`+wantedFiles+`))`)
	if found, err := Find(o.Cache, parse(t, tiny)); found != dir || err != nil {
		t.Errorf("found %q, %v; want %s", found, err, dir)
	}
	before := len(files(s))
	got, err := client(t, o).Pull(context.Background(), parse(t, tiny), Selection{})
	if err != nil || got != dir {
		t.Errorf("pulled to %q, %v; want %s", got, err, dir)
	}
	holds(t, got, repo)
	if n := len(files(s)); n != before {
		t.Errorf("%d files fetched that were there", n-before)
	}
}
