//go:build unix

package rubricmem

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// childDir names the variable that makes the test binary a writer that waits to be killed.
const childDir = "RUBRICMEM_CHILD_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		if err := writeForever(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// numbered is the document with a number; every third is large, so that a kill can hit it halfway.
func numbered(i int) Doc {
	text := fmt.Sprint("document ", i)
	if i%3 == 0 {
		text += strings.Repeat(" x", 200_000)
	}
	return doc(strconv.Itoa(i), Kinds()[i%4], i, text)
}

// writeForever adds one document after the other and says each number when it is acknowledged.
func writeForever(dir string) error {
	m, err := Open(Options{Dir: dir, Embedder: short{}})
	if err != nil {
		return err
	}
	for i := m.Len(); ; i++ {
		if err := m.Add(context.Background(), numbered(i)); err != nil {
			return err
		}
		if _, err := fmt.Println(i); err != nil {
			return err
		}
	}
}

// testKills kills a writer again and again, at random moments, and looks for what it was told is kept.
func testKills(t *testing.T, kills int) {
	r := rand.New(rand.NewPCG(6, 1))
	torn, dir, acknowledged := 0, "", 0
	for k := range kills {
		if k%25 == 0 {
			dir, acknowledged = t.TempDir(), 0
		}
		acknowledged = max(acknowledged, killWriter(t, dir, r))
		m, err := Open(Options{Dir: dir, Embedder: short{}})
		if err != nil {
			t.Fatalf("kill %d: %v", k, err)
		}
		if m.Torn() > 0 {
			torn++
		}
		if m.Len() < acknowledged {
			t.Fatalf("kill %d: %d documents, %d were acknowledged", k, m.Len(), acknowledged)
		}
		i := 0
		for d := range m.All() {
			if want := numbered(i); d.ID != want.ID || d.Text != want.Text || d.Kind != want.Kind {
				t.Fatalf("kill %d: document %d is %.60v", k, i, d)
			}
			i++
		}
		must(t, m.Close())
	}
	t.Logf("%d kills, %d left a torn tail", kills, torn)
}

// killWriter has a child write into dir, kills it a moment after a few documents, and returns how many there are that it has
// acknowledged.
func killWriter(t *testing.T, dir string, r *rand.Rand) (acknowledged int) {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childDir+"="+dir)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	must(t, err)
	must(t, child.Start())
	killer := time.AfterFunc(time.Minute, func() { _ = child.Process.Kill() }) // if it hangs
	lines, left := bufio.NewScanner(out), 1+r.IntN(5)
	for lines.Scan() {
		n, err := strconv.Atoi(lines.Text())
		must(t, err)
		acknowledged = n + 1
		if left--; left == 0 {
			time.Sleep(time.Duration(r.IntN(12_000)) * time.Microsecond)
			must(t, child.Process.Kill())
		}
	}
	_ = child.Wait() // it was killed
	killer.Stop()
	if left > 0 {
		t.Fatalf("the writer ended by itself after document %d", acknowledged-1)
	}
	return acknowledged
}
