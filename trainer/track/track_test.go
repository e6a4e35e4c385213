package track

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestRecordOrderAndRoundTrip(t *testing.T) {
	r := Record{Step: 3, Values: map[string]float64{"zeta": 1, "reward": 0.1, "loss": -0.25, "kl": math.NaN(), "rewards/len/std": 2e-9, "grad_norm": 1e21}}
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"step":3,"loss":-0.25,"grad_norm":1e+21,"rewards/len/std":2e-9,"reward":0.1,"kl":null,"zeta":1}`
	if string(b) != want {
		t.Errorf("Marshal = %s, want %s", b, want)
	}
	var back Record
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	if !math.IsNaN(back.Values["kl"]) {
		t.Errorf("kl = %v, want NaN", back.Values["kl"])
	}
	delete(back.Values, "kl")
	delete(r.Values, "kl")
	if !reflect.DeepEqual(back, r) {
		t.Errorf("read back %v, want %v", back, r)
	}
}

func TestJSONLResumesAtSize(t *testing.T) {
	path := filepath.Join(t.TempDir(), "metrics.jsonl")
	log := func(size int64, steps ...int) int64 {
		t.Helper()
		j, err := OpenJSONL(path, size)
		if err != nil {
			t.Fatal(err)
		}
		defer j.Close()
		for _, s := range steps {
			if err := j.Log(Record{Step: s, Values: map[string]float64{"x": float64(s)}}); err != nil {
				t.Fatal(err)
			}
		}
		n, err := j.Size()
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	size := log(0, 1, 2)
	log(size, 3, 4) // lost: the checkpoint was made at size
	log(size, 3)
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteString(`{"step": 4, "x"`) // torn
	f.Close()
	got, err := ReadJSONL(path)
	if err != nil || len(got) != 3 || got[2].Step != 3 {
		t.Errorf("ReadJSONL = %v, %v, want steps 1 2 3", got, err)
	}
	if more, next, err := ReadJSONLFrom(path, size); err != nil || len(more) != 1 || next != size+size/2 {
		t.Errorf("ReadJSONLFrom(%d) = %v, %d, %v, want step 3 and the size of three lines", size, more, next, err)
	}
	if _, err := OpenJSONL(path, 1<<20); err == nil {
		t.Error("OpenJSONL past the end = nil, want an error")
	}
}

func TestConsoleETA(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(100, 0)
	c := &Console{W: &out, Total: 30, Now: func() time.Time { return now }}
	c.Begin(10)
	now = now.Add(20 * time.Second)
	if err := c.Log(Record{Step: 20, Values: map[string]float64{"loss": 0.5, "reward": math.NaN()}}); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.HasSuffix(got, "eta 20s\n") || !strings.Contains(got, "loss 0.5000") || strings.Contains(got, "reward") {
		t.Errorf("line = %q, want loss, eta 20s, no reward", got)
	}
}

func TestSparkline(t *testing.T) {
	if got := Sparkline([]float64{0, 0.5, 1, 1}); got != "▁▄██" {
		t.Errorf("Sparkline = %q", got)
	}
	if got := Sparkline([]float64{2, 2}); got != "▁▁" {
		t.Errorf("Sparkline of equal values = %q", got)
	}
}

// The status line of half of four steps, by hand; on a narrow terminal it is cut so that it does not wrap.
func TestConsoleStatus(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(100, 0)
	c := &Console{W: &out, Total: 4, Live: true, Now: func() time.Time { return now }}
	c.Begin(0)
	now = now.Add(20 * time.Second)
	for step, reward := range map[int]float64{1: 0.25, 2: 0.25} {
		if err := c.Log(Record{Step: step, Values: map[string]float64{"loss": 1, "reward": reward}}); err != nil {
			t.Fatal(err)
		}
	}
	out.Reset()
	c.Tick(3, "sampling")
	const whole = "step 3/4 ██████████░░░░░░░░░░ 50%  sampling    reward ▁▁ 0.250  eta 20s"
	if got := out.String(); got != whole {
		t.Errorf("status %q, want %q", got, whole)
	}
	out.Reset()
	c.Width = 20
	c.Tick(3, "sampling")
	if got, want := out.String(), "\r\x1b[K"+string([]rune(whole)[:19]); got != want {
		t.Errorf("status %q, want %q", got, want)
	}
	out.Reset()
	c.Color = true
	c.Warn("look")
	if got := out.String(); got != "\r\x1b[K\x1b[33mlook\x1b[0m\n" {
		t.Errorf("warning %q, want it in yellow in place of the status line", got)
	}
}
