package llm

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/rubicon-rl/rubicon/rewards"
)

// asked is what tells questions apart in a record: all that is asked, but not who answers.
type asked struct {
	Tier   rewards.Tier    `json:"tier"`
	Name   string          `json:"name,omitempty"`
	Schema json.RawMessage `json:"schema,omitempty"`
	System string          `json:"system,omitempty"`
	User   string          `json:"user"`
	Sample int             `json:"sample"`
}

// entry is a line of a record: a question and its answer, or why it has none.
type entry struct {
	asked
	Model  string `json:"model,omitempty"`
	Answer string `json:"answer,omitempty"`
	Error  string `json:"error,omitempty"`
}

// ask is a question as a record can hold it, which is not quite as it was asked if that was not valid UTF-8.
func ask(q *rewards.Question) asked {
	valid := func(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }
	return asked{Tier: q.Tier, Name: q.Name, Schema: q.Schema, System: valid(q.System), User: valid(q.User), Sample: q.Sample}
}

// key tells questions apart.
func (a asked) key() (key, error) {
	text, err := json.Marshal(a)
	return sha256.Sum256(text), err
}

// recorder adds questions and answers to a file of JSON lines.
type recorder struct {
	mu   sync.Mutex
	file *os.File
}

// openRecorder makes the file, or goes on with it after its last whole line.
func openRecorder(path string) (*recorder, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	whole := int64(0)
	err = eachLine(f, func(line []byte) error {
		whole += int64(len(line)) + 1
		return nil
	})
	if err == nil {
		err = f.Truncate(whole)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("judge.record %s: %w", path, err), f.Close())
	}
	return &recorder{file: f}, nil
}

// eachLine calls do with every line that has an end, and leaves out one that was cut off as it was written.
func eachLine(r io.Reader, do func(line []byte) error) error {
	b := bufio.NewReader(r)
	for {
		line, err := b.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = do(line[:len(line)-1])
		}
		if err != nil {
			return err
		}
	}
}

// add writes a question with its answer, or with the reason why it has none.
func (r *recorder) add(q *rewards.Question, model, answer string, why error) error {
	e := entry{asked: ask(q), Model: model, Answer: answer}
	if why != nil {
		e.Error = strings.TrimPrefix(why.Error(), rewards.ErrNoAnswer.Error()+": ")
	}
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false) // people read it
	if err := enc.Encode(e); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	_, err := r.file.Write(line.Bytes())
	return err
}

// Close closes the file.
func (r *recorder) Close() error { return r.file.Close() }

// replay answers from a record. Of several answers to one question the last one counts, and any answer more than none, so
// that what is answered does not depend on how often or in which order it is asked.
type replay struct {
	path    string
	answers map[key]entry // without the question
}

func openReplay(path string) (*replay, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("judge.replay: %w", err)
	}
	defer f.Close()
	r := &replay{path: path, answers: map[key]entry{}}
	n := 0
	err = eachLine(f, func(line []byte) error {
		n++
		return r.read(line)
	})
	if err != nil {
		return nil, fmt.Errorf("judge.replay %s, line %d: %w", path, n, err)
	}
	return r, nil
}

func (r *replay) read(line []byte) error {
	var e entry
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&e); err != nil {
		return err
	}
	if (e.Answer == "") == (e.Error == "") {
		return errors.New("it needs an answer or an error")
	}
	k, err := e.key()
	if err != nil {
		return err
	}
	if old, ok := r.answers[k]; !ok || e.Error == "" || old.Error != "" {
		r.answers[k] = entry{Answer: e.Answer, Error: e.Error}
	}
	return nil
}

// answer implements Ask without a model. An answer that no longer passes the question's Check, or that there is none, is an
// error that ends the run: the record is of something else.
func (r *replay) answer(q *rewards.Question) (string, error) {
	k, err := ask(q).key()
	if err != nil {
		return "", fmt.Errorf("a question to the judge: %w", err)
	}
	e, ok := r.answers[k]
	switch {
	case !ok:
		return "", fmt.Errorf("judge.replay %s has no answer to a %s question that begins %q: record it again with judge.record",
			r.path, q.Tier, clip(q.User, 80))
	case e.Error != "":
		return "", noAnswer(errors.New(e.Error))
	}
	if err := accept(q, e.Answer); err != nil {
		return "", fmt.Errorf("judge.replay %s has an answer that cannot be used: %w; record it again with judge.record", r.path, err)
	}
	return e.Answer, nil
}
