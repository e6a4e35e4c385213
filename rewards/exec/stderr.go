package exec

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strings"
)

const (
	keptLines = 5   // of standard error, for error messages
	keptBytes = 400 // of each of them
)

// stderr is the standard error of a process: it is copied line by line, and its last lines are kept.
type stderr struct {
	log    io.WriteCloser
	prefix string   // before every line
	kept   []string // readable when the process is gone
}

// copy reads to the end of r. Lines are written whole, so that those of several processes do not mix.
func (s *stderr) copy(r io.Reader) {
	defer s.log.Close()
	for b := bufio.NewReader(r); ; {
		text, err := b.ReadSlice('\n') // a longer line comes in pieces
		if text = trimmed(text); len(text) > 0 {
			io.WriteString(s.log, s.prefix+string(text)+"\n") // a log that cannot be written is no reason to lose the run
			s.kept = append(s.kept, string(text[:min(len(text), keptBytes)]))
			s.kept = s.kept[max(0, len(s.kept)-keptLines):]
		}
		if err != nil && err != bufio.ErrBufferFull {
			return
		}
	}
}

// last is the last lines, as the end of an error message.
func (s *stderr) last() string {
	if len(s.kept) == 0 {
		return ""
	}
	return fmt.Sprintf("; it last wrote to standard error: %s", strings.Join(s.kept, " | "))
}

// trimmed is a line without white space at its end.
func trimmed(text []byte) []byte { return bytes.TrimRight(text, " \t\r\n") }
