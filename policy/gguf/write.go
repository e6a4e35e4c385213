package gguf

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"github.com/rubicon-rl/rubicon/internal/folder"
)

// pair is a piece of metadata. Its value is a bool, string, uint32, float32, []string or []int32.
type pair struct {
	key   string
	value any
}

// item is a tensor to be written: Name, Type and Shape of Tensor, and what sends its data.
type item struct {
	Tensor
	write func(w io.Writer) error
}

// size is the length of the item's data.
func (i item) size() uint64 {
	values, bytes := i.Type.block()
	n := 1
	for _, axis := range i.Shape {
		n *= axis
	}
	return uint64(n/values) * uint64(bytes)
}

// alignment is GGUF's own where the metadata name no other: tensors begin at multiples of it.
const alignment = 32

func aligned(n uint64) uint64 { return (n + alignment - 1) / alignment * alignment }

// writeFile writes a file of version 3. It appears under its name, which must be free, only when it is whole.
func writeFile(path string, meta []pair, items []item) (err error) {
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%s exists; choose another name, or remove it", path)
	}
	head, err := header(meta, items)
	if err != nil {
		return err
	}
	return folder.File(path, true, func(w io.Writer) error { return writeAll(w, head, items) })
}

// header is everything before the data of the tensors.
func header(meta []pair, items []item) ([]byte, error) {
	b := binary.LittleEndian.AppendUint32([]byte("GGUF"), 3)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(items)))
	b = binary.LittleEndian.AppendUint64(b, uint64(len(meta)))
	for _, p := range meta {
		var err error
		if b, err = appendValue(appendText(b, p.key), p.value); err != nil {
			return nil, fmt.Errorf("metadata %q: %w", p.key, err)
		}
	}
	at := uint64(0)
	for _, i := range items {
		b = binary.LittleEndian.AppendUint32(appendText(b, i.Name), uint32(len(i.Shape)))
		for _, axis := range slices.Backward(i.Shape) {
			b = binary.LittleEndian.AppendUint64(b, uint64(axis))
		}
		b = binary.LittleEndian.AppendUint32(b, uint32(i.Type))
		b = binary.LittleEndian.AppendUint64(b, at)
		at = aligned(at + i.size())
	}
	return append(b, make([]byte, aligned(uint64(len(b)))-uint64(len(b)))...), nil
}

func appendText(b []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint64(b, uint64(len(s))), s...)
}

// Types of values, by the format's numbers.
const (
	kindUint32  = 4
	kindInt32   = 5
	kindFloat32 = 6
	kindBool    = 7
	kindText    = 8
	kindArray   = 9
)

// appendValue appends a value of metadata with its type.
func appendValue(b []byte, v any) ([]byte, error) {
	word := binary.LittleEndian.AppendUint32
	switch v := v.(type) {
	case bool:
		b = append(word(b, kindBool), 0)
		if v {
			b[len(b)-1] = 1
		}
	case string:
		b = appendText(word(b, kindText), v)
	case uint32:
		b = word(word(b, kindUint32), v)
	case float32:
		b = word(word(b, kindFloat32), math.Float32bits(v))
	case []string:
		b = binary.LittleEndian.AppendUint64(word(word(b, kindArray), kindText), uint64(len(v)))
		for _, s := range v {
			b = appendText(b, s)
		}
	case []int32:
		b = binary.LittleEndian.AppendUint64(word(word(b, kindArray), kindInt32), uint64(len(v)))
		for _, n := range v {
			b = word(b, uint32(n))
		}
	default:
		return nil, fmt.Errorf("values of type %T are not written", v)
	}
	return b, nil
}

func writeAll(f io.Writer, head []byte, items []item) error {
	w := bufio.NewWriterSize(f, 1<<20)
	if _, err := w.Write(head); err != nil {
		return err
	}
	for _, i := range items {
		c := folder.Counter{W: w}
		if err := i.write(&c); err != nil {
			return fmt.Errorf("tensor %q: %w", i.Name, err)
		}
		if c.N != i.size() {
			return fmt.Errorf("tensor %q: %d bytes were written, %v %v needs %d", i.Name, c.N, i.Type, i.Shape, i.size())
		}
		if _, err := w.Write(make([]byte, aligned(c.N)-c.N)); err != nil {
			return err
		}
	}
	return w.Flush()
}
