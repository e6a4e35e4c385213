package policy

import (
	"slices"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// everything asks for all that a pass computes, with gradients to an adapter.
func everything() loss {
	return loss{ForwardOptions{Adapter: "policy", Temperature: 0.9, Entropy: true, HasKL: true}}
}

// groups is a batch of some prompts with several completions each, tokens scored as in training; small where the device
// is the slow one.
func groups(dev device.Device) *Forest {
	f, prompts, step := &Forest{}, []int{17, 3, 40}, 7
	if isReference(dev) {
		prompts, step = []int{5, 1, 9}, 2
	}
	for p, n := range prompts {
		root := len(f.Segments)
		f.Segments = append(f.Segments, Segment{Parent: Root, Tokens: sequenceOf(n, p), ID: uint32(100 * p)})
		for c := range 3 + p {
			k := 2 + step*c
			f.Segments = append(f.Segments, Segment{
				Parent: root, Tokens: sequenceOf(k, 50+10*p+c), Score: scoreFrom(k, c%2), ID: uint32(100*p + c + 1),
			})
		}
	}
	return f
}

func sequenceOf(n, seed int) []int32 {
	var ids []int32
	for i := range n {
		ids = append(ids, int32((seed*257+i*i*31+i*7)%990))
	}
	return ids
}

// byRoot cuts a forest into one per root.
func byRoot(f *Forest) []*Forest {
	var list []*Forest
	moved := make([]int, len(f.Segments))
	for i, s := range f.Segments {
		if s.Parent == Root {
			list = append(list, &Forest{})
		} else {
			s.Parent = moved[s.Parent]
		}
		last := list[len(list)-1]
		moved[i] = len(last.Segments)
		last.Segments = append(last.Segments, s)
	}
	return list
}

// unshared gives every leaf its own copy of its path.
func unshared(f *Forest) *Forest {
	out := &Forest{}
	for _, s := range f.Segments {
		if s.Parent == Root {
			continue
		}
		prompt := f.Segments[s.Parent]
		prompt.Parent = Root
		out.Segments = append(out.Segments, prompt)
		s.Parent = len(out.Segments) - 1
		out.Segments = append(out.Segments, s)
	}
	return out
}

// mixedModel is a model with a policy adapter, with or without dropout.
func mixedModel(t *testing.T, dev device.Device, dropout float64) *Model {
	m := loadTiny(t, dev, "qwen3", LoadOptions{})
	addScrambled(t, m, "policy", dropout)
	return m
}

// gradientOf runs the passes one after the other and returns the sum of their gradients and all log-probabilities.
// weights, by pass, are the gradients that go in.
func gradientOf(t *testing.T, m *Model, l loss, fs []*Forest, weights func(pass int, out Output) Gradients) (grad, logp []float32) {
	t.Helper()
	set, err := m.Params(l.o.Adapter)
	must(t, err)
	set.ZeroGrad(m.dev)
	o := l.o
	o.Grad = true
	for i, f := range fs {
		p, err := m.Forward(f, o)
		must(t, err)
		logp = append(logp, p.Output.LogP...)
		must(t, p.Backward(weights(i, p.Output)))
	}
	grad = make([]float32, set.Len)
	must(t, m.dev.Download(grad, set.Grad, 0))
	return grad, logp
}

// byToken are gradients that depend on the log-probabilities alone, and so belong to the tokens wherever they stand.
func byToken(_ int, out Output) Gradients {
	var g Gradients
	for i := range out.LogP {
		g.LogP = append(g.LogP, out.LogP[i]/8)
		g.Entropy = append(g.Entropy, out.Entropy[i]/16)
		g.KL = append(g.KL, 0.5)
	}
	return g
}

func closeGradients(t *testing.T, what string, got, want []float32, tol float64) {
	t.Helper()
	if d := relativeL2(got, want); !(d <= tol) {
		t.Errorf("%s: gradients differ by %.3g, allowed %.3g", what, d, tol)
	}
}

// A forest gives the same log-probabilities, on the bits, and the same gradients however it is cut into micro-batches,
// ordered, and shared; dropout's masks belong to the segments.
func TestBatchDoesNotChangeGradients(t *testing.T) {
	onDevices(t, func(t *testing.T, dev device.Device) {
		m := mixedModel(t, dev, 0.3)
		whole := groups(dev)
		parts := byRoot(whole)
		for _, train := range []bool{false, true} {
			l := everything()
			l.o.Train, l.o.Seed, l.o.Step = train, 5, 9
			grad, logp := gradientOf(t, m, l, []*Forest{whole}, byToken)
			split, splitLogp := gradientOf(t, m, l, parts, byToken)
			checkBits(t, "logp of micro-batches", splitLogp, logp)
			closeGradients(t, "micro-batches", split, grad, 1e-5)

			reversed := slices.Clone(parts)
			slices.Reverse(reversed)
			order, _ := gradientOf(t, m, l, []*Forest{join(reversed)}, byToken)
			closeGradients(t, "other order", order, grad, 1e-5)

			apart, apartLogp := gradientOf(t, m, l, []*Forest{unshared(whole)}, byToken)
			checkBits(t, "logp with unshared prompts", apartLogp, logp)
			closeGradients(t, "unshared prompts", apart, grad, 1e-5)
		}
	})
}

// join puts forests side by side.
func join(fs []*Forest) *Forest {
	out := &Forest{}
	for _, f := range fs {
		base := len(out.Segments)
		for _, s := range f.Segments {
			if s.Parent != Root {
				s.Parent += base
			}
			out.Segments = append(out.Segments, s)
		}
	}
	return out
}

// Keeping all activations, recomputing them, and doing so again give the same bits; dropout depends on seed and step.
func TestRecomputeGivesTheSameBits(t *testing.T) {
	onDevices(t, func(t *testing.T, dev device.Device) {
		m := mixedModel(t, dev, 0.3)
		fs := []*Forest{groups(dev)}
		l := everything()
		l.o.Train, l.o.Seed, l.o.Step = true, 5, 9
		grad, logp := gradientOf(t, m, l, fs, byToken)
		kept := l
		kept.o.KeepAll = true
		for _, again := range []loss{l, kept} {
			g, lp := gradientOf(t, m, again, fs, byToken)
			checkBits(t, "logp", lp, logp)
			checkBits(t, "gradients", g, grad)
		}
		for _, change := range []func(o *ForwardOptions){
			func(o *ForwardOptions) { o.Step++ }, func(o *ForwardOptions) { o.Seed++ }, func(o *ForwardOptions) { o.Train = false },
		} {
			other := l
			change(&other.o)
			if slices.Equal(forward(t, m, fs[0], other.o).LogP, logp) {
				t.Errorf("%+v drops the same as %+v", other.o, l.o)
			}
		}
	})
}

// Two backward passes add up.
func TestGradientsAccumulate(t *testing.T) {
	onDevices(t, func(t *testing.T, dev device.Device) {
		m := mixedModel(t, dev, 0)
		f, l := groups(dev), everything()
		once, _ := gradientOf(t, m, l, []*Forest{f}, byToken)
		twice, _ := gradientOf(t, m, l, []*Forest{f, f}, byToken)
		for i := range once {
			once[i] *= 2
		}
		closeGradients(t, "two passes", twice, once, 1e-6)
	})
}

// An adapter is merged with the weights to the same function, and adapters of one model do not touch each other.
func TestAdaptersAreApart(t *testing.T) {
	dev := openCPU(t)
	m, f := mixedModel(t, dev, 0), groups(dev)
	logp := func(name string) []float32 {
		return forward(t, m, f, ForwardOptions{Adapter: name, Temperature: 1}).LogP
	}
	base, trained := logp(""), logp("policy")
	must(t, m.AddAdapter("fresh", LoRAConfig{R: 2, Alpha: 4, TargetModules: []string{"q_proj", "down_proj"}}, 7))
	checkBits(t, "a new adapter changes nothing", logp("fresh"), base)

	must(t, m.CopyAdapter("start", "policy"))
	scramble(t, m, "policy")
	checkBits(t, "the copy stays", logp("start"), trained)
	if slices.Equal(logp("policy"), trained) {
		t.Error("the policy did not change")
	}
	_, err := m.Forward(f, ForwardOptions{Adapter: "start", Temperature: 1, Grad: true})
	wantError(t, err, "start", "frozen")
	must(t, m.CopyAdapter("start", "policy"))
	checkBits(t, "the copy follows", logp("start"), logp("policy"))
	wantError(t, m.CopyAdapter("policy", "start"), "policy")

	must(t, m.DropAdapter("start"))
	_, err = m.Forward(f, ForwardOptions{Adapter: "start", Temperature: 1})
	wantError(t, err, "start", "fresh", "policy")
	wantError(t, m.AddAdapter("fresh", LoRAConfig{R: 2, Alpha: 4, TargetModules: []string{AllLinear}}, 7), "fresh")
}
