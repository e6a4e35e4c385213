package safetensors

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// entry is one tensor of a header.
type entry struct {
	name       string
	dtype      DType
	shape      []uint64
	begin, end uint64
}

// headerReader walks the header token by token, since encoding/json would hide duplicate keys.
type headerReader struct{ *json.Decoder }

func parseHeader(header []byte) (entries []entry, metadata map[string]string, err error) {
	r := headerReader{json.NewDecoder(bytes.NewReader(header))}
	r.UseNumber()
	err = r.object(func(key string) error {
		if key == "__metadata__" {
			if metadata != nil {
				return errors.New("__metadata__ occurs twice")
			}
			metadata = map[string]string{}
			return r.object(func(key string) error {
				value, err := r.text()
				metadata[key] = value
				return wrap("__metadata__", err)
			})
		}
		e, err := r.entry(key)
		entries = append(entries, e)
		return wrap(fmt.Sprintf("tensor %q", key), err)
	})
	if err != nil {
		return nil, nil, err
	}
	if _, err := r.Token(); err != io.EOF {
		return nil, nil, errors.New("text behind the JSON object")
	}
	return entries, metadata, nil
}

func (r headerReader) entry(name string) (entry, error) {
	e := entry{name: name}
	seen := map[string]bool{}
	err := r.object(func(key string) (err error) {
		if seen[key] {
			return fmt.Errorf("%s occurs twice", key)
		}
		seen[key] = true
		switch key {
		case "dtype":
			var text string
			text, err = r.text()
			e.dtype = DType(text)
		case "shape":
			e.shape, err = r.numbers()
		case "data_offsets":
			var at []uint64
			if at, err = r.numbers(); err == nil && len(at) != 2 {
				err = fmt.Errorf("%d numbers instead of 2", len(at))
			}
			if err == nil {
				e.begin, e.end = at[0], at[1]
			}
		default:
			return fmt.Errorf("unknown key %q", key)
		}
		return wrap(key, err)
	})
	if err == nil && len(seen) != 3 {
		err = errors.New("dtype, shape or data_offsets is missing")
	}
	return e, err
}

// object reads { "key": value, ... }, calling value to read each value.
func (r headerReader) object(value func(key string) error) error {
	if err := r.delim('{'); err != nil {
		return err
	}
	for r.More() {
		key, err := r.text()
		if err != nil {
			return err
		}
		if err := value(key); err != nil {
			return err
		}
	}
	return r.delim('}')
}

func (r headerReader) numbers() (list []uint64, err error) {
	if err := r.delim('['); err != nil {
		return nil, err
	}
	for r.More() {
		token, err := r.Token()
		if err != nil {
			return nil, err
		}
		number, ok := token.(json.Number)
		if !ok {
			return nil, fmt.Errorf("%v instead of a number", token)
		}
		n, err := strconv.ParseUint(number.String(), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%v is not a whole number from 0 to 2^64-1", number)
		}
		list = append(list, n)
	}
	return list, r.delim(']')
}

func (r headerReader) text() (string, error) {
	token, err := r.Token()
	if err != nil {
		return "", err
	}
	text, ok := token.(string)
	if !ok {
		return "", fmt.Errorf("%v instead of a string", token)
	}
	return text, nil
}

func (r headerReader) delim(want json.Delim) error {
	token, err := r.Token()
	if err != nil {
		return err
	}
	if token != want {
		return fmt.Errorf("%v instead of %v", token, want)
	}
	return nil
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
