package native

import (
	"fmt"
	"strings"
	"unsafe"

	"github.com/rubicon-rl/rubicon/cuda/driver"
)

// library is an open library with the functions that are used of it.
type library struct {
	path  string
	names []string
	fn    []uintptr // by the index of its name
	fail  func(call string, code int) *driver.Error
}

// load finds a library and its functions, in the order of names.
func (w wanted) load(e Env, names []string, fail func(call string, code int) *driver.Error) (*library, error) {
	lib, path, err := w.find(e)
	if err != nil {
		return nil, err
	}
	l := &library{path: path, names: names, fn: make([]uintptr, len(names)), fail: fail}
	for i, name := range names {
		if l.fn[i], err = symbol(lib, name); err != nil {
			return nil, fmt.Errorf("%s has no function %s: it is too old, or another library: %s", path, name, w.hint)
		}
	}
	return l, nil
}

// call calls function f of the library. A variable that it writes is given as uintptr(unsafe.Pointer(new(T))).
//
//go:uintptrescapes
func (l *library) call(f int, a ...uintptr) error {
	if code := int32(invoke(l.fn[f], a...)); code != 0 {
		return l.fail(l.names[f], int(code))
	}
	return nil
}

// text is a C string.
func text(s string) []byte { return append([]byte(s), 0) }

// goText is the text of a C string of at most 4096 bytes; "" for nil.
func goText(p *byte) string {
	if p == nil {
		return ""
	}
	var b strings.Builder
	for i := range 4096 {
		c := *(*byte)(unsafe.Add(unsafe.Pointer(p), i))
		if c == 0 {
			break
		}
		b.WriteByte(c)
	}
	return b.String()
}
