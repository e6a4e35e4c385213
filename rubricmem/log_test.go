package rubricmem

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// written makes a memory of several additions and returns its log, the ends of its records (the first is the head's), and how
// many documents there are up to each.
func written(t testing.TB) (log []byte, ends []int, docs []int) {
	t.Helper()
	dir := t.TempDir()
	m := open(t, Options{Dir: dir, Embedder: &table{}})
	n := 0
	for i := range 4 {
		var list []Doc
		for range i + 1 {
			list = append(list, doc(fmt.Sprint(n), Kinds()[i], i, fmt.Sprint("text ", n)))
			n++
		}
		must(t, m.Add(t.Context(), list...))
		ends, docs = append(ends, int(m.Size())), append(docs, n)
	}
	log, err := os.ReadFile(filepath.Join(dir, LogName))
	must(t, err)
	first := headBytes + int(binary.LittleEndian.Uint32(log))
	return log, append([]int{first}, ends...), append([]int{0}, docs...)
}

// reopen opens a memory with this log.
func reopen(t testing.TB, log []byte) (*Memory, string, error) {
	t.Helper()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, LogName), log, 0o644))
	m, err := Open(Options{Dir: dir, Embedder: &table{}})
	return m, filepath.Join(dir, LogName), err
}

// The form of a frame, by hand: the CRC-32C of "123456789" is the published check value, e3069283.
func TestFrame(t *testing.T) {
	got := appendFrame([]byte{7}, []byte("123456789"))
	want := append([]byte{7, 9, 0, 0, 0}, binary.LittleEndian.AppendUint32(nil, sum([]byte{9, 0, 0, 0}))...)
	want = append(append(want, 0x83, 0x92, 0x06, 0xe3), "123456789"...)
	if string(got) != string(want) {
		t.Errorf("frame % x, want % x", got, want)
	}
}

// Wherever the file ends, the records before are there, the rest is cut off, and what is added next is kept.
func TestTornTail(t *testing.T) {
	log, ends, docs := written(t)
	for n := range len(log) + 1 {
		if n > ends[1] && n%17 > 0 && !slices.Contains(ends, n) {
			continue // all of the first records, and enough of the others
		}
		m, path, err := reopen(t, log[:n])
		if err != nil {
			t.Fatalf("a log of %d bytes: %v", n, err)
		}
		whole, have := 0, 0
		for i, end := range ends {
			if end <= n {
				whole, have = end, docs[i]
			}
		}
		if m.Len() != have || m.Torn() != int64(n-whole) || m.Size() != int64(whole) {
			t.Fatalf("a log of %d bytes: %d documents, %d bytes torn, size %d; want %d, %d, %d", n, m.Len(), m.Torn(), m.Size(), have, n-whole, whole)
		}
		if info, err := os.Stat(path); err != nil || info.Size() != int64(whole) {
			t.Fatalf("the file has %d bytes, want %d", info.Size(), whole)
		}
		must(t, m.Add(t.Context(), doc("next", Analysis, 9, "next")))
		must(t, m.Close())
		again := open(t, Options{Dir: filepath.Dir(path), Embedder: &table{}})
		if again.Len() != have+1 || again.Torn() != 0 {
			t.Fatalf("then %d documents, want %d", again.Len(), have+1)
		}
	}
}

// A file that grew without its content, because the machine stopped, has a tail of zeros.
func TestTailOfZeros(t *testing.T) {
	log, _, _ := written(t)
	m, _, err := reopen(t, append(slices.Clone(log), make([]byte, 5000)...))
	must(t, err)
	defer m.Close()
	if m.Torn() != 5000 || m.Len() != 10 {
		t.Errorf("%d bytes torn, %d documents", m.Torn(), m.Len())
	}
}

