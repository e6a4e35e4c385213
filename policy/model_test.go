package policy

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/internal/golden"
	"github.com/rubicon-rl/rubicon/policy/safetensors"
)

// With bfloat16 weights the logits are transformers' with the same weights and float32 arithmetic, whether the files hold
// bfloat16 or float32 that is rounded on the way.
func TestBFloat16Golden(t *testing.T) {
	for _, name := range tinyModels {
		dir := inBFloat16(t, name, 1)
		t.Run(name, func(t *testing.T) {
			onDevices(t, func(t *testing.T, dev device.Device) {
				g := tensors(t, "forward", name)
				rows, _ := unpad(g["right.input_ids"], g["right.attention_mask"])
				m := load(t, dev, dir, LoadOptions{})
				if m.embed.DType() != device.BFloat16 {
					t.Error("auto does not keep bfloat16")
				}
				got := m.testLogits(t, roots(rows), "")
				golden.Close(t, "logits", got, g["bf16.logits_f32compute"].Float, 5e-5)
				wide := load(t, dev, dir, LoadOptions{DType: "float32"})
				golden.Close(t, "widened", wide.testLogits(t, roots(rows), ""), got, 2e-5)
			})
		})
	}
}

// inBFloat16 rounds the tensors of a tiny model that have at least rank axes to bfloat16, into a new folder.
func inBFloat16(t *testing.T, name string, rank int) string {
	t.Helper()
	dir := golden.Path("models", name)
	set, err := safetensors.OpenDir(dir)
	must(t, err)
	defer set.Close()
	var items []safetensors.Item
	for _, name := range set.Names() {
		stored, _ := set.Tensor(name)
		v := make([]float32, stored.Len())
		must(t, stored.Float32s(v))
		to := safetensors.F32
		if len(stored.Shape) >= rank {
			to = safetensors.BF16
		}
		items = append(items, safetensors.Float32s(name, to, stored.Shape, v))
	}
	out := t.TempDir()
	must(t, safetensors.WriteDir(out, items, safetensors.Options{}))
	copyFile(t, filepath.Join(dir, "config.json"), filepath.Join(out, "config.json"))
	return out
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	must(t, err)
	must(t, os.WriteFile(to, text, 0o644))
}

// Matrices that are rounded to bfloat16 on the way in are those of a folder that holds them so.
func TestLoadRounds(t *testing.T) {
	dev := openCPU(t)
	o := ForwardOptions{Temperature: 1}
	rounded := forward(t, loadTiny(t, dev, "smollm", LoadOptions{DType: "bfloat16"}), groups(dev), o).LogP
	stored := forward(t, load(t, dev, inBFloat16(t, "smollm", 2), LoadOptions{}), groups(dev), o).LogP
	checkBits(t, "logp", rounded, stored)
}

// A model in four files is the model in one.
func TestShardedIsTheSame(t *testing.T) {
	dev := openCPU(t)
	one, four := loadTiny(t, dev, "qwen2", LoadOptions{}), loadTiny(t, dev, "qwen2-sharded", LoadOptions{})
	o := ForwardOptions{Temperature: 1}
	checkBits(t, "logp", forward(t, four, groups(dev), o).LogP, forward(t, one, groups(dev), o).LogP)
}

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

