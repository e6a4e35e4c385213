// Package golden gives tests the numbers that other libraries computed: where the files are, their tensors, and a
// comparison that says how far off a result is.
package golden

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/rubicon-rl/rubicon/policy/safetensors"
)

// Tensor is an array of a golden file: Float if the file holds floating-point numbers, Int if it holds integers.
type Tensor struct {
	Shape []int
	Float []float32
	Int   []int64
}

// Path is the path of a file below internal/golden/testdata, from the folder of any package of this module. Outside
// the module it is a path that does not exist.
func Path(elem ...string) string {
	root, err := os.Getwd()
	for err == nil {
		if _, missing := os.Stat(filepath.Join(root, "go.mod")); missing == nil || filepath.Dir(root) == root {
			break
		}
		root = filepath.Dir(root)
	}
	return filepath.Join(append([]string{root, "internal", "golden", "testdata"}, elem...)...)
}

// Tensors reads all tensors of a safetensors file.
func Tensors(t testing.TB, path string) map[string]Tensor {
	t.Helper()
	f, err := safetensors.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all := map[string]Tensor{}
	for _, name := range f.Names() {
		stored, _ := f.Tensor(name)
		g := Tensor{Shape: stored.Shape}
		switch stored.DType {
		case safetensors.F32, safetensors.BF16, safetensors.F16:
			g.Float = make([]float32, stored.Len())
			err = stored.Float32s(g.Float)
		default:
			g.Int = make([]int64, stored.Len())
			err = stored.Int64s(g.Int)
		}
		if err != nil {
			t.Fatal(err)
		}
		all[name] = g
	}
	return all
}

// Close fails the test if some |got-want| exceeds tol or is not a number, or if the lengths differ; it reports the
// largest difference and where it is, and returns it. Equal infinities differ by 0.
func Close(t testing.TB, name string, got, want []float32, tol float64) float64 {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d values, want %d", name, len(got), len(want))
		return math.Inf(1)
	}
	worst, at := -1.0, -1
	for i := range got {
		d := math.Abs(float64(got[i]) - float64(want[i]))
		if got[i] == want[i] {
			d = 0
		} else if d != d {
			d = math.Inf(1)
		}
		if d > worst {
			worst, at = d, i
		}
	}
	if worst > tol {
		t.Errorf("%s: |got-want| is %.3g at %d of %d (got %v, want %v), allowed %.3g", name, worst, at, len(got), got[at], want[at], tol)
	}
	return max(worst, 0)
}
