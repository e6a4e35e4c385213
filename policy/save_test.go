package policy

import (
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// All weights, trained and saved, are read back with the same bits, by Load and by LoadFull; frozen weights are not
// saved.
func TestSaveFull(t *testing.T) {
	onDevices(t, func(t *testing.T, dev device.Device) {
		for _, name := range []string{"qwen2", "llama3"} {
			m := loadTiny(t, dev, name, LoadOptions{Train: "full"})
			f, o := groups(m.dev), ForwardOptions{Temperature: 1}
			before := forward(t, m, f, o).LogP
			set, err := m.Params(FullSet)
			must(t, err)
			v, err := set.Download(dev)
			must(t, err)
			for i := range v {
				v[i] *= 1.01
			}
			must(t, set.Upload(dev, v))
			must(t, m.Refresh())
			want := forward(t, m, f, o).LogP
			if slices.Equal(want, before) {
				t.Error("the weights did not change")
			}
			dir := filepath.Join(t.TempDir(), "new")
			must(t, m.SaveFull(dir))
			checkBits(t, "loaded", forward(t, load(t, dev, dir, LoadOptions{}), f, o).LogP, want)

			again := loadTiny(t, dev, name, LoadOptions{Train: "full"})
			if again.Fingerprint() != m.Fingerprint() {
				t.Error("training changed the fingerprint")
			}
			must(t, again.LoadFull(t.Context(), dir))
			checkBits(t, "restored", forward(t, again, f, o).LogP, want)
		}
		frozen := loadTiny(t, dev, "qwen2", LoadOptions{})
		wantError(t, frozen.SaveFull(t.TempDir()), "frozen")
	})
}

// An adapter, saved and read, or restored in place, has the same bits; one of another shape is refused.
func TestSaveAdapter(t *testing.T) {
	m := mixedModel(t, openCPU(t), 0)
	f, dir := groups(m.dev), filepath.Join(t.TempDir(), "new")
	logp := func(name string) []float32 {
		return forward(t, m, f, ForwardOptions{Adapter: name, Temperature: 1}).LogP
	}
	want := logp("policy")
	must(t, m.SaveAdapter("policy", dir))
	must(t, m.LoadAdapter("copy", dir))
	checkBits(t, "loaded", logp("copy"), want)
	scramble(t, m, "policy")
	must(t, m.RestoreAdapter("policy", dir))
	checkBits(t, "restored", logp("policy"), want)
	must(t, m.AddAdapter("small", LoRAConfig{R: 1, Alpha: 2, TargetModules: []string{AllLinear}}, 1))
	wantError(t, m.RestoreAdapter("small", dir), "small", "ranks")
}

// A begins uniform in ±1/sqrt(in), B zero, the same on every device; another seed gives another A.
func TestAdapterInitialisation(t *testing.T) {
	values := map[string][]float32{}
	onDevices(t, func(t *testing.T, dev device.Device) {
		m := loadTiny(t, dev, "qwen2", LoadOptions{})
		for seed, name := range []string{"a", "b"} {
			must(t, m.AddAdapter(name, LoRAConfig{R: 8, Alpha: 8, TargetModules: []string{"q_proj", "down_proj"}}, uint64(seed)))
		}
		set, err := m.Params("a")
		must(t, err)
		v, err := set.Download(dev)
		must(t, err)
		other, err := m.Params("b")
		must(t, err)
		w, err := other.Download(dev)
		must(t, err)
		for i, name := range set.Names {
			part := v[set.Offsets[i]:][:elements(set.Shapes[i])]
			if i%2 == 1 { // B
				checkBits(t, name, part, make([]float32, len(part)))
				continue
			}
			checkUniform(t, name, part, 1/math.Sqrt(float64(set.Shapes[i][1])))
		}
		if slices.Equal(v, w) {
			t.Error("two seeds give the same adapter")
		}
		if want := values["first"]; want != nil {
			checkBits(t, "the other device's", v, want)
		}
		values["first"] = v
	})
}

// checkUniform checks range, mean and mean square of numbers that are uniform in ±bound.
func checkUniform(t *testing.T, name string, v []float32, bound float64) {
	t.Helper()
	sum, squares := 0.0, 0.0
	for _, x := range v {
		if math.Abs(float64(x)) >= bound {
			t.Fatalf("%s: %g is outside ±%g", name, x, bound)
		}
		sum += float64(x) / bound
		squares += float64(x) * float64(x) / (bound * bound)
	}
	n := float64(len(v))
	if mean, square := sum/n, squares/n; math.Abs(mean) > 4*math.Sqrt(1/(3*n)) || math.Abs(square-1.0/3) > 4*math.Sqrt(4/(45*n)) {
		t.Errorf("%s: mean %.3g, mean square %.3g, want about 0 and 1/3", name, mean, square)
	}
}

// A new model has matrices of the configured deviation, norms of 1, no biases, and computes.
func TestNew(t *testing.T) {
	c := mustConfig(t, "qwen2")
	dev := openCPU(t)
	m, err := New(t.Context(), dev, c, 4, LoadOptions{Train: "full"})
	must(t, err)
	defer m.Close()
	set, err := m.Params(FullSet)
	must(t, err)
	v, err := set.Download(dev)
	must(t, err)
	for i, name := range set.Names {
		part := v[set.Offsets[i]:][:elements(set.Shapes[i])]
		sum, squares := 0.0, 0.0
		for _, x := range part {
			sum += float64(x)
			squares += float64(x) * float64(x)
		}
		n := float64(len(part))
		mean, std := sum/n, math.Sqrt(squares/n)
		wantMean, wantStd, tol := 0.0, c.InitStd, 4*c.InitStd/math.Sqrt(n)
		switch filepath.Ext(name) {
		case ".bias":
			wantStd, tol = 0, 0
		case ".weight":
			if len(set.Shapes[i]) == 1 {
				wantMean, wantStd, tol = 1, 1, 0
			}
		}
		if math.Abs(mean-wantMean) > tol || math.Abs(std-wantStd) > tol {
			t.Errorf("%s: mean %.4g, deviation %.4g, want %.4g and %.4g", name, mean, std, wantMean, wantStd)
		}
	}
	out := forward(t, m, groups(m.dev), ForwardOptions{Temperature: 1, Entropy: true})
	for i, h := range out.Entropy {
		if math.Abs(float64(h)-math.Log(float64(c.Vocab))) > 0.1 {
			t.Fatalf("entropy %d is %g, want about that of a uniform distribution", i, h)
		}
	}
	other, err := New(t.Context(), dev, c, 5, LoadOptions{})
	must(t, err)
	defer other.Close()
	if other.Fingerprint() == m.Fingerprint() {
		t.Error("two seeds have one fingerprint")
	}
}
