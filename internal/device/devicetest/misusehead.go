package devicetest

import (
	"math"

	"github.com/rubicon-rl/rubicon/internal/device"
)

func headMisuses() []misuse {
	type args struct {
		out device.HeadOut
		h   device.Mat
		l   device.Head
	}
	arguments := func(sc *scene) args {
		col := func() device.Mat { return sc.param("", 2, 1, 1) }
		return args{
			device.HeadOut{LogP: col(), LSE: col(), Entropy: col(), KL: col(), RefLSE: col()}, sc.act(2, 4),
			device.Head{W: sc.w84(), Temp: 1, Targets: sc.ints([]int32{0, 7}), Ref: sc.act(2, 4)},
		}
	}
	call := func(change func(sc *scene, a *args)) func(*scene) {
		return func(sc *scene) {
			a := arguments(sc)
			change(sc, &a)
			sc.Head(a.out, a.h, a.l)
		}
	}
	gradient := func(g func(sc *scene) device.HeadGrad, change func(a *args)) func(*scene) {
		return func(sc *scene) {
			a := arguments(sc)
			change(&a)
			sc.HeadGrad(sc.act(2, 4), g(sc), a.out, a.h, a.l)
		}
	}
	one := func(sc *scene) device.Mat { return sc.param("", 2, 1, 1) }
	return []misuse{
		{"head temperature 0", "temperature", call(func(_ *scene, a *args) { a.l.Temp = 0 })},
		{"head temperature not a number", "temperature", call(func(_ *scene, a *args) { a.l.Temp = float32(math.NaN()) })},
		{"head target beyond", "target 1 is 8", call(func(sc *scene, a *args) { a.l.Targets = sc.ints([]int32{0, 8}) })},
		{"head other width", "want [8,5]", call(func(sc *scene, a *args) { a.h = sc.act(2, 5) })},
		{"head without logp", "absent", call(func(_ *scene, a *args) { a.out.LogP = device.Mat{} })},
		{"head without lse", "absent", call(func(_ *scene, a *args) { a.out.LSE = device.Mat{} })},
		{"head kl without reference", "no reference", call(func(_ *scene, a *args) { a.l.Ref = device.Mat{} })},
		{"head kl without scratch", "RefLSE", call(func(_ *scene, a *args) { a.out.RefLSE = device.Mat{} })},
		{"head other entropy", "want [2,1]", call(func(sc *scene, a *args) { a.out.Entropy = sc.param("", 3, 1, 1) })},
		{"head activations for logp", "not of kind F32", call(func(sc *scene, a *args) { a.out.LogP = sc.act(2, 1) })},
		{"head gradient of no entropy", "entropy", gradient(func(sc *scene) device.HeadGrad { return device.HeadGrad{Entropy: one(sc)} },
			func(a *args) { a.out.Entropy = device.Mat{} })},
		{"head gradient of no kl", "KL", gradient(func(sc *scene) device.HeadGrad { return device.HeadGrad{KL: one(sc)} },
			func(a *args) { a.l.Ref = device.Mat{} })},
		{"head gradient other rows", "want [2,1]", gradient(func(sc *scene) device.HeadGrad { return device.HeadGrad{LogP: sc.param("", 1, 1, 1)} },
			func(*args) {})},
		{"logits other width", "want [9,4]", func(sc *scene) { sc.Logits(sc.param("", 2, 9, 1), sc.act(2, 4), sc.w84()) }},
		{"logits as activations", "not of kind F32", func(sc *scene) { sc.Logits(sc.act(2, 8), sc.act(2, 4), sc.w84()) }},
	}
}

func sampleMisuses() []misuse {
	call := func(change func(out *device.SampleOut, r *device.SampleRow)) func(*scene) {
		return func(sc *scene) {
			out, rows := sampled(2), []device.SampleRow{plain(0), plain(1)}
			change(&out, &rows[1])
			sc.Sample(out, sc.param("", 2, 70, 1), rows)
		}
	}
	row := func(change func(r *device.SampleRow)) func(*scene) {
		return call(func(_ *device.SampleOut, r *device.SampleRow) { change(r) })
	}
	return []misuse{
		{"sample temperature 0", "temperature", row(func(r *device.SampleRow) { r.Temp = 0 })},
		{"sample greedy temperature 0", "temperature", row(func(r *device.SampleRow) { r.Greedy, r.Temp = true, 0 })},
		{"sample top-p 0", "top-p", row(func(r *device.SampleRow) { r.TopP = 0 })},
		{"sample top-k negative", "top-k", row(func(r *device.SampleRow) { r.TopK = -1 })},
		{"sample min-p above 1", "min-p", row(func(r *device.SampleRow) { r.MinP = 1.5 })},
		{"sample penalty 0", "penalty", row(func(r *device.SampleRow) { r.Penalty = 0 })},
		{"sample seen beyond", "is 70", row(func(r *device.SampleRow) { r.Seen = []int32{70} })},
		{"sample short mask", "words", row(func(r *device.SampleRow) { r.Allowed = []uint64{1} })},
		{"sample empty mask", "no token", row(func(r *device.SampleRow) { r.Allowed = []uint64{0, 1 << 6} })},
		{"sample room", "room", call(func(out *device.SampleOut, _ *device.SampleRow) { out.LogP = out.LogP[:1] })},
		{"sample other rows", "want [1,4]", func(sc *scene) { sc.Sample(sampled(1), sc.param("", 2, 4, 1), []device.SampleRow{plain(0)}) }},
		{"sample not a number", "not finite", func(sc *scene) {
			logits := sc.param("", 2, 70, 1)
			sc.Upload(logits.Mem, 99, []float32{float32(math.NaN())})
			sc.Sample(sampled(2), logits, []device.SampleRow{plain(0), plain(1)})
		}},
	}
}
