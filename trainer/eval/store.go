package eval

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/rubicon-rl/rubicon/grpo"
)

// Setting is all that the answers and verdicts of a measurement depend on. It is the first line of its file.
type Setting struct {
	Benchmark   string         `json:"benchmark"`
	Data        string         `json:"data"` // SHA-256 of the official file
	Policy      string         `json:"policy"`
	Step        int            `json:"step"`
	Template    map[string]any `json:"chat_template_kwargs,omitempty"`
	Environment map[string]any `json:"environment,omitempty"` // section env, if the questions were episodes; nil: they had one turn
	Generation  Sampling       `json:"generation"`
	Repeats     int            `json:"repeats"`
	Items       int            `json:"items"`
	Judge       string         `json:"judge,omitempty"` // of judged benchmarks
	Prompt      string         `json:"judge_prompt,omitempty"`
}

// Sampling is how answers are sampled.
type Sampling struct {
	MaxTokens         int      `json:"max_tokens"`
	Temperature       float64  `json:"temperature"`
	TopP              float64  `json:"top_p"`
	TopK              int      `json:"top_k"`
	MinP              float64  `json:"min_p"`
	RepetitionPenalty float64  `json:"repetition_penalty"`
	Stop              []string `json:"stop,omitempty"`
	Seed              int64    `json:"seed"`
}

// Record is one line of a measurement's file: an answer with its verdict. A later record of the same key and repeat replaces an earlier one.
type Record struct {
	Key      string         `json:"key"`
	Repeat   int            `json:"repeat"`
	Messages []grpo.Message `json:"messages"`
	Turns    []grpo.Step    `json:"turns,omitempty"` // of an episode
	Answer   string         `json:"answer"`
	Finish   string         `json:"finish"` // stop, length: it was cut off, or refused: the server gave none
	Tokens   int            `json:"tokens,omitempty"`
	Verdict  Verdict        `json:"verdict"`
}

// place is where a record belongs.
type place struct {
	key    string
	repeat int
}

// store is a measurement's file, to which records are appended.
type store struct {
	mu    sync.Mutex
	f     *os.File
	done  map[place]Record
	lines int // below the first
}

// ErrOther is the error for a file of a measurement with other settings.
var ErrOther = errors.New("it was made with other settings")

// openStore opens or begins a measurement's file. A last line that was torn off by a crash is cut, and a file without any answer is begun anew.
func openStore(path string, s Setting) (*store, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	head, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	whole, err := wholeLines(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	st := &store{done: map[place]Record{}}
	if first, rest, _ := bytes.Cut(whole, []byte("\n")); len(rest) == 0 {
		whole = nil
	} else {
		if !bytes.Equal(first, head) {
			return nil, fmt.Errorf("%s: %w (then %s, now %s): remove it, or give another place with --out", path, ErrOther, first, head)
		}
		records, err := readRecords(path, rest)
		if err != nil {
			return nil, err
		}
		st.lines = bytes.Count(rest, []byte("\n"))
		for _, r := range records {
			st.done[place{r.Key, r.Repeat}] = r
		}
	}
	if st.f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644); err != nil {
		return nil, err
	}
	if err = st.f.Truncate(int64(len(whole))); err == nil {
		_, err = st.f.Seek(0, io.SeekEnd)
	}
	if err == nil && len(whole) == 0 {
		_, err = st.f.Write(append(head, '\n'))
	}
	if err != nil {
		return nil, errors.Join(err, st.f.Close())
	}
	return st, nil
}

// wholeLines is a file up to the end of its last line.
func wholeLines(path string) ([]byte, error) {
	raw, err := os.ReadFile(path)
	return raw[:bytes.LastIndexByte(raw, '\n')+1], err
}

// readRecords reads whole lines below the first: the last record of each place, where its first one stands.
func readRecords(path string, lines []byte) ([]Record, error) {
	var out []Record
	at := map[place]int{}
	n := 1
	for line := range bytes.Lines(lines) {
		n++
		var r Record
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("%s, line %d is damaged: %w: remove the line, or the file to begin again", path, n, err)
		}
		i, again := at[place{r.Key, r.Repeat}]
		if !again {
			i = len(out)
			at[place{r.Key, r.Repeat}] = i
			out = append(out, r)
		}
		out[i] = r
	}
	return out, nil
}

// add appends a record.
func (s *store) add(r Record) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.f.Write(append(line, '\n')); err != nil {
		return err
	}
	s.done[place{r.Key, r.Repeat}] = r
	s.lines++
	return nil
}

// rewrite puts a file in the place of a measurement's that has each record once, in order. A crash leaves the old one or the new one.
func rewrite(path string, s Setting, records []Record) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	err := enc.Encode(s)
	for _, r := range records {
		err = errors.Join(err, enc.Encode(r))
	}
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	_, err = f.Write(b.Bytes())
	if err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// close makes the file durable.
func (s *store) close() error { return errors.Join(s.f.Sync(), s.f.Close()) }

// Read reads a measurement's file, complete or not.
func Read(path string) (Setting, []Record, error) {
	var s Setting
	whole, err := wholeLines(path)
	if err != nil {
		return s, nil, err
	}
	first, rest, _ := bytes.Cut(whole, []byte("\n"))
	if err := json.Unmarshal(first, &s); err != nil || s.Benchmark == "" {
		return s, nil, fmt.Errorf("%s is no file of answers that rubicon eval made", path)
	}
	records, err := readRecords(path, rest)
	return s, records, err
}
