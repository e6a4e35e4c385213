package cpu

import (
	"cmp"
	"math"
	"slices"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// filter applies a row's processors to its logits z, in transformers' order. A removed token is -Inf.
type filter struct {
	k *kernels
	z []float32
}

func negInf() float32 { return float32(math.Inf(-1)) }

// admit removes what is not allowed and penalises what was seen.
func (f *filter) admit(r *device.SampleRow) {
	if r.Allowed != nil {
		for v := range f.z {
			if r.Allowed[v/64]>>(v%64)&1 == 0 {
				f.z[v] = negInf()
			}
		}
	}
	for _, v := range r.Seen {
		if f.z[v] > 0 {
			f.z[v] /= r.Penalty
		} else {
			f.z[v] *= r.Penalty
		}
	}
}

func (f *filter) apply(a *arena, r *device.SampleRow) {
	if r.Temp != 1 {
		f.k.divBy(f.z, r.Temp)
	}
	if r.TopK > 0 && r.TopK < len(f.z) {
		f.topK(a, r.TopK)
	}
	if r.TopP < 1 {
		f.topP(a, float64(r.TopP))
	}
	if r.MinP > 0 {
		f.minP(float64(r.MinP))
	}
}

// topK takes the maxima of blocks of so many logits, unless that is no gain.
const minPeak, maxPeak = 8, 64

// topK removes what is smaller than the n-th largest, so that ties with it stay. The n-th largest maximum of a block is
// not above it, and leaves few logits to choose from.
func (f *filter) topK(a *arena, n int) {
	low := negInf()
	if size := min(maxPeak, len(f.z)/n); size >= minPeak {
		peaks := a.take(len(f.z) / size)
		for b := range peaks {
			peaks[b] = f.k.maxOf(f.z[b*size : (b+1)*size])
		}
		low = largest(peaks, n)
	}
	ids := f.atLeast(a, low)
	z := a.take(len(ids))
	for i, v := range ids {
		z[i] = f.z[v]
	}
	f.k.cutBelow(f.z, largest(z, n))
}

// atLeast are the ids of the logits that are t or more.
func (f *filter) atLeast(a *arena, t float32) []int32 {
	ids := a.takeInts(len(f.z))
	return ids[:f.k.atLeast(ids, f.z, t)]
}

// largest is the n-th largest element of x, which it reorders: quickselect, with the median of three as pivot.
func largest(x []float32, n int) float32 {
	for len(x) > 16 {
		a, b, c := x[0], x[len(x)/2], x[len(x)-1]
		pivot := max(min(a, b), min(max(a, b), c))
		i, j := 0, len(x)-1
		for i <= j {
			for x[i] > pivot {
				i++
			}
			for x[j] < pivot {
				j--
			}
			if i <= j {
				x[i], x[j] = x[j], x[i]
				i, j = i+1, j-1
			}
		}
		switch { // x[:j+1] >= pivot, x[i:] <= pivot, what is between equals it
		case n <= j+1:
			x = x[:j+1]
		case n > i:
			x, n = x[i:], n-i
		default:
			return pivot
		}
	}
	slices.Sort(x)
	return x[len(x)-n]
}

// vanishing is the distance below the largest logit from which on weights are 0.
const vanishing = 104

// halvings is how often topP halves that distance: what is left to sort is one 1/600 wide.
const halvings = 16

// topP removes tokens from the least probable up, among equals the highest id first, while the cumulative probability
// stays at or below 1-p; the most probable one always stays. It encloses the logit at which that happens between lo and
// hi, by halving, and sorts only the tokens between them.
func (f *filter) topP(a *arena, p float64) {
	top := f.k.maxOf(f.z)
	all := f.k.distribution(a, f.z, 1, top)
	limit, removed, lo, hi := (1-p)*all.total, 0.0, top-vanishing, top
	for range halvings {
		mid := lo + (hi-lo)/2
		if sum := f.below(all.weights, mid); sum <= limit {
			lo, removed = mid, sum
		} else {
			hi = mid
		}
	}
	best, between := argMax(f.k, f.z), a.takeInts(len(f.z))[:0]
	for _, v := range f.atLeast(a, lo) {
		if f.z[v] <= hi && int(v) != best {
			between = append(between, v)
		}
	}
	f.k.cutBelow(f.z, lo)
	f.trim(between, all.weights, limit-removed)
}

// below is the sum of the weights of the logits below t.
func (f *filter) below(weights []float32, t float32) float64 {
	sum := 0.0
	for i := 0; i < len(f.z); i += statBlock {
		j := min(len(f.z), i+statBlock)
		sum += float64(f.k.sumBelow(weights[i:j], f.z[i:j], t))
	}
	return sum
}

// trim removes of the tokens ids the least probable ones, as long as their weights sum to no more than limit.
func (f *filter) trim(ids []int32, weights []float32, limit float64) {
	slices.SortFunc(ids, func(a, b int32) int { return cmp.Or(cmp.Compare(f.z[a], f.z[b]), cmp.Compare(b, a)) })
	sum := 0.0
	for _, v := range ids {
		if sum += float64(weights[v]); sum > limit {
			return
		}
		f.z[v] = negInf()
	}
}

// minP removes what has less than p times the probability of the most probable.
func (f *filter) minP(p float64) {
	low := float64(f.k.maxOf(f.z)) + math.Log(p)
	t := float32(low)
	if float64(t) < low {
		t = math.Nextafter32(t, float32(math.Inf(1)))
	}
	f.k.cutBelow(f.z, t)
}
