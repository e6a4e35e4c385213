package rubricmem

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// noted is a file that notes what is done to it.
type noted struct {
	*os.File
	did   []string
	fault error // of the next Sync
}

func (n *noted) Write(b []byte) (int, error) {
	n.did = append(n.did, "write")
	return n.File.Write(b)
}

func (n *noted) Truncate(size int64) error {
	n.did = append(n.did, "truncate")
	return n.File.Truncate(size)
}

func (n *noted) Sync() error {
	n.did = append(n.did, "sync")
	err := n.fault
	n.fault = nil
	return err
}

// Documents are flushed to disk before they are acknowledged, several with one flush; a flush that fails acknowledges nothing.
// No kill of a process can show this: what it has written stays in the system's memory.
func TestFlushedBeforeAcknowledged(t *testing.T) {
	dir := t.TempDir()
	m := open(t, Options{Dir: dir})
	f := &noted{File: m.store.file.(*os.File)}
	m.store.file = f
	expect := func(want string) {
		t.Helper()
		if got := strings.Join(f.did, " "); got != want {
			t.Errorf("did %q, want %q", got, want)
		}
		f.did = nil
	}
	must(t, m.Add(t.Context(), doc("a", Analysis, 1, "a"), doc("b", Analysis, 1, "b")))
	expect("write sync")
	size := m.Size()
	f.fault = syscall.EIO
	if err := m.Add(t.Context(), doc("c", Analysis, 1, "c")); !errors.Is(err, syscall.EIO) || m.Len() != 2 {
		t.Errorf("error %v, %d documents", err, m.Len())
	}
	expect("write sync truncate sync")
	if info, err := os.Stat(filepath.Join(dir, LogName)); err != nil || info.Size() != size {
		t.Errorf("the file has %d bytes, want %d", info.Size(), size)
	}
	must(t, m.Truncate(0))
	expect("truncate sync")
}
