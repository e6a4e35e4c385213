package gguf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"
)

// reader walks through bytes. After the first error it stays where it is and returns zeros.
type reader struct {
	data []byte
	at   int
	err  error
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// take returns the next n bytes, nil if there are not so many.
func (r *reader) take(n uint64) []byte {
	if r.err == nil && n > uint64(len(r.data)-r.at) {
		r.fail(fmt.Errorf("%d bytes at %d, but the file ends at %d: truncated or damaged", n, r.at, len(r.data)))
	}
	if r.err != nil {
		return nil
	}
	r.at += int(n)
	return r.data[r.at-int(n) : r.at]
}

// word is a little-endian number of n bytes.
func (r *reader) word(n uint64) uint64 {
	var w [8]byte
	copy(w[:], r.take(n))
	return binary.LittleEndian.Uint64(w[:])
}

func (r *reader) u32() uint32 { return uint32(r.word(4)) }
func (r *reader) u64() uint64 { return r.word(8) }

func (r *reader) text() string {
	s := r.take(r.u64())
	if !utf8.Valid(s) {
		r.fail(fmt.Errorf("the text before %d is not UTF-8", r.at))
		return ""
	}
	return string(s)
}

// value reads a metadata value of the given type of the format.
func (r *reader) value(kind uint32, depth int) any {
	switch kind {
	case 0:
		return uint8(r.word(1))
	case 1:
		return int8(r.word(1))
	case 2:
		return uint16(r.word(2))
	case 3:
		return int16(r.word(2))
	case 4:
		return r.u32()
	case 5:
		return int32(r.u32())
	case 6:
		return math.Float32frombits(r.u32())
	case 7:
		return r.word(1) != 0
	case 8:
		return r.text()
	case 9:
		return r.list(depth)
	case 10:
		return r.u64()
	case 11:
		return int64(r.u64())
	case 12:
		return math.Float64frombits(r.u64())
	}
	r.fail(fmt.Errorf("unknown type %d of a value", kind))
	return nil
}

func (r *reader) list(depth int) []any {
	kind, n := r.u32(), r.u64()
	if depth >= 4 {
		r.fail(errors.New("arrays are nested too deeply"))
	}
	if r.err == nil && n > uint64(len(r.data)-r.at) { // an element has at least one byte
		r.fail(fmt.Errorf("an array of %d elements at %d, but the file ends at %d: truncated or damaged", n, r.at, len(r.data)))
	}
	list := []any{}
	for i := uint64(0); i < n && r.err == nil; i++ {
		list = append(list, r.value(kind, depth+1))
	}
	return list
}
