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
		for v := range f.z {
			f.z[v] /= r.Temp
		}
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

// topK removes what is smaller than the n-th largest, so that ties with it stay.
func (f *filter) topK(a *arena, n int) {
	spare := a.take(len(f.z))
	copy(spare, f.z)
	nth := largest(spare, n)
	for v, x := range f.z {
		if x < nth {
			f.z[v] = negInf()
		}
	}
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

// topP's buckets: by distance below the largest logit, in steps of 1/32; the last one takes all that is further down.
const (
	buckets    = 1024
	bucketStep = 32
)

func bucket(top, x float32) int {
	if d := (top - x) * bucketStep; d < buckets-1 {
		return int(d)
	}
	return buckets - 1
}

// topP removes tokens from the least probable up, among equals the highest id first, while the cumulative probability
// stays at or below 1-p; the most probable one always stays. It sums the probabilities by buckets, and sorts only the
// bucket in which the sum passes the limit.
func (f *filter) topP(a *arena, p float64) {
	top := f.k.maxOf(f.z)
	weights := a.take(len(f.z))
	f.k.expSum(weights, f.z, 1, top)
	var mass [buckets]float64
	total := 0.0
	for v, x := range f.z {
		mass[bucket(top, x)] += float64(weights[v])
		total += float64(weights[v])
	}
	limit, sum, last := (1-p)*total, 0.0, buckets-1
	for ; last > 0 && sum+mass[last] <= limit; last-- {
		sum += mass[last]
	}
	ids := a.takeInts(len(f.z))[:0]
	best := argMax(f.z)
	for v, x := range f.z {
		switch b := bucket(top, x); {
		case v == best, x == negInf():
		case b > last:
			f.z[v] = negInf()
		case b == last:
			ids = append(ids, int32(v))
		}
	}
	slices.SortFunc(ids, func(a, b int32) int { return cmp.Or(cmp.Compare(f.z[a], f.z[b]), cmp.Compare(b, a)) })
	for _, v := range ids {
		if sum += float64(weights[v]); sum > limit {
			return
		}
		f.z[v] = negInf()
	}
}

// minP removes what has less than p times the probability of the most probable.
func (f *filter) minP(p float64) {
	top, low := float64(f.k.maxOf(f.z)), math.Log(p)
	for v, x := range f.z {
		if float64(x)-top < low {
			f.z[v] = negInf()
		}
	}
}
