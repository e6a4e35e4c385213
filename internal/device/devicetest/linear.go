package devicetest

import (
	"fmt"
	"math"
	"strings"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// linearCase is one shape of a Linear with its options.
type linearCase struct {
	t, k, n int
	dtype   device.DType
	bias    bool
	ranks   []int // one LoRA part for each, side by side over the columns
	drop    float32
	full    bool // gradients of W and bias
	strided bool
}

func (c linearCase) name() string {
	var b strings.Builder
	fmt.Fprintf(&b, "t%d-k%d-n%d-dtype%d", c.t, c.k, c.n, c.dtype)
	if c.bias {
		b.WriteString("-bias")
	}
	if len(c.ranks) > 0 {
		fmt.Fprintf(&b, "-lora%v-drop%g", c.ranks, c.drop)
	}
	fmt.Fprintf(&b, "-full=%v-strided=%v", c.full, c.strided)
	return b.String()
}

func testLinear(s *suite) {
	for _, c := range linearCases() {
		s.compare(c.name(), c.strided, func(sc *scene) { c.run(sc) })
	}
	s.compare("overlapping-parts", false, func(sc *scene) {
		l := linearCase{t: 9, k: 40, n: 50}.linear(sc)
		for _, col := range []int{0, 7, 0} {
			l.LoRA = append(l.LoRA, sc.lora(col, 20, 40, 4, nil))
		}
		x, dy := sc.in("x", 9, 40), sc.in("dy", 9, 50)
		sc.Linear(sc.out("y", 9, 50), x, l)
		sc.LinearGrad(sc.grad("dx", 9, 40), dy, x, l)
	})
	s.invariant(testLinearInvariant)
}

func linearCases() []linearCase {
	var cases []linearCase
	for i, c := range []struct{ t, k, n int }{
		{1, 1, 1}, {1, 31, 33}, {31, 33, 32}, {32, 32, 31}, {33, 1025, 33}, {5, 33, 1025}, {2, 64, 64}, {70, 129, 130}, {0, 8, 8},
	} {
		for _, dtype := range []device.DType{device.Float32, device.BFloat16} {
			odd := i%2 == 1
			cases = append(cases,
				linearCase{t: c.t, k: c.k, n: c.n, dtype: dtype, strided: odd},
				linearCase{t: c.t, k: c.k, n: c.n, dtype: dtype, bias: true, full: true, strided: !odd},
				linearCase{t: c.t, k: c.k, n: c.n, dtype: dtype, ranks: []int{1 + 7*(i%3)}, strided: odd},
				linearCase{t: c.t, k: c.k, n: c.n, dtype: dtype, bias: true, ranks: []int{3, 16, 8}[:min(3, c.n)], drop: 0.3, full: odd, strided: !odd})
		}
	}
	for i, dtype := range quantised() {
		for j, c := range []struct{ t, k, n int }{{1, 256, 33}, {33, 768, 70}, {70, 512, 64}} {
			cases = append(cases, linearCase{t: c.t, k: c.k, n: c.n, dtype: dtype, bias: i%2 == 0, ranks: []int{1 + 7*j}, strided: j == 1})
		}
		if f, _ := dtype.Form(); f.Super == 0 { // 720 is cut into blocks that end inside a group
			for j, c := range []struct{ t, k, n int }{{2, 1, 1}, {31, 33, 32}, {9, 48, 31}, {3, 720, 65}, {70, 129, 130}} {
				cases = append(cases, linearCase{t: c.t, k: c.k, n: c.n, dtype: dtype, ranks: []int{3, 8}[:min(2, c.n)], drop: 0.3, strided: j%2 == 0})
			}
		}
	}
	// Qwen2.5-0.5B: q|k|v, attention output, gate|up (half of its columns), down.
	return append(cases,
		linearCase{t: 33, k: 896, n: 1152, dtype: device.BFloat16, bias: true, ranks: []int{16, 16, 16}},
		linearCase{t: 1, k: 896, n: 1152, dtype: device.BFloat16, bias: true, ranks: []int{16, 16, 16}},
		linearCase{t: 17, k: 896, n: 896, dtype: device.Float32, ranks: []int{64}, drop: 0.05},
		linearCase{t: 3, k: 896, n: 4864, dtype: device.BFloat16},
		linearCase{t: 4, k: 4864, n: 896, dtype: device.BFloat16, ranks: []int{8}},
		linearCase{t: 2, k: 4864, n: 896, dtype: device.Float32, full: true})
}

// linear makes c's weight and bias with their gradients, no LoRA.
func (c linearCase) linear(sc *scene) device.Linear {
	l := device.Linear{W: sc.weight(c.dtype, c.n, c.k, 1/math.Sqrt(float64(c.k)))}
	if c.bias {
		l.Bias = sc.param("bias", 1, c.n, 1)
	}
	if c.full {
		l.DW = sc.paramGrad("dW", c.n, c.k)
		l.DBias = sc.paramGrad("dBias", 1, c.n)
	}
	return l
}

// lora is a part on the columns [col, col+n) with gradients.
func (s *scene) lora(col, n, k, r int, drop *device.Dropout) device.LoRA {
	return device.LoRA{
		Col: col, Scale: 1.75, Drop: drop,
		A: s.param("A", r, k, 1/math.Sqrt(float64(k))), B: s.param("B", n, r, 1/math.Sqrt(float64(r))),
		DA: s.paramGrad("dA", r, k), DB: s.paramGrad("dB", n, r),
	}
}

func (c linearCase) run(sc *scene) {
	sc.floor = 1 // the terms of a sum are of that size, and where they cancel their rounding stays
	l := c.linear(sc)
	var seg, pos device.Mem
	if c.drop > 0 {
		seg, pos = sc.randomInts(c.t, 5), sc.randomInts(c.t, 1000)
	}
	col := 0
	for i, r := range c.ranks {
		n := (c.n - col) / (len(c.ranks) - i)
		var drop *device.Dropout
		if c.drop > 0 {
			drop = &device.Dropout{P: c.drop, Key: device.NewKey(9, uint64(i)), Seg: seg, Pos: pos}
		}
		part := sc.lora(col, n, c.k, r, drop)
		if i == 1 { // a part that is not trained
			part.DA, part.DB = device.Mat{}, device.Mat{}
		}
		l.LoRA = append(l.LoRA, part)
		col += n
	}
	x, dy := sc.in("x", c.t, c.k), sc.in("dy", c.t, c.n)
	sc.Linear(sc.out("y", c.t, c.n), x, l)
	sc.LinearGrad(sc.grad("dx", c.t, c.k), dy, x, l)
	l.DW, l.DBias = device.Mat{}, device.Mat{}
	sc.LinearGrad(device.Mat{}, dy, x, l) // the parameter gradients of the parts alone, a second time
}

// testLinearInvariant: outputs and input gradients of a row in any batch, with LoRA and dropout keyed by the row's
// segment and position.
func testLinearInvariant(s *suite) {
	for _, c := range []linearCase{
		{k: 257, n: 131, dtype: device.Float32}, {k: 257, n: 131, dtype: device.BFloat16},
		{k: 896, n: 160, dtype: device.BFloat16, bias: true, ranks: []int{8, 16}, drop: 0.25},
		{k: 96, n: 288, dtype: device.Float32, bias: true, ranks: []int{8, 1, 3}},
		{k: 257, n: 131, dtype: device.Int8}, {k: 720, n: 96, dtype: device.Int4, bias: true, ranks: []int{8, 16}},
		{k: 768, n: 131, dtype: device.Int4K}, {k: 512, n: 33, dtype: device.Int8K}, {k: 64, n: 33, dtype: device.Int4Sym},
	} {
		base := newScene(s.T, s.dev)
		xs, dys, l := base.pool(c.k, 1), base.pool(c.n, 1), c.linear(base)
		for i, r := range c.ranks {
			part := base.lora(i*c.n/len(c.ranks), c.n/len(c.ranks), c.k, r, nil)
			part.DA, part.DB = device.Mat{}, device.Mat{}
			l.LoRA = append(l.LoRA, part)
		}
		s.sameBits(c.name(), func(sc *scene, rows []int) []device.Mat {
			l := l
			l.LoRA = append([]device.LoRA(nil), l.LoRA...)
			for i := range l.LoRA {
				if c.drop > 0 {
					pos := sc.ints(takeInts(upTo(poolSize), rows))
					l.LoRA[i].Drop = &device.Dropout{P: c.drop, Key: device.NewKey(3), Seg: pos, Pos: pos}
				}
			}
			x := sc.mat("x", device.Act, input, len(rows), c.k, xs.take(rows))
			y := sc.out("y", len(rows), c.n)
			sc.Linear(y, x, l)
			dx := sc.mat("dx", device.Act, grad, len(rows), c.k, xs.take(rows))
			sc.LinearGrad(dx, sc.mat("dy", device.Act, input, len(rows), c.n, dys.take(rows)), x, l)
			return []device.Mat{y, dx}
		})
		base.free()
	}
}
