package amaris

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
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

// A memory that is damaged, or shorter than the checkpoint knows, is found when the checkpoint is loaded; without the file the
// memory is written anew, the same byte for byte.
func TestMemoryIsWrittenAnewFromACheckpoint(t *testing.T) {
	settings := map[string]any{"rubric": easy, "execution": "sync"}
	run, _ := scripted(nil)
	run.Dir = t.TempDir()
	p := mustNew(t, run, settings)
	for step := range 3 {
		mustStep(t, p, step, group("p", nil, "x"))
	}
	checkpoint := t.TempDir()
	if err := p.Save(checkpoint); err != nil {
		t.Fatal(err)
	}
	end := p.state.end.Size
	short := end / 2
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(run.Dir, "memory", rubricmem.LogName)
	log, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	flipped := slices.Clone(log)
	flipped[short] ^= 1
	for name, bad := range map[string][]byte{"short": log[:short], "flipped": flipped} {
		if err := os.WriteFile(path, bad, 0o644); err != nil {
			t.Fatal(err)
		}
		q := mustNew(t, run, settings)
		if err := q.Load(checkpoint); err == nil || !contains(err.Error(), "remove", "writes it anew from the checkpoint") {
			t.Errorf("%s: %v", name, err)
		}
		if err := q.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	q := mustNew(t, run, settings)
	if err := q.Load(checkpoint); err != nil {
		t.Fatal(err)
	}
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	if again, err := os.ReadFile(path); err != nil || !bytes.Equal(again, log[:end]) {
		t.Errorf("%d bytes, error %v, before %d", len(again), err, end)
	}
}