// Any flipped bit anywhere is found, and the error has the place of its record; the file stays as it is.
func TestFlippedByte(t *testing.T) {
	log, ends, _ := written(t)
	for n := range log {
		bad := slices.Clone(log)
		bad[n] ^= 1 << (n % 8)
		m, path, err := reopen(t, bad)
		begin := 0
		for _, end := range ends {
			if end <= n {
				begin = end
			}
		}
		damage, ok := errors.AsType[*DamageError](err)
		if !ok || damage.Offset != int64(begin) || damage.Path != path || !strings.Contains(err.Error(), fmt.Sprint("byte ", begin, " ")) {
			t.Fatalf("byte %d: got %v, %v; want damage at %d", n, m, err, begin)
		}
		if now, _ := os.ReadFile(path); !slices.Equal(now, bad) {
			t.Fatalf("byte %d: the file was changed", n)
		}
	}
}

// full is a file on a disk with little room.
type full struct {
	*os.File
	room  int
	fault error // of taking back what was written
}

func (f *full) Write(b []byte) (int, error) {
	n, err := f.File.Write(b[:min(len(b), f.room)])
	f.room -= n
	if err == nil && n < len(b) {
		err = syscall.ENOSPC
	}
	return n, err
}

func (f *full) Truncate(size int64) error {
	if f.fault != nil {
		return f.fault
	}
	return f.File.Truncate(size)
}

// What does not fit on the disk is not acknowledged and leaves no trace, so that the next try begins afresh.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	m := open(t, Options{Dir: dir})
	must(t, m.Add(t.Context(), doc("a", Analysis, 1, "a")))
	size, disk := m.Size(), &full{File: m.store.file.(*os.File), room: 1000}
	m.store.file = disk
	err := m.Add(t.Context(), doc("b", Analysis, 1, "b"))
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), filepath.Join(dir, LogName)) {
		t.Errorf("error %v", err)
	}
	if _, there := m.Get("b"); there || m.Len() != 1 || m.Size() != size {
		t.Errorf("%d documents, size %d", m.Len(), m.Size())
	}
	if info, err := os.Stat(filepath.Join(dir, LogName)); err != nil || info.Size() != size {
		t.Errorf("the file has %d bytes, want %d", info.Size(), size)
	}
	disk.room = 1 << 20
	must(t, m.Add(t.Context(), doc("b", Analysis, 1, "b")))

	disk.room, disk.fault = 1000, syscall.EIO
	for range 2 { // the second would follow half a record
		if err := m.Add(t.Context(), doc("c", Analysis, 1, "c")); !errors.Is(err, syscall.EIO) || m.Len() != 2 {
			t.Errorf("error %v, %d documents", err, m.Len())
		}
		disk.room = 1 << 20
	}
	must(t, m.Close())
	if m = open(t, Options{Dir: dir}); m.Len() != 2 || m.Torn() != 1000 {
		t.Errorf("%d documents, %d bytes torn", m.Len(), m.Torn())
	}
}

// Two writers of one log would write into each other's records.
func TestSecondWriterIsNoticed(t *testing.T) {
	dir := t.TempDir()
	a, b := open(t, Options{Dir: dir}), open(t, Options{Dir: dir})
	must(t, a.Add(t.Context(), doc("a", Analysis, 1, "a")))
	if err := b.Add(t.Context(), doc("b", Analysis, 1, "b")); err == nil || b.Len() != 0 {
		t.Errorf("error %v, %d documents", err, b.Len())
	}
}

