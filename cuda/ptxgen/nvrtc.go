package main

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"
)

// nvrtc is NVIDIA's run-time compiler.
type nvrtc struct {
	version          func(major, minor *int32) int32
	create           func(prog *uintptr, src, name string, n int32, headers, names **byte) int32
	compile          func(prog uintptr, n int32, options **byte) int32
	logSize, ptxSize func(prog uintptr, n *uint64) int32
	log, ptx         func(prog uintptr, buf *byte) int32
	destroy          func(prog *uintptr) int32
}

func open(path string) (*nvrtc, error) {
	lib, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return nil, err
	}
	n := &nvrtc{}
	purego.RegisterLibFunc(&n.version, lib, "nvrtcVersion")
	purego.RegisterLibFunc(&n.create, lib, "nvrtcCreateProgram")
	purego.RegisterLibFunc(&n.compile, lib, "nvrtcCompileProgram")
	purego.RegisterLibFunc(&n.logSize, lib, "nvrtcGetProgramLogSize")
	purego.RegisterLibFunc(&n.log, lib, "nvrtcGetProgramLog")
	purego.RegisterLibFunc(&n.ptxSize, lib, "nvrtcGetPTXSize")
	purego.RegisterLibFunc(&n.ptx, lib, "nvrtcGetPTX")
	purego.RegisterLibFunc(&n.destroy, lib, "nvrtcDestroyProgram")
	return n, nil
}

// strings0 is an array of C strings; keep keeps them alive.
func strings0(list []string) (first **byte, keep any) {
	bodies, at := make([][]byte, len(list)), make([]*byte, len(list)+1)
	for i, s := range list {
		bodies[i] = append([]byte(s), 0)
		at[i] = &bodies[i][0]
	}
	return &at[0], at
}

// source is a program with its headers by name.
type source struct {
	name, text  string
	names, body []string
}

// compileTo returns the PTX of a program. Headers and names are given as strings, so that no path of the machine gets in.
func (n *nvrtc) compileTo(s source, options ...string) ([]byte, error) {
	headers, keepHeaders := strings0(s.body)
	names, keepNames := strings0(s.names)
	flags, keepFlags := strings0(options)
	defer runtime.KeepAlive([]any{keepHeaders, keepNames, keepFlags})
	var prog uintptr
	if r := n.create(&prog, s.text, s.name, int32(len(s.body)), headers, names); r != 0 {
		return nil, fmt.Errorf("nvrtcCreateProgram: error %d", r)
	}
	defer n.destroy(&prog)
	status := n.compile(prog, int32(len(options)), flags)
	if text := read(n.logSize, n.log, prog); text != "" {
		return nil, fmt.Errorf("%s: error %d\n%s", s.name, status, text) // warnings too
	}
	if status != 0 {
		return nil, fmt.Errorf("%s: error %d", s.name, status)
	}
	return []byte(read(n.ptxSize, n.ptx, prog)), nil
}

func read(size func(uintptr, *uint64) int32, get func(uintptr, *byte) int32, prog uintptr) string {
	var n uint64
	size(prog, &n)
	b := make([]byte, n+1)
	get(prog, unsafe.SliceData(b))
	return strings.TrimRight(string(bytes.TrimRight(b, "\x00")), "\n ")
}
