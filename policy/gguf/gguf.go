// Package gguf reads llama.cpp's model files, versions 2 and 3, and imports them as Hugging Face folders. Files are
// mapped, not copied.
package gguf

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/rubicon-rl/rubicon/internal/mmap"
)

// File is an open GGUF file.
type File struct {
	Version uint32
	// Metadata holds bool, string, uint8 to uint64, int8 to int64, float32, float64, and []any of them.
	Metadata map[string]any
	Tensors  []Tensor // in the file's order
	source   *mmap.File
	name     string
}

// Tensor is a named array. Shape is row-major, the fastest axis last, as in transformers (GGUF stores it reversed).
// Data lies in the mapping of the file.
type Tensor struct {
	Name  string
	Type  Type
	Shape []int
	Data  []byte
}

// Open maps a file and checks its header and the place of every tensor.
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

// Close releases the mapping; no tensor may be used afterwards.
func (f *File) Close() error {
	if f.source == nil {
		return nil
	}
	return f.source.Close()
}

// Parse reads a file that is in memory; the tensors share data. name stands in messages.
func Parse(name string, data []byte) (*File, error) {
	f := &File{Metadata: map[string]any{}, name: name}
	if err := f.parse(&reader{data: data}); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return f, nil
}

func (f *File) parse(r *reader) error {
	if string(r.take(4)) != "GGUF" {
		return errors.New("not a GGUF file")
	}
	f.Version = r.u32()
	if v := f.Version; r.err == nil && v != 2 && v != 3 {
		if v&0xFFFF == 0 {
			return errors.New("big-endian GGUF files are not supported")
		}
		return fmt.Errorf("GGUF version %d is not supported; supported: 2, 3", v)
	}
	tensors, pairs := r.u64(), r.u64()
	for range pairs {
		key := r.text()
		value := r.value(r.u32(), 0)
		if r.err != nil {
			return fmt.Errorf("metadata %q: %w", key, r.err)
		}
		if _, twice := f.Metadata[key]; twice {
			return fmt.Errorf("metadata %q occurs twice", key)
		}
		f.Metadata[key] = value
	}
	if r.err != nil {
		return r.err
	}
	list := []place{}
	for range tensors {
		p, err := r.place()
		if err != nil {
			return fmt.Errorf("tensor %q: %w", p.Name, err)
		}
		list = append(list, p)
	}
	return f.cut(r, list)
}

// place is a tensor's entry in the header, before its data is found.
type place struct {
	Tensor
	offset, size uint64
}

func (r *reader) place() (p place, err error) {
	p.Name = r.text()
	axes := r.u32()
	if r.err == nil && (axes < 1 || axes > 4) {
		return p, fmt.Errorf("%d axes; there are 1 to 4", axes)
	}
	elements := uint64(1)
	for range axes {
		n := r.u64()
		if r.err == nil && (n < 1 || n > math.MaxInt/8/elements) {
			return p, fmt.Errorf("an axis of %d is 0, or too large", n)
		}
		elements *= max(1, n)
		p.Shape = append(p.Shape, int(n))
	}
	p.Type, p.offset = Type(r.u32()), r.u64()
	if r.err != nil {
		return p, r.err
	}
	block, bytes := p.Type.block()
	if bytes == 0 {
		return p, fmt.Errorf("type %v is not supported; supported: %s", p.Type, supportedTypes)
	}
	if p.Shape[0]%block != 0 {
		return p, fmt.Errorf("rows of %d are not whole blocks of %v, which have %d", p.Shape[0], p.Type, block)
	}
	p.size = elements / uint64(block) * uint64(bytes)
	slices.Reverse(p.Shape)
	return p, nil
}

// cut finds the tensors' data behind the header.
func (f *File) cut(r *reader, list []place) error {
	align := uint64(32)
	if v, ok := f.Metadata["general.alignment"]; ok {
		n, ok := v.(uint32)
		if !ok || n == 0 || n&(n-1) != 0 || n > 1<<20 {
			return fmt.Errorf("general.alignment %v is not a power of two", v)
		}
		align = uint64(n)
	}
	start := (uint64(r.at) + align - 1) / align * align
	body := r.data[min(start, uint64(len(r.data))):]
	size := uint64(len(body))
	seen := map[string]bool{}
	for i := range list {
		p := &list[i]
		switch {
		case seen[p.Name]:
			return fmt.Errorf("tensor %q: the name occurs twice", p.Name)
		case p.offset%align != 0:
			return fmt.Errorf("tensor %q: offset %d is not a multiple of the alignment %d", p.Name, p.offset, align)
		case p.offset > size || p.size > size-p.offset:
			return fmt.Errorf("tensor %q: %d bytes at %d lie outside the %d bytes of data: truncated or damaged", p.Name, p.size, p.offset, size)
		}
		seen[p.Name] = true
		p.Data = body[p.offset : p.offset+p.size : p.offset+p.size]
		f.Tensors = append(f.Tensors, p.Tensor)
	}
	slices.SortFunc(list, func(a, b place) int { return cmp.Compare(a.offset, b.offset) })
	for i := 1; i < len(list); i++ {
		if a, b := list[i-1], list[i]; a.offset+a.size > b.offset {
			return fmt.Errorf("tensor %q: its data overlaps that of %q", b.Name, a.Name)
		}
	}
	return nil
}
