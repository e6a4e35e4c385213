package rubricmem

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// Options describe a Memory.
type Options struct {
	Dir      string   // folder of the log; "": the memory is gone when the program ends
	Embedder Embedder // nil: Lexical
}

// Memory is a store of documents. It is safe for use by several goroutines; one process at a time may write.
type Memory struct {
	vectors *vectors

	writing sync.Mutex // held while the log changes, before mu
	store   *store     // nil: nothing is kept on disk
	torn    int64

	mu    sync.RWMutex
	head  header
	size  int64
	docs  []entry // in order of addition; what is there never changes
	place map[string]int
	index *index
}

// entry is a document in memory.
type entry struct {
	Doc
	vector []float32 // of length 1
	end    int64     // of its frame in the log
}

// Open opens the memory in a folder, or begins one. A record that was not written to its end is cut off (see Torn); one that
// is damaged is a *DamageError. Another embedder than the one that the log names is an error; if it has no name yet, Add and
// Search look at it when they need it.
func Open(o Options) (*Memory, error) {
	if o.Embedder == nil {
		o.Embedder = Lexical()
	}
	m := newMemory(o.Embedder)
	if o.Dir == "" {
		return m, m.rebuild(nil)
	}
	var err error
	if m.store, err = openStore(o.Dir); err != nil {
		return nil, err
	}
	if m.torn, err = m.load(m.store.read); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	if o.Embedder.Name() != "" {
		if err := m.vectors.comparable(); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", o.Dir, err), m.Close())
		}
	}
	return m, nil
}

// Read reads the memory in a folder, also while a run writes it; nothing can be added. With an embedder that the log does not
// name, or none, it can be searched only for texts that are in it.
func Read(dir string, e Embedder) (*Memory, error) {
	path := filepath.Join(dir, LogName)
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("memory: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("memory: %w", err)
	}
	m := newMemory(e)
	m.store = &store{path: path, broken: fmt.Errorf("memory log %s is open for reading only", path)}
	m.torn, err = m.load(func(visit func([]byte, int64) error) (int64, error) {
		whole, err := readFrames(f, info.Size(), visit)
		if err != nil {
			return 0, at(path, err)
		}
		return info.Size() - whole, nil
	})
	return m, err
}

func newMemory(e Embedder) *Memory {
	return &Memory{vectors: &vectors{embedder: e, known: map[[32]byte][]float32{}}}
}

// load fills the memory from the frames that read visits.
func (m *Memory) load(read func(visit func(payload []byte, end int64) error) (int64, error)) (torn int64, err error) {
	var list []entry
	seen := map[string]bool{}
	torn, err = read(func(payload []byte, end int64) (err error) {
		m.size = end
		if m.head.Form == "" {
			m.head, err = readHeader(payload)
			return err
		}
		more, err := decodeEntries(payload, m.head.Dims)
		for i := range more {
			if seen[more[i].ID] {
				return fmt.Errorf("document %q is there twice", more[i].ID)
			}
			seen[more[i].ID], more[i].end = true, end
		}
		list = append(list, more...)
		return err
	})
	if err != nil {
		return 0, err
	}
	m.vectors.name, m.vectors.dims = m.head.Embedder, m.head.Dims
	for _, e := range list {
		m.vectors.learn(e.Text, e.vector)
	}
	return torn, m.rebuild(list)
}

// rebuild makes the memory hold exactly list.
func (m *Memory) rebuild(list []entry) (err error) {
	m.docs, m.place = list, make(map[string]int, len(list))
	for i := range list {
		m.place[list[i].ID] = i
	}
	if m.index, err = newIndex(); err != nil {
		return err
	}
	return m.index.add(list)
}

// Torn is how many bytes of a record that was not written to its end were found behind the last one that was. Nobody was told
// that it is kept. Open has cut it off; for Read it may be the one that a run is writing.
func (m *Memory) Torn() int64 { return m.torn }

// EmbeddedBy is the name of the embedder that made the memory's vectors; "": it has none.
func (m *Memory) EmbeddedBy() string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.head.Embedder
}

// Len is the number of documents.
func (m *Memory) Len() int {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return len(m.docs)
}

// Size is the length of the log, which a checkpoint notes for Truncate.
func (m *Memory) Size() int64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.size
}

// Get returns the document with an ID. Its Data is shared and must not be changed, as with all documents that are returned.
func (m *Memory) Get(id string) (Doc, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	i, ok := m.place[id]
	if !ok {
		return Doc{}, false
	}
	return m.docs[i].Doc, true
}

// All are the documents that are there now, in order of addition.
func (m *Memory) All() iter.Seq[Doc] {
	m.mu.RLock()
	docs := m.docs
	m.mu.RUnlock()
	return func(yield func(Doc) bool) {
		for _, e := range docs {
			if !yield(e.Doc) {
				return
			}
		}
	}
}

// Last returns up to n of the documents that the filter takes, those of the latest steps first; within a step, those that were
// added last.
func (m *Memory) Last(n int, f Filter) []Doc {
	var list []Doc
	for d := range m.All() {
		if f.takes(&d) {
			list = append(list, d)
		}
	}
	slices.Reverse(list)
	slices.SortStableFunc(list, func(a, b Doc) int { return cmp.Compare(b.Step, a.Step) })
	return list[:min(max(n, 0), len(list))]
}

// Search returns, for each query, the d documents that the filter takes and that are most similar to it, fewer if there are
// fewer. Equal ones are in the order of their IDs; of documents with the same text only the first is returned.
func (m *Memory) Search(ctx context.Context, queries []string, d int, f Filter) ([][]Hit, error) {
	if d < 1 {
		return nil, fmt.Errorf("memory: search for %d documents: set the number to 1 or more", d)
	}
	vectors, err := m.vectors.of(ctx, queries)
	if err != nil {
		return nil, err
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	get := func(id string) *Doc { return &m.docs[m.place[id]].Doc }
	list := make([][]Hit, len(queries))
	for i, vector := range vectors {
		if list[i], err = m.index.search(ctx, vector, d, &f, get); err != nil {
			return nil, err
		}
	}
	return list, nil
}
