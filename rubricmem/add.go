package rubricmem

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Add adds documents. When it returns without an error they are on disk and can be found; after an error none of them is
// there. A document whose ID is there already with the same text is left out; with another text it is an error.
func (m *Memory) Add(ctx context.Context, docs ...Doc) error {
	if err := m.writable(); err != nil {
		return err
	}
	for i := range docs {
		if err := docs[i].check(); err != nil {
			return err
		}
	}
	docs, err := asStored(docs)
	if err != nil {
		return err
	}
	fresh, err := m.fresh(docs)
	if err != nil || len(fresh) == 0 {
		return err
	}
	if _, err := m.vectors.of(ctx, textsOf(fresh)); err != nil {
		return err
	}
	m.writing.Lock()
	defer m.writing.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if fresh, err = m.fresh(fresh); err != nil || len(fresh) == 0 { // another may have added them meanwhile
		return err
	}
	return m.write(ctx, fresh)
}

// writable says why nothing can be added.
func (m *Memory) writable() error {
	m.writing.Lock()
	defer m.writing.Unlock()
	if m.store == nil {
		return nil
	}
	return m.store.broken
}

// fresh are those of docs that are not in the memory, each once.
func (m *Memory) fresh(docs []Doc) (list []Doc, err error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	texts := map[string]string{}
	for _, d := range docs {
		text, known := texts[d.ID]
		if !known {
			if i, old := m.place[d.ID]; old {
				text, known = m.docs[i].Text, true
			}
		}
		switch {
		case !known:
			list = append(list, d)
		case text != d.Text:
			return nil, fmt.Errorf("memory: document %q is there with another text (%q, not %q): give a new text a new ID", d.ID, shorten(text), shorten(d.Text))
		}
		texts[d.ID] = d.Text
	}
	return list, nil
}

func textsOf(docs []Doc) []string {
	texts := make([]string, len(docs))
	for i, d := range docs {
		texts[i] = d.Text
	}
	return texts
}

// write adds documents that are new and have vectors. m.writing is held.
func (m *Memory) write(ctx context.Context, docs []Doc) error {
	vectors, err := m.vectors.of(ctx, textsOf(docs))
	if err != nil {
		return err
	}
	list := make([]entry, len(docs))
	for i, d := range docs {
		list[i] = entry{Doc: d, vector: vectors[i]}
	}
	var frames []byte
	head := m.head
	if m.size == 0 {
		head = header{Form: form, Embedder: m.vectors.by(), Dims: len(vectors[0])}
		if frames, err = head.frame(); err != nil {
			return err
		}
	}
	payload, err := encodeEntries(list)
	if err != nil {
		return err
	}
	frames = appendFrame(frames, payload)
	if m.store != nil {
		if err := m.store.append(frames); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.head, m.size = head, m.size+int64(len(frames))
	for i := range list {
		list[i].end = m.size
		m.place[list[i].ID] = len(m.docs) + i
	}
	m.docs = append(m.docs, list...)
	return m.index.add(list)
}

// Truncate takes back all that was added since Size returned size: a run that resumes adds it again.
func (m *Memory) Truncate(size int64) error {
	m.writing.Lock()
	defer m.writing.Unlock()
	if size == m.size {
		return nil
	}
	keep := 0
	for keep < len(m.docs) && m.docs[keep].end <= size {
		keep++
	}
	if size < 0 || size > m.size || size != 0 && (keep == 0 || m.docs[keep-1].end != size) {
		return fmt.Errorf("memory: %d is not the end of a record among the log's %d bytes: the checkpoint belongs to another run", size, m.size)
	}
	if m.store != nil {
		if m.store.broken != nil {
			return m.store.broken
		}
		if err := m.store.cut(size); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.size = size
	if size == 0 {
		m.head = header{}
	}
	return m.rebuild(slices.Clone(m.docs[:keep])) // the rest may still be read by All
}

// Snapshot puts a copy of the log into a folder, whole or not at all; Open reads it there. A copy that is there already is
// replaced.
func (m *Memory) Snapshot(dir string) error {
	m.writing.Lock()
	defer m.writing.Unlock()
	if m.store == nil || m.store.file == nil {
		return errors.New("memory: only one that was opened in a folder can be copied")
	}
	if err := m.store.copyTo(dir); err != nil {
		return fmt.Errorf("memory: copying the log to %s: %w", dir, err)
	}
	return nil
}

// Close closes the log. Nothing can be added afterwards; the documents stay.
func (m *Memory) Close() error {
	m.writing.Lock()
	defer m.writing.Unlock()
	if m.store == nil || m.store.file == nil {
		return nil
	}
	err := m.store.file.Close()
	m.store.file, m.store.broken = nil, fmt.Errorf("memory log %s is closed", m.store.path)
	return err
}
