package safetensors_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/golden"
	"github.com/rubicon-rl/rubicon/policy/safetensors"
)

// file is a file of this header and so many bytes of data.
func file(header string, data int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, data)...)
}

func entry(dtype, shape, offsets string) string {
	return `{"dtype":"` + dtype + `","shape":` + shape + `,"data_offsets":` + offsets + `}`
}

// hostile files, each with parts of the message that it must give.
var hostile = []struct {
	name string
	file []byte
	want []string
}{
	{"empty", nil, []string{"0 bytes"}},
	{"header beyond the file", binary.LittleEndian.AppendUint64(nil, 50), []string{"50 bytes", "truncated"}},
	{"huge header", bytes.Repeat([]byte{0xFF}, 16), []string{"18446744073709551615", "not a safetensors file"}},
	{"not UTF-8", file("{\"\xff\":1}", 0), []string{"UTF-8"}},
	{"not JSON", file("garbage!", 0), []string{"header"}},
	{"no object", file("[]", 0), []string{"header"}},
	{"cut JSON", file(`{"a":{"dtype":"F32"`, 0), []string{`"a"`}},
	{"text behind the header", file(`{} {}`, 0), []string{"behind"}},
	{"entry is no object", file(`{"a":3}`, 0), []string{`"a"`, "3"}},
	{"unknown key", file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"strides":[1]}}`, 4), []string{`"a"`, "strides"}},
	{"missing key", file(`{"a":{"dtype":"F32","shape":[1]}}`, 4), []string{`"a"`, "missing"}},
	{"key twice", file(`{"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 4), []string{`"a"`, "dtype occurs twice"}},
	{"metadata twice", file(`{"__metadata__":{},"__metadata__":{}}`, 0), []string{"__metadata__"}},
	{"metadata number", file(`{"__metadata__":{"x":1}}`, 0), []string{"__metadata__", "1"}},
	{"unknown type", file(`{"a":`+entry("Q3", "[1]", "[0,4]")+`}`, 4), []string{`"a"`, `"Q3"`}},
	{"three offsets", file(`{"a":`+entry("F32", "[1]", "[0,4,4]")+`}`, 4), []string{`"a"`, "data_offsets"}},
	{"negative shape", file(`{"a":`+entry("F32", "[-1]", "[0,4]")+`}`, 4), []string{`"a"`, "-1"}},
	{"fraction", file(`{"a":`+entry("F32", "[1.5]", "[0,4]")+`}`, 4), []string{`"a"`, "1.5"}},
	{"shape overflows", file(`{"a":`+entry("F32", "[4294967296,4294967296,4294967296]", "[0,4]")+`}`, 4), []string{`"a"`, "overflows"}},
	{"shape overflows behind a zero", file(`{"a":`+entry("F32", "[0,18446744073709551615]", "[0,0]")+`}`, 0), []string{`"a"`, "overflows"}},
	{"wrong byte count", file(`{"a":`+entry("F32", "[2]", "[0,4]")+`}`, 4), []string{`"a"`, "needs 8 bytes"}},
	{"range reversed", file(`{"a":`+entry("F32", "[1]", "[4,0]")+`}`, 4), []string{`"a"`, "[4,0)"}},
	{"range beyond the file", file(`{"a":`+entry("F32", "[2]", "[0,8]")+`}`, 4), []string{`"a"`, "truncated"}},
	{"overlap", file(`{"a":`+entry("F32", "[2]", "[0,8]")+`,"b":`+entry("F32", "[2]", "[4,12]")+`}`, 12), []string{`"b"`, "overlap"}},
	{"hole", file(`{"a":`+entry("F32", "[1]", "[0,4]")+`,"b":`+entry("F32", "[1]", "[8,12]")+`}`, 12), []string{`"b"`, "4 bytes before it"}},
	{"bytes behind the last tensor", file(`{"a":`+entry("F32", "[1]", "[0,4]")+`}`, 5), []string{"1 bytes behind"}},
	{"name twice", file(`{"a":`+entry("F32", "[1]", "[0,4]")+`,"a":`+entry("F32", "[1]", "[4,8]")+`}`, 8), []string{`"a"`, "twice"}},
	{"name twice, empty", file(`{"a":`+entry("F32", "[0]", "[0,0]")+`,"a":`+entry("F32", "[0]", "[0,0]")+`}`, 0), []string{`"a"`, "twice"}},
}

