package token

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// jsonScan reads the two large parts of tokenizer.json, the vocabulary and the merges, faster than encoding/json does
// and noticing duplicates. Its input is well-formed JSON; what it checks are the types.
type jsonScan struct {
	b []byte
	i int
}

// peek is the next byte that is not white space.
func (s *jsonScan) peek() byte {
	for s.i < len(s.b) && (s.b[s.i] == ' ' || s.b[s.i] == '\n' || s.b[s.i] == '\t' || s.b[s.i] == '\r') {
		s.i++
	}
	if s.i == len(s.b) {
		return 0
	}
	return s.b[s.i]
}

// take reads c if it comes next.
func (s *jsonScan) take(c byte) bool {
	if s.peek() != c {
		return false
	}
	s.i++
	return true
}

// text reads a string.
func (s *jsonScan) text() (string, error) {
	if !s.take('"') {
		return "", fmt.Errorf("a string is wanted at %s", s.near())
	}
	start := s.i
	for s.b[s.i] != '"' {
		if s.b[s.i] == '\\' {
			s.i++
		}
		s.i++
	}
	s.i++
	raw := s.b[start : s.i-1]
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw), nil
	}
	var out string
	err := json.Unmarshal(s.b[start-1:s.i], &out)
	return out, err
}

// number reads a whole number from 0 to 2^31-1.
func (s *jsonScan) number() (int32, error) {
	s.peek()
	start := s.i
	for s.i < len(s.b) && s.b[s.i] >= '0' && s.b[s.i] <= '9' {
		s.i++
	}
	n, err := strconv.ParseInt(string(s.b[start:s.i]), 10, 32)
	if c := s.peek(); err != nil || c != ',' && c != '}' {
		s.i = start
		return 0, fmt.Errorf("an id (0 to 2147483647) is wanted at %s", s.near())
	}
	return int32(n), nil
}

// near quotes what comes next.
func (s *jsonScan) near() string { return strconv.Quote(string(s.b[s.i:min(len(s.b), s.i+20)])) }

// vocabJSON is {"token": id, ...}.
type vocabJSON map[string]int32

// UnmarshalJSON implements json.Unmarshaler.
func (v *vocabJSON) UnmarshalJSON(b []byte) error {
	s := &jsonScan{b: b}
	if !s.take('{') {
		return fmt.Errorf("vocab: an object of token: id is wanted at %s", s.near())
	}
	*v = make(vocabJSON, len(b)/24)
	for !s.take('}') {
		token, err := s.text()
		if err == nil && !s.take(':') {
			err = errors.New("no id")
		}
		var id int32
		if err == nil {
			id, err = s.number()
		}
		if err == nil && token == "" {
			err = errors.New("an empty token")
		}
		if _, twice := (*v)[token]; err == nil && twice {
			err = fmt.Errorf("%q stands there twice", token)
		}
		if err != nil {
			return fmt.Errorf("vocab: %w", err)
		}
		(*v)[token] = id
		s.take(',')
	}
	return nil
}

// mergesJSON is ["a b", ...] or [["a", "b"], ...].
type mergesJSON [][2]string

// UnmarshalJSON implements json.Unmarshaler.
func (m *mergesJSON) UnmarshalJSON(b []byte) error {
	s := &jsonScan{b: b}
	if !s.take('[') {
		return fmt.Errorf("merges: a list is wanted at %s", s.near())
	}
	*m = make(mergesJSON, 0, len(b)/16)
	for !s.take(']') {
		pair, err := s.pair()
		if err != nil {
			return fmt.Errorf("merge %d: %w", len(*m), err)
		}
		*m = append(*m, pair)
		s.take(',')
	}
	return nil
}

// pair reads one merge of either form.
func (s *jsonScan) pair() (pair [2]string, err error) {
	if s.take('[') {
		for i := range pair {
			if pair[i], err = s.text(); err != nil {
				return pair, err
			}
			s.take(',')
		}
		if !s.take(']') {
			return pair, errors.New("two tokens are wanted")
		}
		return pair, nil
	}
	text, err := s.text()
	if err != nil {
		return pair, err
	}
	i := bytes.IndexByte([]byte(text), ' ')
	if i < 0 || bytes.IndexByte([]byte(text[i+1:]), ' ') >= 0 {
		return pair, fmt.Errorf("%q is not two tokens with a space between", text)
	}
	return [2]string{text[:i], text[i+1:]}, nil
}
