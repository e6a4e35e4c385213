package data

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"
)

// yield receives a row and its place in the file (":12", " row 3"), or why it is bad.
type yield func(place string, row map[string]any, err error)

// read reads the rows of one file. The error is one after which nothing more can be read.
func read(file, format string, row yield) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	name := strings.ToLower(file)
	if format == "auto" || format == "" {
		format = strings.TrimPrefix(filepath.Ext(strings.TrimSuffix(name, ".gz")), ".")
	}
	if format == "parquet" {
		info, err := f.Stat()
		if err != nil {
			return err
		}
		return readParquet(f, info.Size(), row)
	}
	var r io.Reader = f
	if strings.HasSuffix(name, ".gz") {
		z, err := gzip.NewReader(bufio.NewReader(f))
		if err != nil {
			return err
		}
		r = z
	}
	switch format {
	case "jsonl", "ndjson":
		return readLines(r, row)
	case "json":
		return readJSON(r, row)
	}
	return fmt.Errorf("%q is no format that is known: name the file .jsonl, .json (both also with .gz) or .parquet, or set data.format", format)
}

// maxLine is the longest line of a JSON Lines file, bytes.
const maxLine = 64 << 20

var byteOrderMark = []byte("\uFEFF")

func readLines(r io.Reader, row yield) error {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 64<<10), maxLine)
	n := 0
	for s.Scan() {
		line := s.Bytes()
		if n++; n == 1 {
			line = bytes.TrimPrefix(line, byteOrderMark)
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		v, err := decodeObject(line)
		row(":"+strconv.Itoa(n), v, err)
	}
	if errors.Is(s.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("line %d is longer than %d MiB", n+1, maxLine>>20)
	}
	return s.Err()
}

// readJSON reads an array of objects; a file that does not begin with [ is read line by line.
func readJSON(r io.Reader, row yield) error {
	text, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	text = bytes.TrimPrefix(text, byteOrderMark)
	if !bytes.HasPrefix(bytes.TrimSpace(text), []byte("[")) {
		return readLines(bytes.NewReader(text), row)
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	if _, err := dec.Token(); err != nil {
		return err
	}
	line, before := 1, 0 // before: that of the item before
	for at, n := 0, 1; dec.More(); n++ {
		begin := at + len(text[at:]) - len(bytes.TrimLeft(text[at:], "[, \t\r\n"))
		line += bytes.Count(text[at:begin], []byte("\n"))
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
		v, err := decodeObject(raw)
		place := ":" + strconv.Itoa(line)
		if line == before {
			place += " item " + strconv.Itoa(n)
		}
		row(place, v, err)
		before = line
		at = int(dec.InputOffset())
		line += bytes.Count(raw, []byte("\n"))
	}
	if _, err := dec.Token(); err != nil {
		return fmt.Errorf("line %d: the list does not end: %w", line, err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return errors.New("something follows the list: remove it")
	}
	return nil
}

// decodeObject reads one JSON object.
func decodeObject(text []byte) (map[string]any, error) {
	if !utf8.Valid(text) {
		return nil, errors.New("is not valid UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, fmt.Errorf("is not valid JSON: %w", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("is not valid JSON: something follows the object")
	}
	row, ok := numbers(v).(map[string]any)
	if !ok {
		return nil, fmt.Errorf("is %s, want an object", kind(v))
	}
	return row, nil
}

// numbers replaces every json.Number inside v by an int64 or a float64 if that keeps what is written.
func numbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, x := range v {
			v[key] = numbers(x)
		}
	case []any:
		for i, x := range v {
			v[i] = numbers(x)
		}
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return i
		}
		if strings.ContainsAny(string(v), ".eE") {
			if x, err := v.Float64(); err == nil {
				return x
			}
		}
	}
	return v
}