func TestHostile(t *testing.T) {
	dir := t.TempDir()
	for _, c := range hostile {
		path := filepath.Join(dir, "weights.bin")
		if err := os.WriteFile(path, c.file, 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := safetensors.Open(path)
		if err == nil {
			t.Errorf("%s: no error", c.name)
			continue
		}
		for _, part := range append(c.want, path) {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q does not mention %q", c.name, err, part)
			}
		}
	}
}

func TestEveryType(t *testing.T) {
	h := `{"__metadata__":{"k":"v"},"f64":` + entry("F64", "[1]", "[0,8]") + `,"i64":` + entry("I64", "[1]", "[8,16]") +
		`,"f32":` + entry("F32", "[]", "[16,20]") + `,"i32":` + entry("I32", "[1]", "[20,24]") + `,"u32":` + entry("U32", "[1]", "[24,28]") +
		`,"bf":` + entry("BF16", "[1,2]", "[28,32]") + `,"f16":` + entry("F16", "[1]", "[32,34]") + `,"i16":` + entry("I16", "[1]", "[34,36]") +
		`,"u16":` + entry("U16", "[1]", "[36,38]") + `,"i8":` + entry("I8", "[1]", "[38,39]") + `,"u8":` + entry("U8", "[1]", "[39,40]") +
		`,"bool":` + entry("BOOL", "[1]", "[40,41]") + `,"none":` + entry("F32", "[3,0]", "[41,41]") + `}`
	b := file(h, 41)
	d := b[len(b)-41:]
	binary.LittleEndian.PutUint64(d[8:], uint64(math.MaxUint64-4)) // -5
	binary.LittleEndian.PutUint32(d[16:], math.Float32bits(-1.5))
	binary.LittleEndian.PutUint32(d[20:], math.MaxUint32-6) // -7
	binary.LittleEndian.PutUint32(d[24:], math.MaxUint32)
	copy(d[28:], []byte{0x80, 0x3F, 0x20, 0xC0}) // 1, -2.5
	copy(d[32:], []byte{0x00, 0x38})             // 0.5
	copy(d[34:], []byte{0xFE, 0xFF, 0xFE, 0xFF, 0xFD, 0xFD, 1})
	f, err := safetensors.Parse("mem", b)
	if err != nil {
		t.Fatal(err)
	}
	if f.Metadata["k"] != "v" || len(f.Names()) != 13 || !slices.IsSorted(f.Names()) {
		t.Errorf("metadata %v, names %v", f.Metadata, f.Names())
	}
	for name, want := range map[string][]float32{"f32": {-1.5}, "bf": {1, -2.5}, "f16": {0.5}, "none": {}} {
		x, _ := f.Tensor(name)
		got := make([]float32, len(want))
		if err := x.Float32s(got); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v, want %v", name, got, err, want)
		}
	}
	for name, want := range map[string]int64{"i64": -5, "i32": -7, "u32": math.MaxUint32, "i16": -2, "u16": 65534, "i8": -3, "u8": 253, "bool": 1} {
		x, _ := f.Tensor(name)
		got := []int64{0}
		if err := x.Int64s(got); err != nil || got[0] != want {
			t.Errorf("%s: %v, %v, want %v", name, got, err, want)
		}
	}
	bits := make([]uint16, 2)
	x, _ := f.Tensor("bf")
	if err := x.Bits(bits); err != nil || bits[0] != 0x3F80 || bits[1] != 0xC020 {
		t.Errorf("bits %#x, %v", bits, err)
	}
	checkRefusals(t, f)
}

