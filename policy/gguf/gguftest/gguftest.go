// Package gguftest makes GGUF files for tests.
package gguftest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
)

// File is a file being made.
type File struct {
	Version uint32
	Align   int
	Meta    map[string]any
	Tensors []Tensor
}

// Tensor is one of its tensors. Shape is row-major, Type ggml's number.
type Tensor struct {
	Name  string
	Type  uint32
	Shape []int
	Data  []byte
}

// New returns an empty file of version 3.
func New() *File { return &File{Version: 3, Align: 32, Meta: map[string]any{}} }

func put(w *bytes.Buffer, v any) {
	if s, ok := v.(string); ok {
		put(w, uint64(len(s)))
		w.WriteString(s)
	} else if err := binary.Write(w, binary.LittleEndian, v); err != nil {
		panic(err)
	}
}

func putValue(w *bytes.Buffer, v any) {
	put(w, kindOf(v))
	putBare(w, v)
}

func putBare(w *bytes.Buffer, v any) {
	list, ok := v.([]any)
	if !ok {
		put(w, v)
		return
	}
	put(w, kindOf(list[0]))
	put(w, uint64(len(list)))
	for _, v := range list {
		putBare(w, v)
	}
}

func kindOf(v any) uint32 {
	kinds := []any{uint8(0), int8(0), uint16(0), int16(0), uint32(0), int32(0), float32(0), false, "", []any{}, uint64(0), int64(0), 0.0}
	return uint32(slices.IndexFunc(kinds, func(k any) bool { return fmt.Sprintf("%T", k) == fmt.Sprintf("%T", v) }))
}

// Bytes is the file as it stands.
func (b *File) Bytes() []byte {
	var w bytes.Buffer
	w.WriteString("GGUF")
	put(&w, b.Version)
	put(&w, uint64(len(b.Tensors)))
	put(&w, uint64(len(b.Meta)))
	for _, key := range slices.Sorted(maps.Keys(b.Meta)) {
		put(&w, key)
		putValue(&w, b.Meta[key])
	}
	var data bytes.Buffer
	pad := func(w *bytes.Buffer) {
		for w.Len()%b.Align != 0 {
			w.WriteByte(0)
		}
	}
	for _, t := range b.Tensors {
		put(&w, t.Name)
		put(&w, uint32(len(t.Shape)))
		for _, n := range slices.Backward(t.Shape) {
			put(&w, uint64(n))
		}
		put(&w, t.Type)
		put(&w, uint64(data.Len()))
		data.Write(t.Data)
		pad(&data)
	}
	pad(&w)
	w.Write(data.Bytes())
	return w.Bytes()
}
