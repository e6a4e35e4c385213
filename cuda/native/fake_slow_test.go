//go:build slow && linux && (amd64 || arm64) && !nocuda && !nodl

package native

import (
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"unsafe"

	"github.com/rubicon-rl/rubicon/cuda/driver"
	"github.com/rubicon-rl/rubicon/cuda/fakegpu"
)

const fakeFile = "RUBICON_TEST_FAKEGPU" // the built libraries

// TestMain builds the fake libraries once. A process that was started as a rank of a group is that instead.
func TestMain(m *testing.M) {
	if os.Getenv("RANK") != "" {
		if err := rank(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if os.Getenv("RUBICON_TEST_GPU") == "1" { // TestConformance alone
		os.Exit(m.Run())
	}
	os.Exit(withFake(m))
}

func withFake(m *testing.M) int {
	dir, err := os.MkdirTemp("", "fakegpu")
	if err == nil {
		defer os.RemoveAll(dir)
		var lib string
		if lib, err = fakegpu.Build(dir); err == nil {
			os.Setenv(fakeFile, lib)
			return m.Run()
		}
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// fake is the fake libraries in a test that is locked to its thread. What a test has set it takes back.
type fake struct {
	testing.TB
	env Env
	set map[string]uintptr // functions of the fake for tests
}

func newFake(t testing.TB, vars map[string]string) *fake {
	t.Helper()
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	path := os.Getenv(fakeFile)
	all := map[string]string{"RUBICON_LIBCUDA": path, "RUBICON_CUBLAS": path, "RUBICON_NCCL": path}
	for name, v := range vars {
		all[name] = v
	}
	f := &fake{TB: t, env: machine(all), set: map[string]uintptr{}}
	lib, err := open(path)
	f.must(err)
	for _, name := range []string{"fake_option", "fake_fail", "fake_heal"} {
		f.set[name], err = symbol(lib, name)
		f.must(err)
	}
	return f
}

// must ends the test if one of errs is an error.
func (f *fake) must(errs ...error) {
	f.Helper()
	for _, err := range errs {
		if err != nil {
			f.Fatal(err)
		}
	}
}

// option changes the fake until the end of the test, when it is otherwise again.
func (f *fake) option(name string, value, otherwise int) {
	s := text(name)
	invoke(f.set["fake_option"], uintptr(unsafe.Pointer(&s[0])), uintptr(value))
	f.Cleanup(func() { invoke(f.set["fake_option"], uintptr(unsafe.Pointer(&s[0])), uintptr(otherwise)) })
}

// fail makes the next call of this name fail.
func (f *fake) fail(call string, code int) {
	s := text(call)
	invoke(f.set["fake_fail"], uintptr(unsafe.Pointer(&s[0])), uintptr(code))
}

// open opens the first device.
func (f *fake) open() *Driver {
	f.Helper()
	c, err := Load(f.env)
	f.must(err)
	list, err := c.Devices()
	f.must(err)
	d, err := c.Open(list[0])
	f.must(err)
	f.Cleanup(func() {
		invoke(f.set["fake_heal"])
		if err := d.Close(); err != nil {
			f.Error(err)
		}
	})
	return d
}

func (f *fake) stream(d *Driver) driver.Stream {
	f.Helper()
	s, err := d.NewStream()
	f.must(err)
	f.Cleanup(func() { d.CloseStream(s) })
	return s
}

// memory is n bytes on the device.
func (f *fake) memory(d *Driver, n int) driver.Ptr {
	f.Helper()
	p, err := d.Alloc(int64(n))
	f.must(err)
	f.Cleanup(func() { d.Free(p) })
	return p
}

// kernel is a kernel of cuda/kernels.
func (f *fake) kernel(d *Driver, file, name string) driver.Func {
	f.Helper()
	m, err := d.Load(ptx(f, file))
	f.must(err)
	k, err := d.Func(m, name)
	f.must(err)
	return k
}

func ptx(t testing.TB, file string) []byte {
	t.Helper()
	packed, err := os.Open(filepath.Join("..", "ptx", file+".ptx.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	r, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// floats is new memory with values in it.
func (f *fake) floats(d *Driver, s driver.Stream, values ...float32) driver.Ptr {
	f.Helper()
	var b []byte
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	p := f.memory(d, len(b))
	f.must(d.CopyIn(p, b, s), d.SyncStream(s))
	return p
}

func (f *fake) read(d *Driver, s driver.Stream, p driver.Ptr, n int) []float32 {
	f.Helper()
	b := make([]byte, 4*n)
	f.must(d.CopyOut(b, p, s), d.SyncStream(s))
	values := make([]float32, n)
	for i := range values {
		values[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return values
}
