package hub

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/hub/hubtest"
)

// The names are those that git hash-object and sha256sum give for the contents; the layout is huggingface_hub's.
func TestPullMakesTheOrdinaryLayout(t *testing.T) {
	s, repo := start(t)
	repo.Files["model.safetensors"] = []byte("hello\n")
	o := options(t, s)
	dir, err := client(t, o).Pull(context.Background(), parse(t, tiny), Selection{})
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(o.Cache, "models--org--tiny")
	if want := filepath.Join(root, "snapshots", repo.Commit()); dir != want {
		t.Errorf("returned %s, want %s", dir, want)
	}
	const git, sha = "ce013625030ba8dba906f756967f9e9ca394464a", "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"
	tokenizer := repo.Hash("tokenizer.json")
	snapshot := "snapshots/" + repo.Commit() + "/"
	want := map[string]string{
		"refs/main": repo.Commit(), "blobs/" + git: "hello\n", "blobs/" + sha: "hello\n", "blobs/" + tokenizer: string(repo.Files["tokenizer.json"]),
		snapshot + "config.json": "-> ../../blobs/" + git, snapshot + "model.safetensors": "-> ../../blobs/" + sha, snapshot + "tokenizer.json": "-> ../../blobs/" + tokenizer,
	}
	if got := tree(t, root); !maps.Equal(got, want) {
		t.Errorf("the cache holds\n%v\nwant\n%v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
}

// A second pull asks for no content; a branch with slashes and a commit are found too, and share the blobs.
func TestPullAgain(t *testing.T) {
	s, repo := start(t)
	c := client(t, options(t, s))
	if _, err := c.Pull(context.Background(), parse(t, tiny), Selection{}); err != nil {
		t.Fatal(err)
	}
	before := len(files(s))
	for _, name := range []string{tiny, tiny + "@refs/pr/1", tiny + "@" + repo.Commit()} {
		dir, err := c.Pull(context.Background(), parse(t, name), Selection{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		holds(t, dir, repo)
		if found, err := Find(c.o.Cache, parse(t, name)); found != dir || err != nil {
			t.Errorf("%s is found in %q, %v; pulled to %s", name, found, err, dir)
		}
	}
	if n := len(files(s)); n != before {
		t.Errorf("%d further requests for contents that were there", n-before)
	}
	if got := tree(t, filepath.Join(c.o.Cache, "models--org--tiny", "refs")); len(got) != 2 || got["refs/pr/1"] != repo.Commit() {
		t.Errorf("refs %v", got)
	}
}

// The token opens the hub's gate, and no other host sees it.
func TestTokenStaysWithTheHub(t *testing.T) {
	repo := tinyRepo()
	repo.Gated = true
	s := hubtest.Start(t, map[string]hubtest.Repo{tiny: repo})
	o := options(t, s)
	o.Token = hubtest.Token
	dir, err := client(t, o).Pull(context.Background(), parse(t, tiny), Selection{})
	if err != nil {
		t.Fatal(err)
	}
	holds(t, dir, repo)
	hosts := map[string]bool{}
	for _, r := range s.Seen() {
		hosts[r.Host] = true
		if got := r.Authorization; (r.Host == "hub") != (got == "Bearer "+hubtest.Token) {
			t.Errorf("%s %s was asked with Authorization %q", r.Host, r.Path, got)
		}
	}
	if !hosts["store"] {
		t.Error("the other host was never asked, so that this shows nothing")
	}
}

func TestRefusals(t *testing.T) {
	gated := tinyRepo()
	gated.Gated = true
	s := hubtest.Start(t, map[string]hubtest.Repo{tiny: tinyRepo(), "org/gated": gated})
	for _, c := range []struct{ repo, token, want string }{
		{"org/none", "", "check the name; for a private one set HF_TOKEN"},
		{"org/none", hubtest.Token, "is not there: check the name"},
		{"org/gated", "", "accept its conditions at " + s.URL + "/org/gated, then set HF_TOKEN"},
		{"org/gated", "hf_other", "this account has no access"},
		{tiny + "@v9", "", "has no revision v9"},
	} {
		o := options(t, s)
		o.Token = c.token
		_, err := client(t, o).Pull(context.Background(), parse(t, c.repo), Selection{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.repo, err, c.want)
		}
	}
	if n := len(s.Seen()); n != 5+0 {
		t.Errorf("%d requests: what a server refuses was asked for again", n)
	}
}

// A hub that names a file outside of its folder, or something that is no hash, gets nothing written.
func TestHostileNames(t *testing.T) {
	for _, name := range []string{"../../evil.json", "/etc/evil.json", "a/../../evil.json", `..\evil.json`, "C:evil.json"} {
		repo := tinyRepo()
		repo.Files[name] = []byte("evil")
		s := hubtest.Start(t, map[string]hubtest.Repo{tiny: repo})
		o := options(t, s)
		_, err := client(t, o).Pull(context.Background(), parse(t, tiny), Selection{Include: []string{"*"}})
		if err == nil || !strings.Contains(err.Error(), "nothing is downloaded") {
			t.Errorf("%s: %v", name, err)
		}
		if got := tree(t, o.Cache); len(got) > 0 {
			t.Errorf("%s: wrote %v", name, got)
		}
	}
	for _, e := range []treeEntry{{Path: "a", OID: "../../etc"}, {Path: "a", OID: strings.Repeat("A", 40)}, {Path: "a", OID: strings.Repeat("a", 40), Size: -1}} {
		if f, err := e.file(); err == nil {
			t.Errorf("%+v was taken as %+v", e, f)
		}
	}
}

func TestOffline(t *testing.T) {
	s, repo := start(t)
	o := options(t, s)
	o.Offline = true
	var missing *NotCached
	if _, err := client(t, o).Pull(context.Background(), parse(t, tiny), Selection{}); !errors.As(err, &missing) || !strings.Contains(err.Error(), "rubicon pull "+tiny) {
		t.Errorf("with an empty cache: %v", err)
	}
	o.Offline = false
	if _, err := client(t, o).Pull(context.Background(), parse(t, tiny), Selection{}); err != nil {
		t.Fatal(err)
	}
	before := len(s.Seen())
	o.Offline = true
	c := client(t, o)
	dir, err := c.Pull(context.Background(), parse(t, tiny), Selection{})
	if err != nil {
		t.Fatal(err)
	}
	holds(t, dir, repo)
	if err := c.FetchAll(context.Background(), []Download{{URL: s.URL, Name: "x", Path: filepath.Join(t.TempDir(), "x"), Size: -1}}); !errors.Is(err, errOffline) {
		t.Errorf("a download while offline: %v", err)
	}
	if _, _, err := c.RepoFiles(context.Background(), parse(t, tiny), []string{"*"}, t.TempDir()); !errors.Is(err, errOffline) {
		t.Errorf("a list while offline: %v", err)
	}
	if n := len(s.Seen()); n != before {
		t.Errorf("%d requests while offline", n-before)
	}
}

// Nothing is fetched if it has no room; what an earlier try left counts.
func TestRoom(t *testing.T) {
	s, repo := start(t)
	o := options(t, s)
	need := int64(6 + 5000 + 300_000)
	o.Free = func(string) (int64, bool) { return need - 1, true }
	_, err := client(t, o).Pull(context.Background(), parse(t, tiny), Selection{})
	if err == nil || !strings.Contains(err.Error(), "the download needs 305 kB") || len(files(s)) > 0 {
		t.Errorf("%v after %d downloads", err, len(files(s)))
	}
	part := filepath.Join(o.Cache, "models--org--tiny", "blobs", repo.Hash("model.safetensors")+partialSuffix)
	if err := os.WriteFile(part, repo.Files["model.safetensors"][:1], 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := client(t, o).Pull(context.Background(), parse(t, tiny), Selection{}); err != nil {
		t.Errorf("with one byte there: %v", err)
	}
}

// Two processes that want the same fetch each file once between them.
func TestTwoPullsShare(t *testing.T) {
	s, repo := start(t)
	o := options(t, s)
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			c := New(o)
			defer c.Close()
			dir, err := c.Pull(context.Background(), parse(t, tiny), Selection{})
			if err != nil {
				t.Error(err)
				return
			}
			holds(t, dir, repo)
		})
	}
	group.Wait()
	seen := map[string]int{}
	for _, r := range files(s) {
		seen[r.Host+r.Path]++
	}
	for path, n := range seen {
		if n != 1 {
			t.Errorf("%s was fetched %d times", path, n)
		}
	}
}

// A torn blob, and a link to nothing, are put right.
func TestTornCache(t *testing.T) {
	s, repo := start(t)
	o := options(t, s)
	c := client(t, o)
	dir, err := c.Pull(context.Background(), parse(t, tiny), Selection{})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir, "model.safetensors"), 10); err != nil { // through the link
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(o.Cache, "models--org--tiny", "blobs", repo.Hash("config.json"))); err != nil {
		t.Fatal(err)
	}
	if dir, err = c.Pull(context.Background(), parse(t, tiny), Selection{}); err != nil {
		t.Fatal(err)
	}
	holds(t, dir, repo)
}

