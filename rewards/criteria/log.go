package criteria

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
)

// Kinds of Event.
const (
	Init   = "init"   // the first set of a scope
	Update = "update" // a set that follows another
)

// Event is one line of a run's rubric log.
type Event struct {
	Step    int            `json:"step"`
	Scope   string         `json:"scope"`
	Version int            `json:"version"`
	Kind    string         `json:"kind"`
	Set     *Set           `json:"set,omitempty"`  // the rubric from here on; nil: it did not change
	Ops     []Op           `json:"ops,omitempty"`  // what made it of the one before
	Note    map[string]any `json:"note,omitempty"` // what else the provider has to say
}

// Op is one operation of an update.
type Op struct {
	Kind   string   `json:"kind"`             // replace, create, update, delete, reweight, merge, split
	Before []string `json:"before,omitempty"` // ids that it changed or took away
	After  []string `json:"after,omitempty"`  // ids that it changed or made
	Reason string   `json:"reason,omitempty"`
}

// ErrTorn is the error for a log whose last line is not whole: its writer was killed, or is writing now.
var ErrTorn = errors.New("the last line is not whole")

// LogPath is where the log of a run stands, dir being the run's folder.
func LogPath(dir string) string { return filepath.Join(dir, "rubrics", "log.jsonl") }

// Log is the rubric log of a run: a file of events, one a line of JSON, that only grows. It is safe for use by several
// goroutines.
type Log struct {
	mu   sync.Mutex
	file *os.File
	size int64
}

// OpenLog opens the log of the run in folder dir, or begins one. A last line that is not whole is an event that never
// happened: it is cut off.
func OpenLog(dir string) (*Log, error) {
	path := LogPath(dir)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("rubric log: %w", err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("rubric log: %w", err)
	}
	l := &Log{file: f}
	if l.size, err = wholeLines(f); err == nil {
		err = f.Truncate(l.size)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("rubric log: %w", err), f.Close())
	}
	return l, nil
}

// wholeLines is the length of f up to and with its last line break.
func wholeLines(f io.Reader) (int64, error) {
	r := bufio.NewReader(f)
	var whole, read int64
	for {
		piece, err := r.ReadSlice('\n')
		read += int64(len(piece))
		if err == nil {
			whole = read
		} else if errors.Is(err, io.EOF) {
			return whole, nil
		} else if !errors.Is(err, bufio.ErrBufferFull) {
			return 0, err
		}
	}
}

// Append writes events, in their order, and flushes them to disk. Scope and version are those of the set, where there is
// one. After an error the log is as it was.
func (l *Log) Append(events ...Event) error {
	var lines bytes.Buffer
	e := json.NewEncoder(&lines)
	e.SetEscapeHTML(false)
	for _, event := range events {
		if event.Kind == "" {
			return errors.New("rubric log: an event has no kind")
		}
		if event.Set != nil {
			event.Scope, event.Version = event.Set.Scope(), event.Set.Version()
		}
		if err := e.Encode(event); err != nil {
			return fmt.Errorf("rubric log: %w", err)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	end, err := l.file.Seek(0, io.SeekEnd) // another provider of the run may have written too
	if err != nil {
		return fmt.Errorf("rubric log: %w", err)
	}
	if _, err = l.file.Write(lines.Bytes()); err == nil {
		err = l.file.Sync()
	}
	if err != nil {
		return fmt.Errorf("rubric log: %w", errors.Join(err, l.file.Truncate(end)))
	}
	l.size = end + int64(lines.Len())
	return nil
}

// Size is the log's length in bytes, which a checkpoint notes.
func (l *Log) Size() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.size
}

// Truncate cuts the log to a length that Size returned before: a resumed run writes the rest again.
func (l *Log) Truncate(size int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	end, err := l.file.Seek(0, io.SeekEnd)
	if err != nil {
		return fmt.Errorf("rubric log: %w", err)
	}
	if size < 0 || size > end {
		return fmt.Errorf("rubric log %s has %d bytes, the checkpoint knows of %d: it belongs to another run", l.file.Name(), end, size)
	}
	last := []byte{'\n'}
	if size > 0 {
		if _, err := l.file.ReadAt(last, size-1); err != nil {
			return fmt.Errorf("rubric log: %w", err)
		}
	}
	if last[0] != '\n' {
		return fmt.Errorf("rubric log %s: byte %d is within a line: it belongs to another run", l.file.Name(), size)
	}
	if err := l.file.Truncate(size); err != nil {
		return fmt.Errorf("rubric log: %w", err)
	}
	l.size = size
	return nil
}

// Close closes the file.
func (l *Log) Close() error { return l.file.Close() }

// ReadLog reads the events of a log, also of one that is being written. If the last line is not whole, the error is
// ErrTorn and the events before it are returned all the same.
func ReadLog(path string) ([]Event, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("rubric log: %w", err)
	}
	defer f.Close()
	var events []Event
	r := bufio.NewReader(f)
	for n := 1; ; n++ {
		line, err := r.ReadBytes('\n')
		switch {
		case errors.Is(err, io.EOF) && len(line) == 0:
			return events, nil
		case errors.Is(err, io.EOF):
			return events, fmt.Errorf("rubric log %s: line %d: %w", path, n, ErrTorn)
		case err != nil:
			return events, fmt.Errorf("rubric log: %w", err)
		}
		var e Event
		if err := json.Unmarshal(line, &e); err != nil {
			return events, fmt.Errorf("rubric log %s: line %d: %w", path, n, err)
		}
		events = append(events, e)
	}
}