func TestLoadRefuses(t *testing.T) {
	dev := openCPU(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Load(ctx, dev, golden.Path("models", "qwen2"), LoadOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled load gives %v", err)
	}
	for _, c := range []struct {
		o    LoadOptions
		want string
	}{{LoadOptions{DType: "int8"}, "int8"}, {LoadOptions{Train: "some"}, "some"}} {
		_, err := Load(t.Context(), dev, golden.Path("models", "qwen2"), c.o)
		wantError(t, err, c.want)
	}
	dir := t.TempDir()
	copyFile(t, golden.Path("models", "qwen2", "config.json"), filepath.Join(dir, "config.json"))
	copyFile(t, golden.Path("models", "llama3", "model.safetensors"), filepath.Join(dir, "model.safetensors"))
	_, err := Load(t.Context(), dev, dir, LoadOptions{})
	wantError(t, err, "model.layers.0.self_attn.q_proj.bias")
	_, err = Load(t.Context(), dev, t.TempDir(), LoadOptions{})
	wantError(t, err, "config.json")

	m := loadTiny(t, dev, "qwen2", LoadOptions{})
	if _, err := m.Params(FullSet); err == nil {
		t.Error("frozen weights can be trained")
	}
	_, err = m.Params("nobody")
	if !errors.Is(err, ErrNoAdapter) {
		t.Errorf("error %v, want ErrNoAdapter", err)
	}
	wantError(t, m.LoadAdapter("x", golden.Path("models", "qwen2")), "adapter_config.json")
	if n := len(m.Adapters()); n != 0 {
		t.Errorf("a failed load leaves %d adapters", n)
	}
}

// A forest that cannot be computed is refused with what is wrong and where.
func TestForwardRefuses(t *testing.T) {
	m := loadTiny(t, openCPU(t), "qwen2", LoadOptions{})
	ok := Segment{Parent: Root, Tokens: []int32{1, 2}}
	o := ForwardOptions{Temperature: 1}
	for _, c := range []struct {
		segments []Segment
		o        ForwardOptions
		want     []string
	}{
		{nil, o, []string{"no segments"}},
		{[]Segment{ok, {Parent: 1, Tokens: []int32{1}}}, o, []string{"segment 1", "parent is 1"}},
		{[]Segment{ok, {Parent: -2, Tokens: []int32{1}}}, o, []string{"segment 1", "parent is -2"}},
		{[]Segment{ok, {Parent: 0}}, o, []string{"segment 1", "no tokens"}},
		{[]Segment{ok, {Parent: 0, Tokens: []int32{5, 1000}}}, o, []string{"segment 1", "token 1", "1000"}},
		{[]Segment{ok, {Parent: 0, Tokens: []int32{-1}}}, o, []string{"segment 1", "-1"}},
		{[]Segment{{Parent: Root, Tokens: []int32{5}, Score: []bool{true}}}, o, []string{"segment 0", "nothing stands before"}},
		{[]Segment{{Parent: Root, Tokens: []int32{5}, Score: []bool{false, true}}}, o, []string{"1 tokens", "2 score marks"}},
		{[]Segment{ok, {Parent: 0, Tokens: make([]int32, 511)}}, o, []string{"segment 1", "513", "512"}},
		{[]Segment{{Parent: Root, Tokens: []int32{5, 6}, Score: []bool{false, true}}}, ForwardOptions{}, []string{"temperature"}},
		{[]Segment{ok}, ForwardOptions{Pool: []bool{true, true}}, []string{"2 pool marks", "1 segments"}},
		{[]Segment{ok}, ForwardOptions{Grad: true}, []string{"frozen", "adapter"}},
		{[]Segment{ok}, ForwardOptions{Adapter: "nobody"}, []string{"nobody"}},
		{[]Segment{{Parent: Root, Tokens: []int32{5, 6}, Score: []bool{false, true}}},
			ForwardOptions{Temperature: 1, HasKL: true, KL: "nobody"}, []string{"nobody"}},
	} {
		_, err := m.Forward(&Forest{Segments: c.segments}, c.o)
		wantError(t, err, c.want...)
	}
	must(t, m.dev.Err())
}

// A pass gives its gradients once, and only the ones that it has.
func TestBackwardRefuses(t *testing.T) {
	m := mixedModel(t, openCPU(t), 0)
	pass := func(grad bool) *Pass {
		p, err := m.Forward(groups(m.dev), ForwardOptions{Adapter: "policy", Temperature: 1, Grad: grad})
		must(t, err)
		return p
	}
	wantError(t, pass(false).Backward(Gradients{}), "Grad")
	wantError(t, pass(true).Backward(Gradients{LogP: []float32{1}}), "1 log-probabilities")
	wantError(t, pass(true).Backward(Gradients{Entropy: []float32{1}}), "1 entropies", "has 0")
	wantError(t, pass(true).Backward(Gradients{Pooled: make([][]float32, 1)}), "1 pooled")
	p := pass(true)
	must(t, p.Backward(Gradients{}))
	wantError(t, p.Backward(Gradients{}), "released")
	p.Release()
}

// Hidden gives each segment's rows of the last hidden states, the same as pooling does over one root.
func TestHiddenAndPooled(t *testing.T) {
	onDevices(t, func(t *testing.T, dev device.Device) {
		m := loadTiny(t, dev, "llama3", LoadOptions{})
		f, pool := family3()
		hidden, err := m.Hidden(f, "")
		must(t, err)
		out := forward(t, m, f, ForwardOptions{Temperature: 1, Pool: pool})
		for i, path := range [][]int{{0, 1}, {3}, {0, 1, 4}} { // the pooled segments' paths
			mean, n := make([]float32, m.cfg.Width), 0
			for _, s := range path {
				n += len(f.Segments[s].Tokens)
				for j, x := range hidden[s] {
					mean[j%len(mean)] += x
				}
			}
			for j := range mean {
				mean[j] /= float32(n)
			}
			golden.Close(t, "pooled", out.Pooled[i], mean, 1e-6)
		}
		if len(out.Pooled) != 3 {
			t.Errorf("%d pooled vectors, want 3", len(out.Pooled))
		}
	})
}

// KL is that of the reference against the policy, over the whole vocabulary at the temperature.
func TestKL(t *testing.T) {
	onDevices(t, func(t *testing.T, dev device.Device) {
		m := mixedModel(t, dev, 0)
		addScrambled(t, m, "reference", 0)
		f := roots([][]int32{sequenceOf(6, 1)})
		const temp = 0.8
		for _, ref := range []string{"", "reference", "policy"} {
			got := forward(t, m, f, ForwardOptions{Adapter: "policy", Temperature: temp, HasKL: true, KL: ref}).KL
			policy, other := m.testLogits(t, f, "policy"), m.testLogits(t, f, ref)
			var want []float32
			for i := range got {
				row := func(z []float32) []float64 { return softmax(z[i*m.cfg.Vocab:(i+1)*m.cfg.Vocab], temp) }
				kl, p := 0.0, row(policy)
				for v, q := range row(other) {
					kl += q * math.Log(q/p[v])
				}
				want = append(want, float32(kl))
			}
			golden.Close(t, "KL to "+ref, got, want, 1e-5)
		}
	})
}

// The rotation tables grow with the paths.
func TestLongPaths(t *testing.T) {
	c := mustConfig(t, "llama3")
	c.MaxPositions = 4096
	dev := openCPU(t)
	open := func() *Model {
		m, err := New(t.Context(), dev, c, 1, LoadOptions{})
		must(t, err)
		t.Cleanup(func() { must(t, m.Close()) })
		return m
	}
	grown, fresh := open(), open()
	long, o := roots([][]int32{sequenceOf(700, 1)}), ForwardOptions{Temperature: 1}
	forward(t, grown, roots([][]int32{sequenceOf(10, 1)}), o)
	checkBits(t, "logp", forward(t, grown, long, o).LogP, forward(t, fresh, long, o).LogP)
}

// Each module of each layer has its own masks, by (seed, step, layer, module).
func TestDropoutKeys(t *testing.T) {
	m := mixedModel(t, openCPU(t), 0.5)
	set, err := m.adapter("policy")
	must(t, err)
	n := m.net(netOptions{set: set, drop: &dropping{seed: 8, step: 9, rows: &rows{}}})
	seen := map[device.PhiloxKey]bool{}
	for l := range n.layers {
		module := uint64(0)
		for _, lin := range n.layers[l] {
			for _, part := range lin.LoRA {
				if want := device.NewKey(8, 9, uint64(l), module); part.Drop.Key != want || part.Drop.P != 0.5 {
					t.Errorf("layer %d, module %d: %+v, want key %v", l, module, part.Drop, want)
				}
				seen[part.Drop.Key] = true
				module++
			}
		}
	}
	if len(seen) != 7*m.cfg.Layers {
		t.Errorf("%d keys, want %d", len(seen), 7*m.cfg.Layers)
	}
}
