package amaris

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rubicon-rl/rubicon/rewards/criteria"
	"github.com/rubicon-rl/rubicon/rubricmem"
)

// The files of a checkpoint: the state, and the documents of the memory, one a line, for a run that goes on in another folder.
const (
	stateFile  = "amaris.json"
	memoryFile = "memory.jsonl.gz"
)

// saved is the state on disk. One state has one form.
type saved struct {
	Tick     int        `json:"tick"`
	Last     int        `json:"last"`
	Rubrics  []rubric   `json:"rubrics"` // in the order of their scopes
	Jobs     []*job     `json:"jobs"`
	Memory   mark       `json:"memory"`
	Start    *coldStart `json:"start"`
	LogBytes int64      `json:"log_bytes"`
}

// Save implements rewards.Saver. What the background has made of an update that is not in force is left out; its inputs are
// saved instead.
func (p *Provider) Save(dir string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.state
	out := saved{Tick: s.tick, Last: s.last, Jobs: s.jobs, Memory: s.end, Start: s.start, LogBytes: p.journal.Size()}
	for _, scope := range slices.Sorted(maps.Keys(s.rubrics)) {
		out.Rubrics = append(out.Rubrics, s.rubrics[scope])
	}
	text, err := json.Marshal(out)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, stateFile), append(text, '\n'), 0o644)
	}
	if err == nil && s.end.Documents > 0 {
		err = p.workshop.store.export(filepath.Join(dir, memoryFile), s.end.Documents)
	}
	if err != nil {
		return fmt.Errorf("amaris: saving the state: %w", err)
	}
	return nil
}

// export writes the first n documents to a file.
func (s *store) export(path string, n int) (err error) {
	m, err := s.open()
	if err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	packed := gzip.NewWriter(f)
	e := json.NewEncoder(packed)
	written := 0
	for doc := range m.All() {
		if written == n {
			break
		}
		if err := e.Encode(doc); err != nil {
			return err
		}
		written++
	}
	if written < n {
		return fmt.Errorf("the memory has %d documents, %d are to be saved", written, n)
	}
	return packed.Close()
}

// Load implements rewards.Saver. The run's log and memory are cut to their lengths at the time of Save when they are
// written to next, so that a checkpoint can be looked at without harm to them. A memory that has nothing is filled.
func (p *Provider) Load(dir string) error {
	if err := p.load(dir); err != nil {
		return fmt.Errorf("amaris: loading the state: %w", err)
	}
	return nil
}

func (p *Provider) load(dir string) error {
	path := filepath.Join(dir, stateFile)
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var in saved
	if err := json.Unmarshal(text, &in); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	s := newState()
	s.tick, s.last, s.jobs, s.end, s.start = in.Tick, in.Last, in.Jobs, in.Memory, in.Start
	for _, r := range in.Rubrics {
		s.rubrics[r.Set.Scope()] = r
	}
	if err := p.fits(in); err != nil {
		return err
	}
	for _, j := range s.jobs {
		if j == nil || j.Tick <= s.last || j.Tick > s.tick {
			return fmt.Errorf("%s: a pending update is not between tick %d and %d", path, s.last, s.tick)
		}
		j.done = make(chan struct{})
	}
	if p.workshop == nil && (len(s.jobs) > 0 || s.end.Documents > 0) {
		return errors.New("the checkpoint has a memory, but the rubric is frozen: set frozen to false, or start a new run with from_run")
	}
	if s.end.Documents > 0 {
		if s.end, err = p.workshop.store.fill(filepath.Join(dir, memoryFile), s.end); err != nil {
			return err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state = s
	p.journal.Rewind(in.LogBytes)
	return nil
}

// fits refuses a checkpoint of a run whose rubrics came about in another way: going on from it would begin them anew.
func (p *Provider) fits(in saved) error {
	for _, r := range in.Rubrics {
		if global := r.Set.Scope() == criteria.Global; global != (p.options.Scope == scopeGlobal) {
			return fmt.Errorf("the checkpoint's rubrics are not of scope %s: set scope as in the run that it is of, or start a new run with from_run", p.options.Scope)
		}
	}
	if p.origin.cold() && in.Start == nil && len(in.Rubrics) > 0 {
		return errors.New("the checkpoint is of a run that began with a rubric, and now there is none: set rubric, file or from_run as then")
	}
	return nil
}

// fill adds the documents of a file to a memory that has none, update by update as they were added at first, and returns
// where they end. A memory that is damaged, or shorter than the checkpoint knows, is an error that says how to have it written anew.
func (s *store) fill(path string, end mark) (mark, error) {
	m, err := s.open()
	switch {
	case err != nil:
		return end, err
	case m.Len() > 0 && m.Size() < end.Size:
		return end, fmt.Errorf("the memory in %s has %d bytes, the checkpoint knows of %d: if it is not another run's, remove memory.log there: train --resume then writes it anew from the checkpoint",
			filepath.Join(s.dir, "memory"), m.Size(), end.Size)
	case m.Len() > 0:
		return end, nil
	}
	docs, err := readDocuments(path)
	if err != nil {
		return end, err
	}
	if len(docs) != end.Documents {
		return end, fmt.Errorf("%s has %d documents, the checkpoint knows of %d", path, len(docs), end.Documents)
	}
	for from, i := 0, 1; i <= len(docs); i++ {
		if i < len(docs) && tickOf(docs[i]) == tickOf(docs[from]) {
			continue
		}
		if end, err = s.add(context.Background(), docs[from:i]); err != nil {
			return end, err
		}
		from = i
	}
	return end, nil
}

// tickOf is the part of a document's id that names the job.
func tickOf(doc rubricmem.Doc) string {
	tick, _, _ := strings.Cut(doc.ID, "/")
	return tick
}

func readDocuments(path string) ([]rubricmem.Doc, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	packed, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	d := json.NewDecoder(packed)
	var docs []rubricmem.Doc
	for {
		var doc rubricmem.Doc
		if err := d.Decode(&doc); errors.Is(err, io.EOF) {
			return docs, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		docs = append(docs, doc)
	}
}
