package gguf

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// One tensor of each type, with values worked out by hand from ggml's block layouts.
func TestDequantise(t *testing.T) {
	q8, q4 := []byte{0x00, 0x38}, []byte{0x00, 0x34, 0x00, 0xBC} // scale 0.5; scale 0.25, minimum -1
	var want8, want4 [32]float32
	for i := range 32 {
		q8 = append(q8, byte(int8(i-16)))
		want8[i] = float32(i-16) * 0.5
	}
	for i := range 16 { // low half i, high half 15-i
		q4 = append(q4, byte(i|(15-i)<<4))
		want4[i], want4[i+16] = float32(i)*0.25-1, float32(15-i)*0.25-1
	}
	b := newBuilder()
	b.add("f32", F32, []int{2}, floats(1.5, -2))
	b.add("f16", F16, []int{1, 3}, []byte{0x00, 0x3C, 0x00, 0xC0, 0x01, 0x00})
	b.add("bf16", BF16, []int{2}, []byte{0x80, 0x3F, 0x49, 0x40})
	b.add("q8_0", Q8_0, []int{2, 32}, append(slices.Clone(q8), q8...))
	b.add("q4_1", Q4_1, []int{32}, q4)
	f, err := Parse("mem", b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	want := [][]float32{{1.5, -2}, {1, -2, 5.9604645e-8}, {1, 3.140625}, append(want8[:], want8[:]...), want4[:]}
	for i, x := range f.Tensors {
		got := make([]float32, x.Len())
		if err := x.Float32s(got); err != nil || !slices.Equal(got, want[i]) {
			t.Errorf("%s: %v, %v, want %v", x.Name, got, err, want[i])
		}
		if !slices.Equal(x.Shape, b.Tensors[i].Shape) {
			t.Errorf("%s: shape %v, want %v", x.Name, x.Shape, b.Tensors[i].Shape)
		}
	}
	row := make([]float32, 32)
	if err := f.Tensors[3].Row(1).Float32s(row); err != nil || !slices.Equal(row, want8[:]) {
		t.Errorf("row 1: %v, %v", row, err)
	}
	if err := f.Tensors[3].Float32s(row); err == nil {
		t.Error("a destination of the wrong length was filled")
	}
}

func TestMetadata(t *testing.T) {
	b := newBuilder()
	b.Version, b.Align = 2, 64
	b.Meta = map[string]any{
		"general.alignment": uint32(64), "u8": uint8(200), "i8": int8(-3), "u16": uint16(60000), "i16": int16(-300), "u32": uint32(1 << 31),
		"i32": int32(-1 << 31), "f32": float32(1e-5), "yes": true, "text": "Ġß", "u64": uint64(1) << 63, "i64": int64(-1) << 63, "f64": 0.1,
		"list": []any{"a", ""}, "nested": []any{[]any{int32(1), int32(2)}, []any{int32(3)}},
	}
	b.add("a", F32, []int{1}, floats(7))
	b.add("b", F32, []int{1}, floats(8))
	path := filepath.Join(t.TempDir(), "f.gguf")
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Version != 2 || !reflect.DeepEqual(f.Metadata, b.Meta) {
		t.Errorf("version %d, metadata %v\nwant %v", f.Version, f.Metadata, b.Meta)
	}
	got := make([]float32, 1)
	if err := f.Tensors[1].Float32s(got); err != nil || got[0] != 8 {
		t.Errorf("second tensor under an alignment of 64: %v, %v", got, err)
	}
}

func TestHostile(t *testing.T) {
	whole := newBuilder()
	whole.Meta["key"] = "value"
	whole.add("w", F32, []int{2}, floats(1, 2))
	good := whole.Bytes()
	at := func(offset int, value uint64, n int) []byte { // the file with a number changed
		b := slices.Clone(good)
		var w [8]byte
		binary.LittleEndian.PutUint64(w[:], value)
		copy(b[offset:], w[:n])
		return b
	}
	with := func(change func(*builder)) []byte {
		b := newBuilder()
		change(b)
		return b.Bytes()
	}
	deep := any(int32(1))
	for range 6 {
		deep = []any{deep}
	}
	keyAt := 24
	tensorAt := keyAt + 8 + 3 + 4 + 8 + 5 // behind the only key
	for _, c := range []struct {
		name string
		file []byte
		want string
	}{
		{"empty", nil, "not a GGUF file"},
		{"other magic", []byte("GGML1234"), "not a GGUF file"},
		{"version", at(4, 1, 4), "version 1"},
		{"big-endian", at(4, 3<<24, 4), "big-endian"},
		{"tensor count", at(8, 1<<60, 8), `tensor "": 0 axes`},
		{"metadata count", at(16, 1<<60, 8), "metadata"},
		{"key length", at(keyAt, 1<<62, 8), "truncated"},
		{"key not UTF-8", at(keyAt+8, 0xFF, 1), "UTF-8"},
		{"value type", at(keyAt+11, 99, 4), `"key": unknown type 99`},
		{"array length", with(func(b *builder) { b.Meta["big"] = []any{uint8(1)} })[:24+8+3+4+4+8], `"big"`},
		{"deep array", with(func(b *builder) { b.Meta["deep"] = deep }), `"deep": arrays are nested too deeply`},
		{"axes", at(tensorAt+9, 5, 4), `"w": 5 axes`},
		{"zero axis", at(tensorAt+13, 0, 8), `"w": an axis of 0`},
		{"huge axis", at(tensorAt+13, 1<<62, 8), `"w": an axis of 4611686018427387904`},
		{"unsupported type", at(tensorAt+21, 13, 4), `"w": type Q5_K is not supported; supported: F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q4_K, Q6_K`},
		{"unknown type", at(tensorAt+21, 77, 4), `"w": type number 77`},
		{"half a block", at(tensorAt+21, 8, 4), `"w": rows of 2`},
		{"unaligned", at(tensorAt+25, 4, 8), `"w": offset 4`},
		{"offset beyond the file", at(tensorAt+25, 1<<40, 8), `"w": 8 bytes at`},
		{"truncated data", good[:len(good)-28], `"w": 8 bytes at 0`},
		{"name twice", with(func(b *builder) { b.add("x", F32, []int{1}, floats(1)); b.add("x", F32, []int{1}, floats(1)) }), `"x": the name occurs twice`},
		{"alignment", with(func(b *builder) { b.Meta["general.alignment"] = uint32(33) }), "general.alignment 33"},
		{"alignment 0", with(func(b *builder) { b.Meta["general.alignment"] = uint32(0) }), "general.alignment 0"},
	} {
		_, err := Parse("some.gguf", c.file)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "some.gguf") {
			t.Errorf("%s: error %v does not mention %s", c.name, err, c.want)
		}
	}
	two := newBuilder()
	two.add("a", F32, []int{9}, make([]byte, 36))
	two.add("b", F32, []int{1}, floats(1))
	b := two.Bytes()
	i := slices.Index(b[24:], 'b') + 24 // its name; the offset follows its 4+8+4 bytes
	binary.LittleEndian.PutUint64(b[i+17:], 32)
	if _, err := Parse("f", b); err == nil || !strings.Contains(err.Error(), "overlaps") {
		t.Errorf("overlapping tensors: %v", err)
	}
	for n := range good {
		if _, err := Parse("f", good[:n]); err == nil && n < len(good)-24 { // the last 24 bytes only fill up
			t.Errorf("the first %d of %d bytes were taken for the whole", n, len(good))
		}
	}
}

