// Package board serves the folders of runs as a web page: read only, from the files that a run writes, live or ended.
package board

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/rubicon-rl/rubicon/trainer/track"
)

// Run is the folder of one run. Its methods may be called from several goroutines.
type Run struct {
	Name, dir string

	mu      sync.Mutex
	records []track.Record
	offset  int64  // bytes of metrics.jsonl that are in records
	last    []byte // the line before offset
	epoch   int    // how often the file was cut and read anew
}

// Open returns the run in the folder dir, which must hold config.yaml or metrics.jsonl.
func Open(dir string) (*Run, error) {
	for _, name := range []string{"config.yaml", "metrics.jsonl"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			full, err := filepath.Abs(dir)
			if err != nil {
				return nil, fmt.Errorf("open run %s: %w", dir, err)
			}
			return &Run{Name: filepath.Base(full), dir: full}, nil
		}
	}
	return nil, fmt.Errorf("%s holds no run (neither config.yaml nor metrics.jsonl): name the output_dir of a run", dir)
}

// At is the run that is going to write into the folder dir.
func At(dir string) *Run { return &Run{Name: filepath.Base(filepath.Clean(dir)), dir: dir} }

// Records returns the records of metrics.jsonl so far and the epoch, which changes when a resumed run has cut the file.
// Only what was appended since the last call is read; a line without its end is left for the next call. The caller must
// not change the records.
func (r *Run) Records() ([]track.Record, int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	path := filepath.Join(r.dir, "metrics.jsonl")
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, r.epoch, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("read metrics: %w", err)
	}
	defer f.Close()
	if !r.continues(f) {
		r.records, r.offset, r.last = nil, 0, nil
		r.epoch++
	}
	b, err := io.ReadAll(io.NewSectionReader(f, r.offset, 1<<62))
	if err != nil {
		return nil, 0, fmt.Errorf("read metrics: %w", err)
	}
	for {
		n := bytes.IndexByte(b, '\n') + 1
		if n == 0 {
			return r.records, r.epoch, nil
		}
		var rec track.Record
		if err := json.Unmarshal(b[:n], &rec); err != nil {
			return nil, 0, fmt.Errorf("%s, record %d: %w", path, len(r.records)+1, err)
		}
		r.records = append(r.records, rec)
		r.last = bytes.Clone(b[:n])
		r.offset += int64(n)
		b = b[n:]
	}
}

// continues reports whether the last line that was read is still where it was.
func (r *Run) continues(f io.ReaderAt) bool {
	b := make([]byte, len(r.last))
	_, err := f.ReadAt(b, r.offset-int64(len(b)))
	return len(b) == 0 || err == nil && bytes.Equal(b, r.last)
}

// Steps returns the steps whose completions were written, ascending.
func (r *Run) Steps() []int {
	steps := []int{}
	entries, _ := os.ReadDir(filepath.Join(r.dir, "completions")) // no folder: none were written yet
	for _, e := range entries {
		s, isStep := strings.CutPrefix(strings.TrimSuffix(e.Name(), ".jsonl"), "step_")
		if n, err := strconv.Atoi(s); isStep && err == nil {
			steps = append(steps, n)
		}
	}
	slices.Sort(steps)
	return steps
}

// Completions returns the lines of completions/step_N.jsonl as they are.
func (r *Run) Completions(step int) ([]json.RawMessage, error) {
	return lines(filepath.Join(r.dir, "completions", fmt.Sprintf("step_%d.jsonl", step)))
}

// Rubric returns the events of the rubric log, oldest first; none if the run has no log.
func (r *Run) Rubric() ([]json.RawMessage, error) {
	events, err := lines(filepath.Join(r.dir, "rubrics", "log.jsonl"))
	if errors.Is(err, fs.ErrNotExist) {
		return []json.RawMessage{}, nil
	}
	return events, err
}

// lines returns the JSON lines of a file; a last line without its end is left out.
func lines(path string) ([]json.RawMessage, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	out := []json.RawMessage{}
	for line := range bytes.Lines(b) {
		if bytes.HasSuffix(line, []byte("\n")) && json.Valid(line) {
			out = append(out, line)
		}
	}
	return out, nil
}
