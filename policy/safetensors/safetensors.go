// Package safetensors reads and writes the safetensors format: eight bytes of header length, a JSON header that gives
// each tensor's type, shape and byte range, then the data. Files are mapped, not copied. What the reference
// implementation refuses is refused here: ranges that overlap, leave holes or do not match the shape, bytes behind the
// last tensor, duplicate names.
package safetensors

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/rubicon-rl/rubicon/internal/mmap"
)

// maxHeader is the reference implementation's bound on the header, in bytes.
const maxHeader = 100_000_000

// File is an open safetensors file. It may be used by several goroutines at a time.
type File struct {
	Metadata map[string]string // the header's __metadata__, nil if there is none
	tensors  map[string]Tensor
	source   *mmap.File // nil if the bytes are the caller's
	name     string
}

// Open maps the file and checks its whole header.
func Open(path string) (*File, error) {
	source, err := mmap.Open(path)
	if err != nil {
		return nil, err
	}
	f, err := Parse(path, source.Data)
	if err != nil {
		return nil, errors.Join(err, source.Close())
	}
	f.source = source
	return f, nil
}

// Parse reads a file that is already in memory; the tensors share data. name stands in messages.
func Parse(name string, data []byte) (*File, error) {
	f := &File{tensors: map[string]Tensor{}, name: name}
	if len(data) < 8 {
		return nil, fmt.Errorf("read %s: %d bytes are too few for a safetensors file; is the download complete?", name, len(data))
	}
	n, have := binary.LittleEndian.Uint64(data), uint64(len(data)-8)
	if n > maxHeader {
		return nil, fmt.Errorf("read %s: a header of %d bytes (limit %d): not a safetensors file", name, n, maxHeader)
	}
	if n > have {
		return nil, fmt.Errorf("read %s: the header is said to have %d bytes, the file has %d more: truncated, or not a safetensors file", name, n, have)
	}
	header, body := data[8:8+n], data[8+n:]
	if !utf8.Valid(header) {
		return nil, fmt.Errorf("read %s: the header is not UTF-8", name)
	}
	entries, metadata, err := parseHeader(header)
	if err != nil {
		return nil, fmt.Errorf("read %s: header: %w", name, err)
	}
	f.Metadata = metadata
	if err := f.place(entries, body); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return f, nil
}

// place checks the byte ranges of the entries and cuts body along them.
func (f *File) place(entries []entry, body []byte) error {
	slices.SortStableFunc(entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.end, b.end))
	})
	at, size := uint64(0), uint64(len(body))
	for _, e := range entries {
		switch {
		case e.end < e.begin || e.end > size:
			return fmt.Errorf("tensor %q: bytes [%d,%d) lie outside the %d bytes of data: truncated or damaged", e.name, e.begin, e.end, size)
		case e.begin < at:
			return fmt.Errorf("tensor %q: bytes [%d,%d) overlap another tensor", e.name, e.begin, e.end)
		case e.begin > at:
			return fmt.Errorf("tensor %q: %d bytes before it belong to no tensor", e.name, e.begin-at)
		}
		shape, bytes, err := e.size()
		if err != nil {
			return fmt.Errorf("tensor %q: %w", e.name, err)
		}
		if bytes != e.end-e.begin {
			return fmt.Errorf("tensor %q: %s %v needs %d bytes, the range [%d,%d) has %d", e.name, e.dtype, shape, bytes, e.begin, e.end, e.end-e.begin)
		}
		if _, twice := f.tensors[e.name]; twice {
			return fmt.Errorf("tensor %q: the name occurs twice", e.name)
		}
		f.tensors[e.name] = Tensor{Name: e.name, DType: e.dtype, Shape: shape, Data: body[e.begin:e.end:e.end], File: f.name}
		at = e.end
	}
	if at != size {
		return fmt.Errorf("%d bytes behind the last tensor belong to none", size-at)
	}
	return nil
}

// size is the shape as ints and the number of bytes that it needs.
func (e entry) size() (shape []int, bytes uint64, err error) {
	width := uint64(e.dtype.Size())
	if width == 0 {
		return nil, 0, fmt.Errorf("unknown type %q", e.dtype)
	}
	bytes = width
	shape = make([]int, len(e.shape))
	for i, n := range e.shape {
		if n > math.MaxInt || n != 0 && bytes > math.MaxInt/n {
			return nil, 0, fmt.Errorf("shape %v overflows", e.shape)
		}
		shape[i] = int(n)
		bytes *= n
	}
	return shape, bytes, nil
}

// Names lists the tensors in ascending order.
func (f *File) Names() []string { return slices.Sorted(maps.Keys(f.tensors)) }

// Tensor returns one tensor; ok is false if there is none of that name.
func (f *File) Tensor(name string) (t Tensor, ok bool) {
	t, ok = f.tensors[name]
	return t, ok
}

// Close releases the mapping; no tensor may be used afterwards.
func (f *File) Close() error {
	if f.source == nil {
		return nil
	}
	return f.source.Close()
}