func checkRefusals(t *testing.T, f *safetensors.File) {
	t.Helper()
	for name, read := range map[string]func(safetensors.Tensor) error{
		"f64": func(x safetensors.Tensor) error { return x.Float32s(make([]float32, 1)) },
		"f32": func(x safetensors.Tensor) error { return x.Int64s(make([]int64, 1)) },
		"i64": func(x safetensors.Tensor) error { return x.Bits(make([]uint16, 1)) },
		"bf":  func(x safetensors.Tensor) error { return x.Float32s(make([]float32, 3)) },
	} {
		x, _ := f.Tensor(name)
		if err := read(x); err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "mem") {
			t.Errorf("%s: error %v does not name tensor and file", name, err)
		}
	}
	if _, ok := f.Tensor("other"); ok {
		t.Error("a tensor that is not there was found")
	}
}

func TestRows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	values := []float32{0, 1, 2, 3, 4, 5, 6, 7}
	if err := safetensors.Write(path, []safetensors.Item{safetensors.Float32s("a", safetensors.F32, []int{4, 2}, values)}, safetensors.Options{}); err != nil {
		t.Fatal(err)
	}
	f, err := safetensors.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	whole, _ := f.Tensor("a")
	part := whole.Rows(1, 3)
	got := make([]float32, 4)
	if err := part.Float32s(got); err != nil || !slices.Equal(got, values[2:6]) || !reflect.DeepEqual(part.Shape, []int{2, 2}) || whole.Shape[0] != 4 {
		t.Errorf("rows 1..3: %v %v, %v; the whole is %v", part.Shape, got, err, whole.Shape)
	}
	defer func() {
		if recover() == nil {
			t.Error("rows beyond the tensor")
		}
	}()
	whole.Rows(3, 5)
}

// Files written by Hugging Face's library are written again with the same bytes.
func TestRewriteGolden(t *testing.T) {
	for _, name := range []string{"qwen2", "qwen2-bf16"} {
		path := golden.Path("models", name, "model.safetensors")
		f, err := safetensors.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		var items []safetensors.Item
		for _, n := range f.Names() {
			x, _ := f.Tensor(n)
			items = append(items, safetensors.Copy(x))
		}
		slices.Reverse(items) // the order given does not matter
		again := filepath.Join(t.TempDir(), "again")
		if err := safetensors.Write(again, items, safetensors.Options{Sync: true}); err != nil {
			t.Fatal(err)
		}
		want, err1 := os.ReadFile(path)
		got, err2 := os.ReadFile(again)
		if err1 != nil || err2 != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: the file written differs from the one read (%v, %v)", name, err1, err2)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, c := range hostile {
		f.Add(c.file)
	}
	f.Add(file(`{"__metadata__":{"format":"pt"},"a":`+entry("F32", "[1,2]", "[0,8]")+`,"b":`+entry("BOOL", "[]", "[8,9]")+`}  `, 9))
	f.Fuzz(func(t *testing.T, data []byte) {
		parsed, err := safetensors.Parse("fuzz", data)
		if err != nil {
			return
		}
		var items []safetensors.Item
		for _, n := range parsed.Names() {
			x, _ := parsed.Tensor(n)
			items = append(items, safetensors.Copy(x))
		}
		path := filepath.Join(t.TempDir(), "again")
		if err := safetensors.Write(path, items, safetensors.Options{Metadata: parsed.Metadata}); err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		again, err := safetensors.Open(path)
		if err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		defer again.Close()
		for _, n := range parsed.Names() {
			a, _ := parsed.Tensor(n)
			b, ok := again.Tensor(n)
			if !ok || a.DType != b.DType || !slices.Equal(a.Shape, b.Shape) || !bytes.Equal(a.Data, b.Data) {
				t.Fatalf("tensor %q changed", n)
			}
		}
	})
}
