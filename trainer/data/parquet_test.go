package data

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/grpo"

	"github.com/parquet-go/parquet-go"
)

// The table that TRL's trainer writes with log_completions.
func TestParquetCompletions(t *testing.T) {
	o := options()
	o.Columns = map[string]string{"short": "reward_short"}
	got, _, err := Prompts([]string{"testdata/completions_00004.parquet"}, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 8 {
		t.Fatalf("%d rows", len(got))
	}
	first, third := got[0], got[2]
	if first.ID != "completions_00004.parquet row 1" || first.Messages[0] != (grpo.Message{Role: "user", Content: "Name a color."}) {
		t.Errorf("got %+v", first)
	}
	want := map[string]any{"step": int64(4), "reward_mod3": 0.5, "reward_short": nil, "short": nil, "n_tokens": int64(16), "advantage": -0.5508943200111389}
	delete(first.Columns, "completion")
	if !reflect.DeepEqual(first.Columns, want) {
		t.Errorf("got %v\nwant %v", first.Columns, want)
	}
	if third.Columns["reward_short"] != 0.1875 {
		t.Errorf("row 3 has %v", third.Columns)
	}
	// As examples, prompt and completion are one conversation.
	examples, _, err := Examples([]string{"testdata/completions_00004.parquet"}, options())
	if err != nil || len(examples) != 8 || examples[0].Given != 1 || examples[0].Messages[1].Role != "assistant" {
		t.Errorf("got %+v, %v", examples, err)
	}
}

// testdata/rows.parquet is written by pyarrow (zstd): lists of structs, nulls at every depth, lists of lists.
func TestParquetRows(t *testing.T) {
	o := options()
	o.IDColumn, o.SkipBad = "id", true
	o.Columns = map[string]string{"reference": "answer"}
	got, report, err := Prompts([]string{"testdata/rows.parquet"}, o)
	if err != nil {
		t.Fatal(err)
	}
	want := []grpo.Prompt{
		{ID: "a", Messages: []grpo.Message{{Role: "system", Content: "Be brief."}, {Role: "user", Content: "2+2?"}}, Columns: map[string]any{
			"id": "a", "answer": int64(4), "reference": int64(4), "score": 0.5, "ok": true, "tags": []any{"x", nil}, "blob": "\x00\xff",
			"reward_model": map[string]any{"style": "rule", "ground_truth": "4"}, "nested": []any{[]any{int64(1), int64(2)}, []any{}, []any{int64(3)}},
		}},
		{ID: "b", Messages: []grpo.Message{{Role: "user", Content: "héllo 日本"}}, Columns: map[string]any{
			"id": "b", "answer": nil, "reference": nil, "score": nil, "ok": nil, "tags": []any{}, "blob": nil, "reward_model": nil, "nested": nil,
		}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if report.Bad != 1 || !strings.Contains(report.Faults[0].Error(), "rows.parquet row 3: prompt is empty") {
		t.Errorf("report %v", report)
	}
}

// testdata/types.parquet is written by pyarrow (snappy, two row groups, data pages of version 2).
func TestParquetTypes(t *testing.T) {
	o := options()
	o.SkipBad = true
	got, report, err := Prompts([]string{"testdata/types.parquet"}, o)
	if err != nil {
		t.Fatal(err)
	}
	common := map[string]any{"ts": int64(1704164645000000), "date": int64(19724), "null": nil}
	for i, want := range []map[string]any{
		{"i8": int64(1), "u8": int64(255), "u32": int64(4294967295), "u64": json.Number("9223372036854775813"), "f32": 0.5, "dict": "a",
			"map": map[string]any{"k": int64(1)}, "large": "x", "us": []any{json.Number("9223372036854775809")}, "fsb": "ab"},
		{"i8": int64(-1), "u8": int64(0), "u32": int64(0), "u64": int64(1), "f32": nil, "dict": "b",
			"map": map[string]any{}, "large": "y", "us": []any{}, "fsb": "cd"},
	} {
		for k, v := range common {
			want[k] = v
		}
		if !reflect.DeepEqual(got[i].Columns, want) {
			t.Errorf("row %d: got %#v\nwant %#v", i+1, got[i].Columns, want)
		}
	}
	if report.Rows != 2 || report.Bad != 1 || !strings.Contains(report.Faults[0].Error(), "row 3: has no prompt") {
		t.Errorf("report %v", report)
	}
}

// The library would give the two bytes of a 16-bit float as text.
func TestParquetFloat16(t *testing.T) {
	_, _, err := Prompts([]string{"testdata/float16.parquet"}, options())
	if err == nil || !strings.Contains(err.Error(), "column half holds 16-bit floats") {
		t.Errorf("error %v", err)
	}
}

// A file cut short or with a byte changed is an error or rows, never a panic.
func TestParquetDamaged(t *testing.T) {
	whole, err := os.ReadFile("testdata/rows.parquet")
	if err != nil {
		t.Fatal(err)
	}
	ignore := func(string, map[string]any, error) {}
	for n := range len(whole) {
		if err := readParquet(bytes.NewReader(whole[:n]), int64(n), ignore); err == nil {
			t.Fatalf("the first %d bytes are no file", n)
		}
	}
	for i := range whole {
		for _, mask := range []byte{0x55, 1, 2, 0xff} { // among these the codec becomes LZ4
			damaged := bytes.Clone(whole)
			damaged[i] ^= mask
			rows := 0
			err := readParquet(bytes.NewReader(damaged), int64(len(damaged)), func(string, map[string]any, error) { rows++ })
			if err == nil && rows != 3 {
				t.Fatalf("byte %d changed by %#x: %d rows and no error", i, mask, rows)
			}
		}
	}
}

// A row without one column's values must not be read with the next column's in their place.
func TestParquetRowWithGap(t *testing.T) {
	value := func(column int) parquet.Value { return parquet.ValueOf("a").Level(0, 0, column) }
	for want, row := range map[string]parquet.Row{
		"":                                 {value(0), value(1), value(1), value(2)},
		"column 1 has no value in the row": {value(1), value(2)},
		"column 2 has no value in the row": {value(0), value(2)},
		"column 3 has no value in the row": {value(0), value(1)},
	} {
		got := ""
		if err := checkRow(row, 3); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%v: error %q, want %q", row, got, want)
		}
	}
}

// A footer of 4 GiB in a file of 16 bytes must not be made room for.
func TestParquetFooter(t *testing.T) {
	file := []byte("PAR1....")
	file = append(file, 0xF0, 0xFF, 0xFF, 0xFF, 'P', 'A', 'R', '1')
	err := readParquet(bytes.NewReader(file), int64(len(file)), func(string, map[string]any, error) {})
	if err == nil || !strings.Contains(err.Error(), "footer of 4294967280 bytes does not fit") {
		t.Errorf("error %v", err)
	}
}

func FuzzParquet(f *testing.F) {
	for _, name := range []string{"rows", "types", "completions_00004"} {
		seed, err := os.ReadFile("testdata/" + name + ".parquet")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		_ = readParquet(bytes.NewReader(file), int64(len(file)), func(place string, row map[string]any, err error) {
			if (row == nil) == (err == nil) {
				t.Fatalf("%s: row %v, error %v", place, row, err)
			}
		})
	})
}
