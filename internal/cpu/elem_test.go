package cpu

import (
	"math"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// everyTier runs f as a subtest with the kernels of each tier.
func everyTier(t *testing.T, f func(t *testing.T, k *kernels)) {
	for _, tier := range testedTiers() {
		t.Run(tier.name, func(t *testing.T) { f(t, tier.make(false)) })
	}
}

// Every elementwise loop of a tier agrees with the portable one on all lengths around its vectors, and writes nothing
// past the end.
func TestElementwiseTails(t *testing.T) {
	spec := portable(false)
	everyTier(t, func(t *testing.T, k *kernels) {
		for n := 0; n <= 70; n++ {
			for _, c := range elementwiseCalls() {
				got, want := newVectors(n), newVectors(n)
				a, b := c.call(k, got), c.call(spec, want)
				if a != b && !(math.Abs(a-b) <= 1e-4*(1+math.Abs(b))) {
					t.Errorf("%s of %d elements returns %g, want %g", c.name, n, a, b)
				}
				for v := range got {
					for i := range got[v] {
						g, w := float64(got[v][i]), float64(want[v][i])
						if g != w && !(math.Abs(g-w) <= 1e-5*(1+math.Abs(w))) {
							t.Errorf("%s of %d elements: vector %d has %g in place %d, want %g", c.name, n, v, got[v][i], i, want[v][i])
						}
					}
				}
			}
		}
	})
}

// vectors are operands with room after them.
type vectors [6][]float32

func newVectors(n int) vectors {
	var v vectors
	for i := range v {
		v[i] = make([]float32, n+20)
		for j := range v[i] {
			v[i][j] = float32(math.Sin(float64(3*j + 7*i + 1)))
		}
		v[3] = v[3][:len(v[3]):len(v[3])]
	}
	for j := range v[3] {
		v[3][j] *= v[3][j] // the second moments of AdamW
	}
	return v
}

type elementwiseCall struct {
	name string
	call func(k *kernels, v vectors) float64
}

func elementwiseCalls() []elementwiseCall {
	cut := func(v vectors) (a, b, c, d, e, f []float32) {
		n := len(v[0]) - 20
		return v[0][:n], v[1][:n], v[2][:n], v[3][:n], v[4][:n], v[5][:n]
	}
	none := func(f func(k *kernels, a, b, c, d, e, g []float32)) func(*kernels, vectors) float64 {
		return func(k *kernels, v vectors) float64 {
			a, b, c, d, e, g := cut(v)
			f(k, a, b, c, d, e, g)
			return 0
		}
	}
	sum := func(f func(k *kernels, a, b, c []float32) float64) func(*kernels, vectors) float64 {
		return func(k *kernels, v vectors) float64 {
			a, b, c, _, _, _ := cut(v)
			return f(k, a, b, c)
		}
	}
	return []elementwiseCall{
		{"maxOf", sum(func(k *kernels, a, _, _ []float32) float64 { return float64(k.maxOf(a)) })},
		{"dot", sum(func(k *kernels, a, b, _ []float32) float64 { return float64(k.dot(a, b)) })},
		{"dot3", sum(func(k *kernels, a, b, c []float32) float64 { return float64(k.dot3(a, b, c)) })},
		{"sumSquares", sum(func(k *kernels, a, _, _ []float32) float64 { return k.sumSquares(a) })},
		{"expSum", sum(func(k *kernels, a, b, _ []float32) float64 { return float64(k.expSum(a, b, 2, 0.3)) })},
		{"expSums", sum(func(k *kernels, a, _, _ []float32) float64 { s, d := k.expSums(a, 2, 0.3); return float64(s + 100*d) })},
		{"divergence", sum(func(k *kernels, a, b, _ []float32) float64 { return float64(k.divergence(a, b, 2, 0.3, 0.4)) })},
		{"expGrad", none(func(k *kernels, a, _, _, _, _, _ []float32) { k.expGrad(a, 2, 0.3, 0.4, 0.5) })},
		{"expAdd", none(func(k *kernels, a, b, _, _, _, _ []float32) { k.expAdd(a, b, 2, 0.3, -0.4) })},
		{"axpy", none(func(k *kernels, a, b, _, _, _, _ []float32) { k.axpy(a, b, 0.3) })},
		{"scaleTo", none(func(k *kernels, a, b, _, _, _, _ []float32) { k.scaleTo(a, b, 0.3) })},
		{"mulTo", none(func(k *kernels, a, b, c, _, _, _ []float32) { k.mulTo(a, b, c, 0.3) })},
		{"mulAdd", none(func(k *kernels, a, b, c, _, _, _ []float32) { k.mulAdd(a, b, c, 0.3) })},
		{"normGrad", none(func(k *kernels, a, b, c, d, _, _ []float32) { k.normGrad(a, b, c, d, 0.3, 0.4) })},
		{"rotate", none(func(k *kernels, a, b, c, d, e, f []float32) { k.rotate(a, b, c, d, e, f) })},
		{"rotateGrad", none(func(k *kernels, a, b, c, d, e, f []float32) { k.rotateGrad(a, b, c, d, e, f) })},
		{"swiglu", none(func(k *kernels, a, b, c, _, _, _ []float32) { k.swiglu(a, b, c) })},
		{"swigluGrad", none(func(k *kernels, a, b, c, d, e, _ []float32) { k.swigluGrad(a, b, c, d, e) })},
		{"sumBelow", sum(func(k *kernels, a, b, _ []float32) float64 { return float64(k.sumBelow(a, b, 0.3)) })},
		{"atLeast", sum(func(k *kernels, a, _, _ []float32) float64 {
			ids, sum := make([]int32, len(a)), 0
			for _, i := range ids[:k.atLeast(ids, a, 0.3)] {
				sum = (131*sum + int(i)) % 65521
			}
			return float64(sum)
		})},
		{"cutBelow", none(func(k *kernels, a, _, _, _, _, _ []float32) { k.cutBelow(a, 0.3) })},
		{"divBy", none(func(k *kernels, a, _, _, _, _, _ []float32) { k.divBy(a, 0.3) })},
		{"adamw", none(func(k *kernels, a, b, c, d, _, _ []float32) {
			k.adamw(a, b, c, d, &[9]float32{0.9, 0.8, 0.2, 0.95, 0.05, 0.99, 0.1, 1.1, 1e-3})
		})},
	}
}

// Dropout keeps the elements that the definition keeps, whatever the tier, for all widths and rates.
func TestDropoutBits(t *testing.T) {
	everyTier(t, func(t *testing.T, k *kernels) {
		for _, p := range []float32{1e-8, 0.1, 0.5, 0.999, 1 - 1.0/(1<<24)} {
			key := device.NewKey(3, uint64(math.Float32bits(p)))
			for _, n := range []int{1, 31, 64, 200, 1000} {
				task := dropTask{k: k, x: dense(sweep(1, 2, n+1)[:n], 1, n), y: dense(make([]float32, n), 1, n), seg: []int32{-7}, pos: []int32{1 << 30}}
				task.keys, task.above, task.scale = philoxKeys(key), keptAbove(p), 1/(1-p)
				task.do(0, 0, 1)
				for c, got := range task.y.f {
					word := device.Philox(key, [4]uint32{1<<32 - 7, 1 << 30, uint32(c / 4), 0})[c%4]
					want := float32(0)
					if device.Uniform(word) >= p {
						want = task.x.f[c] * task.scale
					}
					if got != want {
						t.Fatalf("rate %g, width %d: element %d is %g, want %g", p, n, c, got, want)
					}
				}
			}
		}
	})
}
