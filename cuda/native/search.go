package native

import (
	"context"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Env is what the search for libraries asks the machine for.
type Env struct {
	Getenv func(string) string
	Python func() []string // the folders that python3 imports from; none if there is no python3
}

// System is the environment of this process.
func System() Env { return Env{Getenv: os.Getenv, Python: python} }

// python asks the python3 on PATH, which may be a script that chooses one of several.
func python() []string {
	ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
	defer stop()
	out, err := exec.CommandContext(ctx, "python3", "-c", `import sys; print("\n".join(sys.path))`).Output()
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

// wanted is a library to look for.
type wanted struct {
	what     string
	override string   // environment variable that names the file, and then nothing else is tried
	sonames  []string // the best first
	needs    string   // library of the same version that is opened first, from the same folder: "libcublasLt"
	system   []string // folders of systems whose loader does not know where it is
	wheels   []string // folders below site-packages
	hint     string   // what to do if it is missing
}

// places yields the paths to try, the best first.
func (w wanted) places(e Env) iter.Seq[string] {
	return func(yield func(string) bool) {
		if file := e.Getenv(w.override); file != "" {
			yield(file)
			return
		}
		for _, name := range w.sonames {
			if !yield(name) {
				return
			}
		}
		for dir := range w.folders(e) {
			for _, name := range w.sonames {
				if !yield(filepath.Join(dir, name)) {
					return
				}
			}
		}
	}
}

// folders yields the folders to look into. Python is asked last, because that starts a process.
func (w wanted) folders(e Env) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, dir := range w.system {
			if !yield(dir) {
				return
			}
		}
		if len(w.wheels) == 0 {
			return
		}
		for _, toolkit := range []string{e.Getenv("CUDA_HOME"), e.Getenv("CUDA_PATH"), "/usr/local/cuda"} {
			if toolkit != "" && !yield(filepath.Join(toolkit, "lib64")) {
				return
			}
		}
		for _, name := range []string{"VIRTUAL_ENV", "CONDA_PREFIX"} {
			if e.Getenv(name) != "" && !w.inWheels(siteOf(e.Getenv(name)), yield) {
				return
			}
		}
		w.inWheels(e.Python(), yield)
	}
}

// siteOf is where packages of the Python environment in a folder are.
func siteOf(env string) []string {
	pattern := filepath.Join(env, "lib", "python3*", "site-packages")
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) == 0 {
		return []string{pattern} // to be named among what was tried
	}
	return found
}

func (w wanted) inWheels(sites []string, yield func(string) bool) bool {
	for _, site := range sites {
		if filepath.Base(site) != "site-packages" && filepath.Base(site) != "dist-packages" {
			continue
		}
		for _, dir := range w.wheels {
			if !yield(filepath.Join(site, "nvidia", dir)) {
				return false
			}
		}
	}
	return true
}

// NotFound is a library that could not be opened.
type NotFound struct {
	What  string
	Tried []string // "PATH: why not", in order
	Hint  string
}

func (e *NotFound) Error() string {
	return fmt.Sprintf("%s: %s; tried\n  %s", e.Short(), e.Hint, strings.Join(e.Tried, "\n  "))
}

// Short is the message on one line, without what was tried.
func (e *NotFound) Short() string { return e.What + " cannot be opened" }

// find opens the first place that there is.
func (w wanted) find(e Env) (lib uintptr, at string, err error) {
	missing := &NotFound{What: w.what, Hint: w.hint}
	for path := range w.places(e) {
		w.prepare(path)
		lib, err := open(path)
		if err == nil {
			return lib, mapped(path), nil
		}
		missing.Tried = append(missing.Tried, fmt.Sprintf("%s: %v", path, err))
	}
	return 0, "", missing
}

// prepare opens what the library at path needs, so that the loader does not look elsewhere; if that fails, so does what follows.
func (w wanted) prepare(path string) {
	if w.needs == "" || !filepath.IsAbs(path) {
		return
	}
	dir, name := filepath.Split(path)
	if _, version, ok := strings.Cut(name, ".so"); ok {
		open(dir + w.needs + ".so" + version)
	}
}

// mapped is the file of an open library: the loader finds a bare name in folders of its own.
func mapped(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return name
	}
	stem, _, _ := strings.Cut(name, ".so")
	for line := range strings.Lines(string(maps)) {
		if at := strings.IndexByte(line, '/'); at >= 0 && strings.HasPrefix(filepath.Base(line[at:]), stem+".so") {
			return strings.TrimSpace(line[at:])
		}
	}
	return name
}
