package safetensors

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rubicon-rl/rubicon/internal/folder"
	"github.com/rubicon-rl/rubicon/internal/half"
)

// Item is a tensor to be written. Write sends its content, little-endian and row-major, in any number of pieces; it is
// called once, so that a tensor need not be in memory before its turn.
type Item struct {
	Name  string
	DType DType
	Shape []int
	Write func(w io.Writer) error
}

// Float32s is an item of float32 values, stored as t (F32, BF16 or F16; rounded to nearest even).
func Float32s(name string, t DType, shape []int, values []float32) Item {
	return Item{name, t, shape, func(w io.Writer) error { return Encode(w, t, values) }}
}

// Copy is an item with the bytes of a tensor that was read.
func Copy(t Tensor) Item {
	return Item{t.Name, t.DType, t.Shape, func(w io.Writer) error {
		_, err := w.Write(t.Data)
		return err
	}}
}

// Options of writing.
type Options struct {
	Metadata map[string]string // nil: {"format": "pt"}, which transformers asks for
	MaxShard int64             // WriteDir: bytes of tensors in one file; 0: no limit
	Sync     bool              // flush each file to the disk before it gets its name
}

// Write writes one file: the same items give the same bytes. Tensors are ordered as by the reference implementation,
// types of larger alignment first, then by name. The file appears under its name only when it is whole.
func Write(path string, items []Item, o Options) error {
	ordered := slices.Clone(items)
	slices.SortStableFunc(ordered, func(a, b Item) int {
		if d := a.DType.rank() - b.DType.rank(); d != 0 {
			return d
		}
		return strings.Compare(a.Name, b.Name)
	})
	header, err := makeHeader(ordered, o.Metadata)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	err = folder.File(path, o.Sync, func(w io.Writer) error { return writeAll(w, header, ordered) })
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

func makeHeader(items []Item, metadata map[string]string) ([]byte, error) {
	if metadata == nil {
		metadata = map[string]string{"format": "pt"}
	}
	h := bytes.NewBuffer(make([]byte, 8))
	h.WriteString(`{"__metadata__":`)
	if err := putJSON(h, metadata); err != nil {
		return nil, err
	}
	at, seen := uint64(0), map[string]bool{"__metadata__": true}
	for _, item := range items {
		size, err := item.size()
		if err != nil {
			return nil, fmt.Errorf("tensor %q: %w", item.Name, err)
		}
		if seen[item.Name] {
			return nil, fmt.Errorf("tensor %q: the name occurs twice", item.Name)
		}
		seen[item.Name] = true
		h.WriteByte(',')
		if err := putJSON(h, item.Name); err != nil {
			return nil, err
		}
		h.WriteByte(':')
		if err := putJSON(h, struct {
			DType   DType     `json:"dtype"`
			Shape   []int     `json:"shape"`
			Offsets [2]uint64 `json:"data_offsets"`
		}{item.DType, append([]int{}, item.Shape...), [2]uint64{at, at + size}}); err != nil {
			return nil, err
		}
		at += size
	}
	h.WriteByte('}')
	for h.Len()%8 != 0 {
		h.WriteByte(' ')
	}
	binary.LittleEndian.PutUint64(h.Bytes(), uint64(h.Len()-8))
	return h.Bytes(), nil
}

// putJSON appends v without HTML escapes.
func putJSON(b *bytes.Buffer, v any) error {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	b.Truncate(b.Len() - 1) // the newline
	return nil
}

func (i Item) size() (uint64, error) {
	e := entry{dtype: i.DType}
	for _, n := range i.Shape {
		if n < 0 {
			return 0, fmt.Errorf("negative shape %v", i.Shape)
		}
		e.shape = append(e.shape, uint64(n))
	}
	_, bytes, err := e.size()
	return bytes, err
}

func writeAll(f io.Writer, header []byte, items []Item) error {
	w := bufio.NewWriterSize(f, 1<<20)
	if _, err := w.Write(header); err != nil {
		return err
	}
	for _, item := range items {
		want, err := item.size()
		if err != nil {
			return err
		}
		c := folder.Counter{W: w}
		if err := item.Write(&c); err != nil {
			return fmt.Errorf("tensor %q: %w", item.Name, err)
		}
		if c.N != want {
			return fmt.Errorf("tensor %q: %d bytes were written, %s %v needs %d", item.Name, c.N, item.DType, item.Shape, want)
		}
	}
	return w.Flush()
}

// Encode writes values as t: F32, BF16 or F16.
func Encode(w io.Writer, t DType, values []float32) error {
	const chunk = 1 << 14
	var buf []byte
	for from := 0; from < len(values); from += chunk {
		buf = buf[:0]
		for _, v := range values[from:min(from+chunk, len(values))] {
			switch t {
			case F32:
				buf = binary.LittleEndian.AppendUint32(buf, math.Float32bits(v))
			case BF16:
				buf = binary.LittleEndian.AppendUint16(buf, half.ToBF16(v))
			case F16:
				buf = binary.LittleEndian.AppendUint16(buf, half.ToF16(v))
			default:
				return fmt.Errorf("cannot store float32 values as %s; supported: F32, BF16, F16", t)
			}
		}
		if _, err := w.Write(buf); err != nil {
			return err
		}
	}
	return nil
}

// WriteDir writes the weights of a model folder: model.safetensors, or, if the items exceed o.MaxShard bytes, files
// model-00001-of-0000N.safetensors filled in the order of items, and their index.
func WriteDir(dir string, items []Item, o Options) error {
	shards, total, err := split(items, o.MaxShard)
	if err != nil {
		return fmt.Errorf("write the weights of %s: %w", dir, err)
	}
	if len(shards) == 1 {
		return Write(filepath.Join(dir, SingleName), items, o)
	}
	idx := index{Metadata: map[string]any{"total_size": total}, WeightMap: map[string]string{}}
	for i, shard := range shards {
		name := fmt.Sprintf("model-%05d-of-%05d.safetensors", i+1, len(shards))
		if err := Write(filepath.Join(dir, name), shard, o); err != nil {
			return err
		}
		for _, item := range shard {
			if other, twice := idx.WeightMap[item.Name]; twice {
				return fmt.Errorf("write %s: tensor %q is in %s too", name, item.Name, other)
			}
			idx.WeightMap[item.Name] = name
		}
	}
	text, err := json.MarshalIndent(idx, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, IndexName), append(text, '\n'), o.Sync)
}

// split cuts items into runs of at most limit bytes, or of one larger item.
func split(items []Item, limit int64) (shards [][]Item, total int64, err error) {
	shards = [][]Item{nil}
	used := int64(0)
	for _, item := range items {
		size, err := item.size()
		if err != nil {
			return nil, 0, fmt.Errorf("tensor %q: %w", item.Name, err)
		}
		last := len(shards) - 1
		if limit > 0 && used > 0 && used+int64(size) > limit {
			shards, last, used = append(shards, nil), last+1, 0
		}
		shards[last] = append(shards[last], item)
		used += int64(size)
		total += int64(size)
	}
	return shards, total, nil
}

func writeFile(path string, text []byte, sync bool) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil && sync {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
