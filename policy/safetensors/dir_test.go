package safetensors_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/golden"
	"github.com/rubicon-rl/rubicon/policy/safetensors"
)

// The sharded golden folder holds the same tensors as the single file of the same model.
func TestOpenDir(t *testing.T) {
	one, err := safetensors.OpenDir(golden.Path("models", "qwen2"))
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	many, err := safetensors.OpenDir(golden.Path("models", "qwen2-sharded"))
	if err != nil {
		t.Fatal(err)
	}
	defer many.Close()
	if !slices.Equal(one.Names(), many.Names()) || len(one.Names()) != 38 {
		t.Fatalf("names differ: %v, %v", one.Names(), many.Names())
	}
	for _, name := range one.Names() {
		a, _ := one.Tensor(name)
		b, _ := many.Tensor(name)
		if !bytes.Equal(a.Data, b.Data) || !slices.Equal(a.Shape, b.Shape) {
			t.Errorf("%s differs", name)
		}
	}
}

func TestWriteDirSharded(t *testing.T) {
	src, err := safetensors.OpenDir(golden.Path("models", "qwen2"))
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	var items []safetensors.Item
	for _, name := range src.Names() {
		x, _ := src.Tensor(name)
		items = append(items, safetensors.Copy(x))
	}
	dir := t.TempDir()
	if err := safetensors.WriteDir(dir, items, safetensors.Options{MaxShard: 200_000}); err != nil {
		t.Fatal(err)
	}
	dst, err := safetensors.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer dst.Close()
	for _, name := range src.Names() {
		a, _ := src.Tensor(name)
		if b, ok := dst.Tensor(name); !ok || !bytes.Equal(a.Data, b.Data) {
			t.Errorf("%s differs", name)
		}
	}
	// The embedding alone exceeds the limit; the other 139,072 weights fill three files of at most 200,000 bytes.
	sizes := shardSizes(t, dir)
	if want := []string{"model-00001-of-00004.safetensors", "model-00002-of-00004.safetensors", "model-00003-of-00004.safetensors", "model-00004-of-00004.safetensors"}; !slices.Equal(slices.Sorted(maps.Keys(sizes)), want) {
		t.Errorf("files %v", sizes)
	}
	for name, n := range sizes {
		if n > 200_000 && name != "model-00001-of-00004.safetensors" {
			t.Errorf("%s holds %d bytes", name, n)
		}
	}
	index, err := os.ReadFile(filepath.Join(dir, safetensors.IndexName))
	if err != nil || !strings.Contains(string(index), `"total_size": 812288`) {
		t.Errorf("index: %v %s", err, index)
	}
}

func shardSizes(t *testing.T, dir string) map[string]int {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	sizes := map[string]int{}
	for _, path := range files {
		f, err := safetensors.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range f.Names() {
			x, _ := f.Tensor(name)
			sizes[filepath.Base(path)] += len(x.Data)
		}
		f.Close()
	}
	return sizes
}

func TestOpenDirErrors(t *testing.T) {
	write := func(dir, name string, tensors ...string) {
		var items []safetensors.Item
		for _, n := range tensors {
			items = append(items, safetensors.Float32s(n, safetensors.F32, []int{1}, []float32{1}))
		}
		if err := safetensors.Write(filepath.Join(dir, name), items, safetensors.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	for index, want := range map[string]string{
		``:                                   "neither model.safetensors nor",
		`{`:                                  safetensors.IndexName,
		`{"weight_map":{}}`:                  "weight_map",
		`{"weight_map":{"a":"../x"}}`:        `"../x"`,
		`{"weight_map":{"a":"/etc/passwd"}}`: `"/etc/passwd"`,
		`{"weight_map":{"a":".."}}`:          `".."`,
		`{"weight_map":{"a":"s3"}}`:          "s3",
		`{"weight_map":{"a":"s1"}}`:          `"b"`, // s1 holds b too
		`{"weight_map":{"a":"s1","b":"s1","c":"s1"}}`:          `"c"`, // c is in no file
		`{"weight_map":{"a":"s1","b":"s2"}}`:                   `"b"`, // b is in both
		`{"weight_map":{"a":"s1","b":"s1","x":"s4","y":"s4"}}`: `"y"`, // y is missing
	} {
		dir := t.TempDir()
		write(dir, "s1", "a", "b")
		write(dir, "s2", "b")
		write(dir, "s4", "x")
		if index != "" {
			if err := os.WriteFile(filepath.Join(dir, safetensors.IndexName), []byte(index), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := safetensors.OpenDir(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v does not mention %s", index, err, want)
		}
	}
}

func TestWriteErrors(t *testing.T) {
	a := safetensors.Float32s("a", safetensors.F32, []int{1}, []float32{1})
	wrong := errors.New("cannot be computed")
	for name, items := range map[string][]safetensors.Item{
		"twice":              {a, a},
		"needs 8":            {{Name: "a", DType: safetensors.F32, Shape: []int{2}, Write: a.Write}},
		"negative":           {{Name: "a", DType: safetensors.F32, Shape: []int{-1}, Write: a.Write}},
		"unknown type":       {{Name: "a", DType: "Q9", Shape: []int{1}, Write: a.Write}},
		"cannot be computed": {{Name: "a", DType: safetensors.F32, Shape: []int{1}, Write: func(io.Writer) error { return wrong }}},
		"supported: F32":     {safetensors.Float32s("a", safetensors.I8, []int{1}, []float32{1})},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "f")
		if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
			t.Fatal(err)
		}
		err := safetensors.Write(path, items, safetensors.Options{})
		if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), `"a"`) {
			t.Errorf("%s: error %v", name, err)
		}
		old, err := os.ReadFile(path)
		left, _ := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil || string(old) != "old" || len(left) != 1 {
			t.Errorf("%s: a failed write left %v, %q", name, left, old)
		}
	}
}

// 1.00390625 lies halfway between two bfloat16 numbers and goes to the even one.
func TestEncodeRounds(t *testing.T) {
	var b bytes.Buffer
	if err := safetensors.Encode(&b, safetensors.BF16, []float32{1.00390625, 1.01171875}); err != nil {
		t.Fatal(err)
	}
	if err := safetensors.Encode(&b, safetensors.F16, []float32{1.0 / 3}); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%x", b.Bytes()); got != "803f823f5535" {
		t.Errorf("bytes %s", got)
	}
}
