package amaris

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rubicon-rl/rubicon/rubricmem"
)

// A memory whose last record is not whole is cut, and the user is told once.
func TestTornMemoryIsTold(t *testing.T) {
	run, _ := scripted(nil)
	run.Dir = t.TempDir()
	p := mustNew(t, run, map[string]any{"rubric": easy, "execution": "sync"})
	mustStep(t, p, 0, group("p", nil, "x"))
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(run.Dir, "memory", rubricmem.LogName)
	log, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, log[:len(log)-7], 0o644); err != nil {
		t.Fatal(err)
	}
	var told []string
	run.Notify = func(text string) { told = append(told, text) }
	q := mustNew(t, run, map[string]any{"rubric": easy, "execution": "sync"})
	for range 2 {
		if _, err := q.workshop.store.open(); err != nil {
			t.Fatal(err)
		}
	}
	if len(told) != 1 || !contains(told[0], "not whole", filepath.Dir(path)) {
		t.Errorf("told %q", told)
	}
}
