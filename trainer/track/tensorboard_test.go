package track

import (
	"bytes"
	"encoding/hex"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// What TensorBoard 2.21's RecordWriter writes of its own protocol buffers (scripts/trackers reads our files with it).
const (
	goldenFile   = "1800000000000000a37f4b220900000000002059401a0d627261696e2e4576656e743a321852f4c7"
	goldenStart  = "0f000000000000006d532b0909000000000020594010063a020801eef28a70"
	goldenScalar = "2800000000000000ff70164a09000000000020594010ac022a1a0a0d0a06726577617264150000803e0a090a026b6c1582a8fbb7f180b956"
	goldenText   = "3200000000000000241956ec09000000000020594010052a250a230a06636f6e666967420f08071200420920202020613a20310a4a080a060a0474657874581c7ddd"
)

func TestTensorBoardBytes(t *testing.T) {
	now := func() time.Time { return time.Unix(100, 5e8) }
	for name, c := range map[string]struct {
		step int
		want string
	}{"started": {0, goldenFile}, "resumed": {5, goldenFile + goldenStart + goldenText + goldenScalar}} {
		dir := t.TempDir()
		tb := NewTensorBoard(Run{Dir: dir, Step: c.step, Config: map[string]string{"a": "1"}}, now)
		if err := tb.Begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		r := Record{300, map[string]float64{"reward": 0.25, "kl": -3e-5, "zeta": math.NaN()}}
		if err := tb.Send(t.Context(), r, now()); err != nil {
			t.Fatal(err)
		}
		if err := tb.End(t.Context(), End{}); err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join(dir, "tensorboard", "events.out.tfevents.0000000100.*"))
		if err != nil || len(files) != 1 {
			t.Fatal(files, err)
		}
		got, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		want, err := hex.DecodeString(c.want)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(got, want) {
			t.Errorf("%s: %x, want %x", name, got, want)
		}
	}
}
