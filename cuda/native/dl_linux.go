//go:build linux && (amd64 || arm64) && !nocuda && !nodl

package native

import (
	"strings"

	"github.com/ebitengine/purego"
)

// open opens a shared library by its path or its name.
func open(path string) (uintptr, error) {
	lib, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return 0, reason{path, err.Error()}
	}
	return lib, nil
}

// reason is the loader's message without the path that it begins with.
type reason struct{ path, text string }

func (r reason) Error() string {
	return strings.TrimPrefix(strings.TrimPrefix(r.text, r.path), ": ")
}

func symbol(lib uintptr, name string) (uintptr, error) { return purego.Dlsym(lib, name) }

// invoke calls a C function. What the arguments point to is on the heap, where it does not move.
//
//go:uintptrescapes
func invoke(fn uintptr, a ...uintptr) uintptr {
	r, _, _ := purego.SyscallN(fn, a...)
	return r
}

// bind makes *f, a pointer to a Go function, call a C function, with structures by value; it is slower than invoke.
func bind(f any, fn uintptr) { purego.RegisterFunc(f, fn) }
