package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/rubicon-rl/rubicon/rubricmem"
)

// TestMemoryScript runs the transcript of the memory commands on runs whose memories are made here.
func TestMemoryScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Files: []string{"testdata/memory.txtar"},
		Setup: func(e *testscript.Env) error {
			work := e.Getenv("WORK")
			if err := makeMemory(filepath.Join(work, "run", "memory"), rubricmem.Lexical()); err != nil {
				return err
			}
			if err := makeMemory(filepath.Join(work, "mixed", "rewards", "amaris", "memory"), elsewhere{}); err != nil {
				return err
			}
			return breakMemory(filepath.Join(work, "run", "memory"), work)
		},
	})
}

// elsewhere is an embedder whose model the commands do not have.
type elsewhere struct{}

func (elsewhere) Name() string { return "elsewhere 1" }

func (elsewhere) Embed(_ context.Context, texts []string) ([][]float32, error) {
	list := make([][]float32, len(texts))
	for i := range list {
		list[i] = []float32{1}
	}
	return list, nil
}

func makeMemory(dir string, e rubricmem.Embedder) error {
	m, err := rubricmem.Open(rubricmem.Options{Dir: dir, Embedder: e})
	if err != nil {
		return err
	}
	for _, d := range []rubricmem.Doc{
		{ID: "a-1-0", Kind: rubricmem.Analysis, Scope: "global", Prompt: "p1", Step: 1, Version: 1, Text: "The story repeats its first sentence to gain length.\n# Not a heading \x1b[31m"},
		{ID: "a-1-1", Kind: rubricmem.Analysis, Scope: "global", Prompt: "p2", Step: 1, Version: 1, Text: "An honest story."},
		{ID: "s-1", Kind: rubricmem.StepSummary, Scope: "global", Step: 1, Version: 1, Text: "Length is rewarded; repetition begins."},
		{ID: "u-2", Kind: rubricmem.UpdateRecord, Scope: "p7", Prompt: "p7", Step: 2, Version: 4, Text: "Reweighted the criterion on repetition.", Data: json.RawMessage(`{"strategy":"Defensive","ops":[]}`)},
	} {
		if err := m.Add(context.Background(), d); err != nil {
			return err
		}
	}
	return m.Close()
}

// breakMemory makes copies of a memory: torn ends in the middle of a record, damaged has a changed byte.
func breakMemory(dir, work string) error {
	log, err := os.ReadFile(filepath.Join(dir, rubricmem.LogName))
	if err != nil {
		return err
	}
	damaged := slices.Clone(log)
	damaged[len(log)/2] ^= 1
	for name, bytes := range map[string][]byte{"torn": log[:len(log)-7], "damaged": damaged} {
		if err := os.MkdirAll(filepath.Join(work, name, "memory"), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(work, name, "memory", rubricmem.LogName), bytes, 0o644); err != nil {
			return err
		}
	}
	return nil
}
