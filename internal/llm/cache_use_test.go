package llm

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// Several users of one folder, in one process and in several, must neither corrupt it nor exceed its limit.
func TestCacheShared(t *testing.T) {
	dir := t.TempDir()
	const limit = 64 << 10
	var group sync.WaitGroup
	for u := range 4 {
		c := cacheIn(t, dir, limit)
		for w := range 2 {
			group.Go(func() {
				for i := range 500 {
					if err := c.put(keyNumber(i), text(i)); err != nil {
						t.Error(err)
					}
					kept(t, c, (i+u+w)%500, (i+u+w)%500+3)
				}
			})
		}
	}
	group.Wait()
	last := cacheIn(t, dir, limit)
	if n := kept(t, last, 0, 500); n == 0 {
		t.Error("nothing is left")
	}
	// Each user may be one segment ahead of what the others know.
	if _, size := segmentsOf(t, dir); size > limit+4*limit/segmentsPerLimit {
		t.Errorf("%d bytes", size)
	}
}

// TestCacheKilled kills a process that writes; all that it had written must be there and right.
func TestCacheKilled(t *testing.T) {
	if dir := os.Getenv("LLM_CACHE_DIR"); dir != "" {
		c := cacheIn(t, dir, 64<<20)
		for i := 0; ; i++ {
			putAll(t, c, i, i+1)
			fmt.Println("put", i)
		}
	}
	dir := t.TempDir()
	child := exec.Command(os.Args[0], "-test.run=^TestCacheKilled$")
	child.Env = append(os.Environ(), "LLM_CACHE_DIR="+dir)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	written := 0
	for lines := bufio.NewScanner(out); written < 500 && lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "put ") {
			written++
		}
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := child.Wait(); !errors.As(err, &exit) || written < 500 {
		t.Fatalf("%v after %d answers", err, written)
	}
	if n := kept(t, cacheIn(t, dir, 64<<20), 0, written); n != written {
		t.Errorf("%d of %d answers survived", n, written)
	}
}

// Only good answers may be kept, and one that a new Check refuses must be asked for again.
func TestWhatIsCached(t *testing.T) {
	f, calls := says("no", "no", `{"ok": true}`, `{"ok": false}`)
	o := options(f)
	o.Cache = t.TempDir()
	ask := func(want string, n int) {
		t.Helper()
		answer, _ := client(t, o).Ask(t.Context(), verdict)
		if answer != want || len(*calls) != n {
			t.Errorf("%q after %d calls, want %q after %d", answer, len(*calls), want, n)
		}
	}
	ask("", 2)
	ask(`{"ok": true}`, 3)
	ask(`{"ok": true}`, 3)
	two := 0.5
	o.Temperature = &two
	ask(`{"ok": false}`, 4) // another temperature is another question
	o.Temperature = nil
	o.Model = "other"
	ask(`{"ok": false}`, 5)
	o.Model = "m"
	q := verdict
	q.Check = func(answer string) error {
		if strings.Contains(answer, "true") {
			return errors.New("not true")
		}
		return nil
	}
	if answer, err := client(t, o).Ask(t.Context(), q); answer != `{"ok": false}` || err != nil || len(*calls) != 6 {
		t.Errorf("%q, %v after %d calls", answer, err, len(*calls))
	}
}
