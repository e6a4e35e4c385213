package amaris

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/rubricmem"
)

// mark is a place in the memory: its end after an update.
type mark struct {
	Size      int64 `json:"size"`
	Documents int   `json:"documents"`
}

// store is the run's evaluation memory, opened when it is first needed. Only one update at a time works with it.
type store struct {
	dir      string // the run's folder; "": there is none
	embedder rubricmem.Embedder
	notify   func(text string) // nil: nobody listens

	mu     sync.Mutex // of the opening
	memory *rubricmem.Memory
}

// newStore opens the embedder and no files.
func newStore(run rewards.Run, embedder string) (*store, error) {
	s := &store{dir: run.Dir, notify: run.Notify}
	switch {
	case embedder == lexical:
		s.embedder = rubricmem.Lexical()
	case run.Embedder == nil:
		return nil, fmt.Errorf("embedder %s cannot be opened here: set embedder to %s", embedder, lexical)
	default:
		own, err := run.Embedder(embedder)
		if err != nil {
			return nil, fmt.Errorf("embedder %s: %w", embedder, err)
		}
		s.embedder = own
	}
	return s, nil
}

// open opens the memory: in the run's folder, or for this process alone if there is none.
func (s *store) open() (*rubricmem.Memory, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.memory != nil {
		return s.memory, nil
	}
	o := rubricmem.Options{Embedder: s.embedder}
	if s.dir != "" {
		o.Dir = filepath.Join(s.dir, "memory")
	}
	var err error
	s.memory, err = rubricmem.Open(o)
	if err == nil && s.memory.Torn() > 0 && s.notify != nil {
		s.notify(fmt.Sprintf("the memory in %s ended in a record that was not whole, of %d bytes, which are cut off: the run was stopped while it wrote; nothing that it was told is kept is lost",
			o.Dir, s.memory.Torn()))
	}
	return s.memory, err
}

// rewind brings the memory back to a place: what a killed run, or a failed try of an update, wrote after it is cut off.
func (s *store) rewind(to mark) error {
	m, err := s.open()
	if err != nil {
		return err
	}
	switch size := m.Size(); {
	case size > to.Size:
		err = m.Truncate(to.Size)
	case size < to.Size:
		err = fmt.Errorf("the memory has %d bytes, the checkpoint knows of %d: it belongs to another run", size, to.Size)
	}
	if err == nil && m.Len() != to.Documents {
		err = fmt.Errorf("the memory has %d documents, the checkpoint knows of %d: it belongs to another run", m.Len(), to.Documents)
	}
	return err
}

// add adds an update's documents and returns the place after them.
func (s *store) add(ctx context.Context, docs []rubricmem.Doc) (mark, error) {
	if err := s.memory.Add(ctx, docs...); err != nil {
		return mark{}, fmt.Errorf("write to the memory: %w", err)
	}
	return mark{s.memory.Size(), s.memory.Len()}, nil
}

func (s *store) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.memory == nil {
		return nil
	}
	return s.memory.Close() // the documents stay, for a Save that follows
}

// document makes a document. Its id tells the job, the scope and the place, so that it is the same whenever the job is run.
func document(kind rubricmem.Kind, j *job, scope string, place int, value fmt.Stringer) (rubricmem.Doc, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return rubricmem.Doc{}, fmt.Errorf("%s: %w", kind, err)
	}
	return rubricmem.Doc{
		ID: fmt.Sprintf("%d/%s/%s/%d", j.Tick, scope, kind, place), Kind: kind, Scope: scope, Step: j.Step, Text: value.String(), Data: data,
	}, nil
}
