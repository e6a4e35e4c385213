package devicetest

import (
	"fmt"
	"math"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// headCase is one shape of a Head with the temperature and the standard deviation of its logits before it.
type headCase struct {
	n, d, v int
	dtype   device.DType
	temp    float32
	std     float64
	full    bool // gradient of W
	strided bool
}

func testHead(s *suite) {
	cases := []headCase{
		{1, 1, 1, device.Float32, 1, 1, true, false},
		{31, 33, 32, device.Float32, 1, 2, true, true},
		{32, 31, 33, device.BFloat16, 0.7, 2, false, false},
		{33, 32, 1025, device.BFloat16, 1, 3, true, true},
		{5, 32, 1025, device.Float32, 1000, 3, true, false},
		{5, 32, 1025, device.Float32, 0.01, 1, true, false},
		{4, 64, 31, device.BFloat16, 1, 300, false, false},
		{70, 40, 300, device.Float32, 1.3, 2, false, true},
		{3, 896, 4864, device.BFloat16, 1, 2, false, false},
		{2, 16, 151936, device.BFloat16, 1, 2, false, false},
		{33, 96, 1025, device.Int8, 1, 3, false, true},
		{5, 256, 300, device.Int8K, 1, 3, false, false},
		{0, 8, 9, device.Float32, 1, 1, true, false},
	}
	for _, c := range cases {
		name := fmt.Sprintf("n%d-d%d-v%d-dtype%d-temp%g-std%g-strided=%v", c.n, c.d, c.v, c.dtype, c.temp, c.std, c.strided)
		s.compare(name, c.strided, c.run)
	}
	s.invariant(testHeadInvariant)
}

// run takes the outputs together and one by one, and the gradients likewise.
func (c headCase) run(sc *scene) {
	// Rounding errors of the logits, relative to their size, are absolute errors of what comes of them.
	sc.loose, sc.floor = max(1, c.std/float64(c.temp)), 1
	l := device.Head{
		W: sc.weight(c.dtype, c.v, c.d, c.std/math.Sqrt(float64(c.d))), Temp: c.temp,
		Targets: sc.randomInts(c.n, c.v), Ref: sc.in("ref", c.n, c.d),
	}
	column := func(name string) device.Mat { return sc.outF32(name, c.n, 1) }
	h := sc.in("h", c.n, c.d)
	all := device.HeadOut{
		LogP: column("logp"), LSE: column("lse"), Entropy: column("entropy"), KL: column("kl"), RefLSE: column("ref lse"),
	}
	sc.Head(all, h, l)
	few := device.HeadOut{LogP: column("logp alone"), LSE: column("lse alone")}
	bare := l
	bare.Ref = device.Mat{}
	sc.Head(few, h, bare)
	sc.Head(device.HeadOut{LogP: column("logp of two"), LSE: column("lse of two"), Entropy: column("entropy of two")}, h, l)

	upstream := func(name string) device.Mat { return sc.param(name, c.n, 1, 1) }
	g := device.HeadGrad{LogP: upstream("dlogp"), Entropy: upstream("dentropy"), KL: upstream("dkl")}
	dh := func(name string) device.Mat { return sc.grad(name, c.n, c.d) }
	sc.HeadGrad(dh("dh of logp"), device.HeadGrad{LogP: g.LogP}, few, h, bare)
	sc.HeadGrad(dh("dh of entropy"), device.HeadGrad{Entropy: g.Entropy}, all, h, l)
	sc.HeadGrad(dh("dh of kl"), device.HeadGrad{KL: g.KL}, all, h, l)
	sc.HeadGrad(dh("dh of nothing"), device.HeadGrad{}, all, h, l)
	if c.full {
		l.DW = sc.paramGrad("dW", c.v, c.d)
	}
	sc.HeadGrad(dh("dh of all"), g, all, h, l)
	if c.full {
		l.DW = sc.paramGrad("dW alone", c.v, c.d)
		sc.HeadGrad(device.Mat{}, g, all, h, l)
	}
}

func testHeadInvariant(s *suite) {
	for _, c := range []headCase{
		{d: 33, v: 301, dtype: device.Float32, temp: 0.9, std: 3},
		{d: 64, v: 1100, dtype: device.BFloat16, temp: 1, std: 3},
	} {
		base := newScene(s.T, s.dev)
		hs, refs, gs := base.pool(c.d, 1), base.pool(c.d, 1), base.pool(3, 1)
		w := base.weight(c.dtype, c.v, c.d, c.std/math.Sqrt(float64(c.d)))
		targets := make([]int32, poolSize)
		for i := range targets {
			targets[i] = int32(base.rng.IntN(c.v))
		}
		s.sameBits(fmt.Sprintf("d%d-v%d-dtype%d", c.d, c.v, c.dtype), func(sc *scene, rows []int) []device.Mat {
			n := len(rows)
			h := sc.mat("h", device.Act, input, n, c.d, hs.take(rows))
			ref := sc.mat("ref", device.Act, input, n, c.d, refs.take(rows))
			l := device.Head{W: w, Temp: c.temp, Targets: sc.ints(takeInts(targets, rows)), Ref: ref}
			column := func() device.Mat { return sc.outF32("", n, 1) }
			out := device.HeadOut{LogP: column(), LSE: column(), Entropy: column(), KL: column(), RefLSE: column()}
			sc.Head(out, h, l)
			g := sc.mat("g", device.F32, input, n, 3, gs.take(rows))
			dh := sc.mat("dh", device.Act, grad, n, c.d, refs.take(rows))
			sc.HeadGrad(dh, device.HeadGrad{LogP: g.ColsOf(0, 1), Entropy: g.ColsOf(1, 2), KL: g.ColsOf(2, 3)}, out, h, l)
			logits := sc.outF32("logits", n, c.v)
			sc.Logits(logits, h, w)
			return []device.Mat{out.LogP, out.LSE, out.Entropy, out.KL, out.RefLSE, dh, logits}
		})
		base.free()
	}
}

func testLogits(s *suite) {
	for i, c := range []struct{ n, d, v int }{{1, 1, 1}, {1, 896, 4864}, {31, 32, 33}, {33, 31, 1025}, {2, 16, 151936}, {0, 3, 4}} {
		for _, dtype := range []device.DType{device.Float32, device.BFloat16} {
			s.compare(fmt.Sprintf("n%d-d%d-v%d-dtype%d", c.n, c.d, c.v, dtype), i%2 == 1, func(sc *scene) {
				w := sc.weight(dtype, c.v, c.d, 1/math.Sqrt(float64(c.d)))
				sc.Logits(sc.outF32("logits", c.n, c.v), sc.in("h", c.n, c.d), w)
			})
		}
	}
}