// What another commit has fetched is linked, not fetched again.
func TestBlobsAreShared(t *testing.T) {
	s, repo := start(t)
	c := client(t, options(t, s))
	dir, err := c.Pull(context.Background(), parse(t, tiny), Selection{})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	before := len(files(s))
	if dir, err = c.Pull(context.Background(), parse(t, tiny), Selection{}); err != nil {
		t.Fatal(err)
	}
	holds(t, dir, repo)
	if n := len(files(s)); n != before {
		t.Errorf("%d requests for what was there", n-before)
	}
}

// The branch's name moves to a new commit only when all of it is there.
func TestRefMovesLast(t *testing.T) {
	s, repo := start(t)
	o := options(t, s)
	old := strings.Repeat("1", 40)
	root := filepath.Join(o.Cache, "models--org--tiny")
	if err := writeRef(root, "main", old); err != nil {
		t.Fatal(err)
	}
	s.Fail(hubtest.Fault{Host: "store", Status: 404})
	if _, err := client(t, o).Pull(context.Background(), parse(t, tiny), Selection{}); err == nil {
		t.Fatal("no error without weights")
	}
	if got := tree(t, root)["refs/main"]; got != old {
		t.Errorf("after a failed pull main is %q", got)
	}
	s.Heal()
	if _, err := client(t, o).Pull(context.Background(), parse(t, tiny), Selection{}); err != nil {
		t.Fatal(err)
	}
	if got := tree(t, root)["refs/main"]; got != repo.Commit() {
		t.Errorf("main is %q, want %q", got, repo.Commit())
	}
}

// A listing in pages is read to its end.
func TestPages(t *testing.T) {
	s, repo := start(t)
	s.Page = 2
	_, list, err := client(t, options(t, s)).Files(context.Background(), parse(t, tiny))
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != len(repo.Files) {
		t.Errorf("listed %d files, want %d", len(list), len(repo.Files))
	}
}
