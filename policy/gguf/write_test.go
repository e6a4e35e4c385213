package gguf

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
)

// builder makes GGUF files for tests. Shapes are row-major.
type builder struct {
	version uint32
	align   int
	meta    map[string]any
	tensors []Tensor
}

func newBuilder() *builder { return &builder{version: 3, align: 32, meta: map[string]any{}} }

func (b *builder) add(name string, t Type, shape []int, data []byte) {
	b.tensors = append(b.tensors, Tensor{name, t, shape, data})
}

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

func (b *builder) bytes() []byte {
	var w bytes.Buffer
	w.WriteString("GGUF")
	put(&w, b.version)
	put(&w, uint64(len(b.tensors)))
	put(&w, uint64(len(b.meta)))
	for _, key := range slices.Sorted(maps.Keys(b.meta)) {
		put(&w, key)
		putValue(&w, b.meta[key])
	}
	var data bytes.Buffer
	pad := func(w *bytes.Buffer) {
		for w.Len()%b.align != 0 {
			w.WriteByte(0)
		}
	}
	for _, t := range b.tensors {
		put(&w, t.Name)
		put(&w, uint32(len(t.Shape)))
		for _, n := range slices.Backward(t.Shape) {
			put(&w, uint64(n))
		}
		put(&w, uint32(t.Type))
		put(&w, uint64(data.Len()))
		data.Write(t.Data)
		pad(&data)
	}
	pad(&w)
	w.Write(data.Bytes())
	return w.Bytes()
}

// floats are values as F32.
func floats(values ...float32) []byte {
	var b []byte
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

// texts and numbers are arrays of metadata.
func texts(list []string) (values []any) {
	for _, s := range list {
		values = append(values, s)
	}
	return values
}

func numbers(list []int32) (values []any) {
	for _, n := range list {
		values = append(values, n)
	}
	return values
}
