package native

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// machine is an environment with these variables and Python folders.
func machine(vars map[string]string, python ...string) Env {
	return Env{Getenv: func(name string) string { return vars[name] }, Python: func() []string { return python }}
}

func cublas(major int) wanted {
	w := wanted{what: "cuBLAS", override: "RUBICON_CUBLAS", needs: "libcublasLt", hint: "install it", wheels: []string{"cu13/lib", "cublas/lib"}}
	for v := major; v >= 12; v-- {
		w.sonames = append(w.sonames, "libcublas.so."+string(rune('0'+v/10))+string(rune('0'+v%10)))
	}
	return w
}

// A wrong order finds the library of another CUDA than the one that the user chose.
func TestPlaces(t *testing.T) {
	venv := t.TempDir()
	site := filepath.Join(venv, "lib", "python3.12", "site-packages")
	if err := os.MkdirAll(site, 0o755); err != nil {
		t.Fatal(err)
	}
	e := machine(map[string]string{"CUDA_HOME": "/opt/cuda", "VIRTUAL_ENV": venv}, "/usr/lib/python3.11", "/usr/lib/python3/dist-packages", "")
	got := slices.Collect(cublas(13).places(e))
	var want []string
	for _, dir := range []string{"", "/opt/cuda/lib64", "/usr/local/cuda/lib64", site + "/nvidia/cu13/lib", site + "/nvidia/cublas/lib",
		"/usr/lib/python3/dist-packages/nvidia/cu13/lib", "/usr/lib/python3/dist-packages/nvidia/cublas/lib"} {
		want = append(want, filepath.Join(dir, "libcublas.so.13"), filepath.Join(dir, "libcublas.so.12"))
	}
	if !slices.Equal(got, want) {
		t.Errorf("places are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A file that the user names and that is not there must not be replaced by another one silently.
func TestOverride(t *testing.T) {
	e := machine(map[string]string{"RUBICON_CUBLAS": "/nowhere/libcublas.so.12", "CUDA_HOME": "/opt/cuda"}, "/usr/lib/python3/dist-packages")
	if got := slices.Collect(cublas(12).places(e)); !slices.Equal(got, []string{"/nowhere/libcublas.so.12"}) {
		t.Errorf("places are %q", got)
	}
}

// Python is a process to start: it must not be asked if what comes before is enough.
func TestPythonLast(t *testing.T) {
	e := machine(map[string]string{"VIRTUAL_ENV": "/venv"})
	e.Python = func() []string { t.Error("python was asked"); return nil }
	for path := range cublas(12).places(e) {
		if strings.HasPrefix(path, "/venv/") {
			break
		}
	}
}

// Who has no driver must see where it was looked for and what to do.
func TestNotFound(t *testing.T) {
	_, err := Load(machine(map[string]string{"RUBICON_LIBCUDA": "/nowhere/libcuda.so.1"}))
	var missing *NotFound
	if !errors.As(err, &missing) {
		t.Fatalf("the error is %v", err)
	}
	for _, part := range []string{"/nowhere/libcuda.so.1: ", "set RUBICON_LIBCUDA"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error has no %q: %v", part, err)
		}
	}
	if len(missing.Tried) != 1 {
		t.Errorf("tried %q", missing.Tried)
	}
}

func TestChoose(t *testing.T) {
	list := []Device{{Ordinal: 0, Name: "A"}, {Ordinal: 1, Name: "B"}}
	for rank, want := range map[string]string{"": "A", "0": "A", "1": "B"} {
		if d, err := Choose(list, rank); err != nil || d.Name != want {
			t.Errorf("rank %q has device %v, %v", rank, d.Name, err)
		}
	}
	for _, rank := range []string{"2", "-1", "x"} {
		if _, err := Choose(list, rank); err == nil || !strings.Contains(err.Error(), "0: A, 1: B") {
			t.Errorf("rank %q: %v", rank, err)
		}
	}
}

// bfloat16 does not exist before 8.0.
func TestRefusal(t *testing.T) {
	for capability, refused := range map[[2]int]bool{{7, 5}: true, {8, 0}: false, {8, 9}: false, {9, 0}: false, {12, 0}: false} {
		d := Device{Name: "Tesla", Major: capability[0], Minor: capability[1]}
		if err := d.Refusal(); (err != nil) != refused {
			t.Errorf("compute capability %v: %v", capability, err)
		}
	}
}
