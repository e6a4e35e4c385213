package policy

import (
	"math"
	"os"
	"path/filepath"
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
			if dev.Info().Invariant {
				var whole []int32
				for _, s := range path {
					whole = append(whole, f.Segments[s].Tokens...)
				}
				alone := forward(t, m, roots([][]int32{whole}), ForwardOptions{Temperature: 1, Pool: []bool{true}})
				checkBits(t, "pooled, in one segment", alone.Pooled[0], out.Pooled[i])
			}
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