func FuzzParse(f *testing.F) {
	b := newBuilder()
	b.Meta["list"] = []any{"a", "b"}
	b.Meta["n"] = uint64(3)
	for _, typ := range quantTypes() {
		values, size := typ.block()
		b.add(typ.String(), typ, []int{2, values}, make([]byte, 2*size))
	}
	b.add("f", F16, []int{3}, make([]byte, 6))
	f.Add(b.Bytes())
	f.Add([]byte("GGUF"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Parse("fuzz", data)
		if err != nil {
			return
		}
		for _, x := range file.Tensors {
			if err := x.Float32s(make([]float32, x.Len())); err != nil {
				t.Fatal(err)
			}
			if _, ok := x.Type.DType().Form(); ok {
				n := x.Shape[len(x.Shape)-1]
				x.Row(0).quantised(device.NewQuant(x.Type.DType(), 1, n))
			}
		}
		m, err := file.model()
		if err != nil {
			return
		}
		if len(m.tok.tokens) != m.cfg.Vocab {
			t.Fatalf("%d tokens, a vocabulary of %d", len(m.tok.tokens), m.cfg.Vocab)
		}
		for _, p := range m.cfg.Parameters() {
			s := m.Stored(p.Name)
			if err := s.Float32s(make([]float32, s.(*stored).Len()), 0); err != nil {
				t.Fatal(err)
			}
		}
	})
}
