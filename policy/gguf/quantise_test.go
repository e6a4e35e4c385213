package gguf

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math"
	"path/filepath"
	"strings"
	"testing"
)

// The blocks are the gguf package's, which are those of llama.cpp's reference: halves go away from zero, and the codes are
// found with a scale that is not yet rounded to float16.
func TestQuantiseQ8(t *testing.T) {
	var file struct {
		Blocks []struct{ Values, Bytes string }
	}
	readJSON(t, filepath.Join("testdata", "q8_0.json"), &file)
	if len(file.Blocks) < 20 {
		t.Fatalf("%d blocks", len(file.Blocks))
	}
	for i, b := range file.Blocks {
		raw, err := hex.DecodeString(b.Values)
		if err != nil {
			t.Fatal(err)
		}
		values := make([]float32, len(raw)/4)
		for j := range values {
			values[j] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*j:]))
		}
		got, err := Q8_0.appendValues(nil, values)
		if err != nil || hex.EncodeToString(got) != b.Bytes {
			t.Errorf("block %d: %x, %v\nwant %s", i, got, err, b.Bytes)
		}
	}
	tiny := make([]float32, 32) // 1/d exceeds float32: llama.cpp's codes are undefined, the values are 0
	tiny[3] = 1e-44
	if got, err := Q8_0.appendValues(nil, tiny); err != nil || !bytes.Equal(got, make([]byte, 34)) {
		t.Errorf("a block that is almost 0: %x, %v", got, err)
	}
}

func TestAppendValuesRefuses(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	for _, c := range []struct {
		t     Type
		value float32
		want  string
	}{
		{F32, nan, "damaged"}, {F16, inf, "damaged"}, {BF16, nan, "damaged"}, {Q8_0, nan, "damaged"}, {Q8_0, inf, "damaged"},
		{F16, -65520, "too large for F16: choose bf16 or f32"}, {Q8_0, 8.4e6, "too large for Q8_0"}, {Q4_0, 1, "Q4_0"},
	} {
		values := make([]float32, 64)
		values[40] = c.value
		if _, err := c.t.appendValues(nil, values); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v in %v: error %v does not mention %q", c.value, c.t, err, c.want)
		}
	}
}