func TestClosedAndReadOnly(t *testing.T) {
	dir := t.TempDir()
	m, err := Open(Options{Dir: dir})
	must(t, err)
	must(t, m.Add(t.Context(), doc("a", Analysis, 1, "a")))
	size := m.Size()
	must(t, m.Close())
	r, err := Read(dir, nil)
	must(t, err)
	for name, x := range map[string]*Memory{"closed": m, "read": r} {
		if err := x.Add(t.Context(), doc("b", Analysis, 1, "b")); err == nil || x.Len() != 1 {
			t.Errorf("%s: error %v, %d documents", name, err, x.Len())
		}
		if x.Truncate(0) == nil || x.Snapshot(t.TempDir()) == nil || x.Close() != nil || x.Size() != size {
			t.Errorf("%s: it was changed", name)
		}
	}
	if _, err := Read(filepath.Join(dir, "nowhere"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
	if _, err := Open(Options{Dir: filepath.Join(dir, LogName)}); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("a file for a folder: error %v", err)
	}
}

// A reader sees whole records of a log that is being written, and leaves the rest to its writer.
func TestReadWhileWritten(t *testing.T) {
	log, ends, docs := written(t)
	dir := t.TempDir()
	path := filepath.Join(dir, LogName)
	must(t, os.WriteFile(path, log[:ends[2]+20], 0o644))
	r, err := Read(dir, &table{})
	must(t, err)
	if info, err := os.Stat(path); r.Len() != docs[2] || r.Torn() != 20 || err != nil || info.Size() != int64(ends[2]+20) {
		t.Errorf("%d documents, %d bytes torn, %v", r.Len(), r.Torn(), err)
	}
}

// A snapshot is a memory of its own with the same places, and a second one takes the place of the first.
func TestSnapshot(t *testing.T) {
	m, dir := open(t, Options{Dir: t.TempDir()}), filepath.Join(t.TempDir(), "checkpoint", "memory")
	for i := range 2 {
		must(t, m.Add(t.Context(), doc(fmt.Sprint(i), Analysis, i, fmt.Sprint("text ", i))))
		must(t, m.Snapshot(dir))
	}
	size := m.Size()
	must(t, m.Add(t.Context(), doc("later", Analysis, 3, "later")))
	s := open(t, Options{Dir: dir})
	if got := ids(slices.Collect(s.All())); got != "0 1" || s.Size() != size {
		t.Errorf("documents %q, size %d of %d", got, s.Size(), size)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
		t.Errorf("files %v, %v", names, err)
	}
	if err := m.Snapshot(filepath.Join(dir, LogName)); err == nil {
		t.Error("a file for a folder: no error")
	}
}

// FuzzLog: whatever the bytes are, reading ends with whole records, a torn tail or damage, never in a panic or with a record
// that was not written.
func FuzzLog(f *testing.F) {
	log, ends, _ := written(f)
	f.Add(log)
	f.Add(log[:ends[1]+5])
	f.Add(append(slices.Clone(log[:ends[0]]), appendFrame(nil, []byte("\x02\x00\x00\x00[]"))...))
	f.Add(appendFrame(nil, []byte(`{"form":"rubicon memory 1","embedder":"table","dims":1}`)))
	f.Fuzz(func(t *testing.T, log []byte) {
		m := newMemory(nil)
		var whole int64
		_, err := m.load(func(visit func([]byte, int64) error) (_ int64, err error) {
			whole, err = readFrames(strings.NewReader(string(log)), int64(len(log)), visit)
			return int64(len(log)) - whole, err
		})
		if damage, ok := errors.AsType[*DamageError](err); ok && (damage.Offset < 0 || damage.Offset >= int64(len(log))) {
			t.Errorf("damage at byte %d of %d", damage.Offset, len(log))
		} else if err != nil && !ok {
			t.Errorf("error %v", err)
		}
		if whole < 0 || whole > int64(len(log)) || err == nil && m.Size() != whole {
			t.Errorf("%d of %d bytes are whole, size %d", whole, len(log), m.Size())
		}
	})
}

// FuzzPayload: what a record with right sums may hold is checked as well.
func FuzzPayload(f *testing.F) {
	payload, err := encodeEntries([]entry{{Doc: doc("a", Analysis, 1, "a"), vector: []float32{0.6, 0.8}}})
	must(f, err)
	f.Add(payload, 2)
	f.Add(payload, 1)
	f.Add([]byte("\xff\xff\xff\xff[]"), 3)
	f.Fuzz(func(t *testing.T, payload []byte, dims int) {
		if dims < 1 || dims > 64 {
			return
		}
		list, err := decodeEntries(payload, dims)
		if err != nil {
			return
		}
		for _, e := range list {
			if _, err := length(e.vector); e.check() != nil || len(e.vector) != dims || err != nil {
				t.Errorf("took %+v", e)
			}
		}
	})
}
