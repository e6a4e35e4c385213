package policy

import (
	"math"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/internal/golden"
)

// The first update moves every parameter by lr·g/(|g|+eps) after decay, which spares norms and biases.
func TestAdamWFirstStep(t *testing.T) {
	onDevices(t, func(t *testing.T, dev device.Device) {
		m := loadTiny(t, dev, "qwen2", LoadOptions{Train: "full"})
		set, err := m.Params(FullSet)
		must(t, err)
		adam, err := NewAdamW(dev, set)
		must(t, err)
		defer adam.Close()
		w, err := set.Download(dev)
		must(t, err)
		g := make([]float32, set.Len)
		uniform(g, 1, device.NewKey(2))
		dev.Upload(set.Grad, 0, g)
		const lr, decay, eps, clip = 1e-2, 0.1, 1e-8, 0.5
		must(t, adam.Step(set, lr, AdamWOptions{Beta1: 0.9, Beta2: 0.95, Eps: eps, WeightDecay: decay}, clip))
		got, err := set.Download(dev)
		must(t, err)
		want := make([]float32, set.Len)
		for i := range set.Names {
			for at := set.Offsets[i]; at < set.Offsets[i]+elements(set.Shapes[i]); at++ {
				x, grad := float64(w[at]), clip*float64(g[at])
				if len(set.Shapes[i]) == 2 {
					x *= 1 - lr*decay
				}
				want[at] = float32(x - lr*grad/(math.Abs(grad)+eps))
			}
		}
		golden.Close(t, "parameters", got, want, 2e-7)
	})
}

// An optimiser whose state was saved and set goes on with the same bits.
func TestAdamWState(t *testing.T) {
	onDevices(t, func(t *testing.T, dev device.Device) {
		m := loadTiny(t, dev, "qwen2", LoadOptions{})
		must(t, m.AddAdapter("policy", LoRAConfig{R: 4, Alpha: 8, TargetModules: []string{AllLinear}}, 5))
		set, err := m.Params("policy")
		must(t, err)
		start, err := set.Download(dev)
		must(t, err)
		h := AdamWOptions{Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, WeightDecay: 0.01}
		run := func(a *AdamW, from, to int) {
			for s := from; s < to; s++ {
				g := make([]float32, set.Len)
				uniform(g, 1, device.NewKey(uint64(s)))
				dev.Upload(set.Grad, 0, g)
				must(t, a.Step(set, 1e-2/float64(s+1), h, 1))
			}
		}
		first, err := NewAdamW(dev, set)
		must(t, err)
		defer first.Close()
		run(first, 0, 2)
		state, err := first.State()
		must(t, err)
		middle, err := set.Download(dev)
		must(t, err)
		run(first, 2, 4)
		want, err := set.Download(dev)
		must(t, err)

		second, err := NewAdamW(dev, set)
		must(t, err)
		defer second.Close()
		must(t, set.Upload(dev, middle))
		must(t, second.SetState(state))
		run(second, 2, 4)
		got, err := set.Download(dev)
		must(t, err)
		checkClose32(t, dev, got, want)
		if relativeL2(want, start) == 0 {
			t.Error("nothing moved")
		}
		wantError(t, second.SetState(AdamWState{Step: 1, M: make([]float32, 3), V: make([]float32, 3)}), "another run")
	})
}

// checkClose32 wants the same bits, or, where the host's float32 copy of the state rounds, almost.
func checkClose32(t *testing.T, dev device.Device, got, want []float32) {
	t.Helper()
	if isReference(dev) {
		golden.Close(t, "parameters", got, want, 1e-7)
		return
	}
	checkBits(t, "parameters", got, want)
}

// GradSquares is the sum over all tensors, and shows what is not finite.
func TestGradSquares(t *testing.T) {
	onDevices(t, func(t *testing.T, dev device.Device) {
		m := loadTiny(t, dev, "qwen2", LoadOptions{Train: "full"})
		set, err := m.Params(FullSet)
		must(t, err)
		g := make([]float32, set.Len)
		uniform(g, 1, device.NewKey(2))
		want := 0.0
		for _, x := range g {
			want += float64(x) * float64(x)
		}
		dev.Upload(set.Grad, 0, g)
		if got := set.GradSquares(dev); math.Abs(got-want) > 1e-9*want {
			t.Errorf("%v, want %v", got, want)
		}
		dev.Upload(set.Grad, set.Len-1, []float32{float32(math.Inf(1))})
		if got := set.GradSquares(dev); !math.IsInf(got, 1) {
			t.Errorf("%v, want +Inf", got)
		}
		w, err := set.Download(dev)
		must(t, err)
		want = 0
		for _, x := range w {
			want += float64(x) * float64(x)
		}
		if got := set.Squares(dev); want == 0 || math.Abs(got-want) > 1e-9*want {
			t.Errorf("of the parameters: %v, want %v", got, want)
		}
		set.ZeroGrad(dev)
		if got := set.GradSquares(dev); got != 0 {
			t.Errorf("%v after clearing", got)
		}
	})
}
