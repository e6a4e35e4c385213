package criteria

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
)

func openLog(t *testing.T, dir string) *Log {
	t.Helper()
	l, err := OpenLog(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func TestLogKeepsEvents(t *testing.T) {
	dir := t.TempDir()
	first := mustSet(t, "p<1>", 1, one("a"))
	second := mustSet(t, "p<1>", 2, one("b"))
	l := openLog(t, dir)
	if err := l.Append(Event{Kind: Init, Set: &first}); err != nil {
		t.Fatal(err)
	}
	op := Op{Kind: "replace", Before: []string{"a"}, After: []string{"b"}, Reason: "saturated"}
	if err := l.Append(Event{Step: 3, Kind: Update, Set: &second, Ops: []Op{op}, Note: map[string]any{"mean": 0.5}}); err != nil {
		t.Fatal(err)
	}
	got, err := ReadLog(LogPath(dir))
	want := []Event{{Scope: "p<1>", Version: 1, Kind: Init, Set: &first},
		{Step: 3, Scope: "p<1>", Version: 2, Kind: Update, Set: &second, Ops: []Op{op}, Note: map[string]any{"mean": 0.5}}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	text, err := os.ReadFile(filepath.Join(dir, "rubrics", "log.jsonl"))
	if err != nil || int64(len(text)) != l.Size() || !strings.Contains(string(text), `"p<1>"`) {
		t.Errorf("size %d, file %q, %v", l.Size(), text, err)
	}
}

// A run that was killed while it wrote leaves half a line. A reader must say so and a writer must not glue the next
// event to it.
func TestLogAfterATornLine(t *testing.T) {
	dir := t.TempDir()
	l := openLog(t, dir)
	if err := l.Append(Event{Kind: Init, Scope: "a"}, Event{Kind: Init, Scope: "b"}); err != nil {
		t.Fatal(err)
	}
	size := l.Size()
	f, err := os.OpenFile(LogPath(dir), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"step":1,"sc`); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	events, err := ReadLog(LogPath(dir))
	if !errors.Is(err, ErrTorn) || !strings.Contains(err.Error(), "line 3") || len(events) != 2 {
		t.Errorf("read %d events, %v", len(events), err)
	}
	l = openLog(t, dir)
	if l.Size() != size {
		t.Errorf("reopened at %d bytes, want %d", l.Size(), size)
	}
	if err := l.Append(Event{Kind: Update, Scope: "c"}); err != nil {
		t.Fatal(err)
	}
	if events, err := ReadLog(LogPath(dir)); err != nil || len(events) != 3 || events[2].Scope != "c" {
		t.Errorf("read %+v, %v", events, err)
	}
}

// A line in the middle that is no event is damage, not a torn end.
func TestReadLogNamesTheBadLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.jsonl")
	if err := os.WriteFile(path, []byte("{\"kind\":\"init\"}\nnonsense\n{\"kind\":\"init\"}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	events, err := ReadLog(path)
	if err == nil || errors.Is(err, ErrTorn) || !strings.Contains(err.Error(), "line 2") || len(events) != 1 {
		t.Errorf("read %d events, %v", len(events), err)
	}
}

// A resumed run cuts the log back to its checkpoint and writes the rest again: the file must be that of an undisturbed run.
func TestLogTruncate(t *testing.T) {
	dir := t.TempDir()
	l := openLog(t, dir)
	for _, scope := range []string{"a", "b"} {
		if err := l.Append(Event{Kind: Init, Scope: scope}); err != nil {
			t.Fatal(err)
		}
	}
	whole, err := os.ReadFile(LogPath(dir))
	if err != nil {
		t.Fatal(err)
	}
	half := int64(len(whole) / 2)
	for _, size := range []int64{half - 1, l.Size() + 1, -1} {
		if err := l.Truncate(size); err == nil || !strings.Contains(err.Error(), "another run") {
			t.Errorf("cut to %d: %v", size, err)
		}
	}
	if err := l.Truncate(half); err != nil {
		t.Fatal(err)
	}
	if err := l.Append(Event{Kind: Init, Scope: "b"}); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(LogPath(dir)); err != nil || string(got) != string(whole) {
		t.Errorf("the file is %q, %v, want %q", got, err, whole)
	}
	if err := l.Truncate(0); err != nil || l.Size() != 0 {
		t.Errorf("cut to nothing: %v, %d bytes", err, l.Size())
	}
}

func TestLogIsSafeForSeveralGoroutines(t *testing.T) {
	dir := t.TempDir()
	l := openLog(t, dir)
	var work sync.WaitGroup
	for range 8 {
		work.Go(func() {
			for range 5 {
				if err := l.Append(Event{Kind: Init, Scope: strings.Repeat("s", 100)}, Event{Kind: Update}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
	events, err := ReadLog(LogPath(dir))
	if err != nil || len(events) != 80 {
		t.Fatalf("read %d events, %v", len(events), err)
	}
	for i := 0; i < len(events); i += 2 {
		if events[i].Kind != Init || events[i+1].Kind != Update {
			t.Fatalf("events %d and %d of one call are apart", i, i+1)
		}
	}
}

func TestAppendRefusesAnEventWithoutKind(t *testing.T) {
	l := openLog(t, t.TempDir())
	if err := l.Append(Event{Kind: Init}, Event{}); err == nil || l.Size() != 0 {
		t.Errorf("error %v, %d bytes written", err, l.Size())
	}
}
