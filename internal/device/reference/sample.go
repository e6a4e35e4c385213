package reference

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// Sample draws as transformers' generate does with these processors. The processed logits are float32 (penalty and
// temperature are one rounding each, so every device has the same ones and the same ties); probabilities, their sums
// and the thresholds are taken in float64 from there. A greedy row is drawn from a point mass: its Filtered is 0.
func (d *reference) Sample(out device.SampleOut, logits device.Mat, rows []device.SampleRow) {
	if !d.begin("sample", device.CheckSample(out, logits, rows), logits) {
		return
	}
	for i := range rows {
		r, raw := &rows[i], row(logits, i)
		z := make([]float32, len(raw))
		for v, x := range raw {
			z[v] = float32(x)
		}
		lse := temper(raw, r.Temp)
		if math.IsNaN(lse) || math.IsInf(lse, 0) {
			d.fail(fmt.Errorf("sample: the logits of row %d are not finite: the weights are damaged or have diverged, go back to an earlier checkpoint", i))
			return
		}
		id, filtered := draw(z, r)
		out.IDs[i], out.LogP[i], out.Filtered[i] = int32(id), float32(raw[id]-lse), float32(filtered)
	}
}

// draw chooses a token from the logits z, which it destroys, and returns its log-probability under what it was drawn from.
func draw(z []float32, r *device.SampleRow) (id int, filtered float64) {
	if r.Greedy {
		admit(z, r)
		return argMax(z), 0
	}
	filter(z, r)
	u := device.Uniform(device.Philox(r.Key, [4]uint32{r.Index, 0, 0, 0})[0])
	id = inverse(probabilities(z), float64(u))
	return id, float64(z[id]) - logSumExp32(z)
}

// Distribution is the filtered distribution that r draws a token from, given one row of untempered logits: the
// float32 probability per id, 0 for what the processors removed. Greedy is ignored.
func Distribution(logits []float32, r device.SampleRow) []float64 {
	z := slices.Clone(logits)
	filter(z, &r)
	return probabilities(z)
}

// filter applies r's processors in transformers' order; a removed token is -Inf.
func filter(z []float32, r *device.SampleRow) {
	admit(z, r)
	for v := range z {
		z[v] /= r.Temp
	}
	topK(z, r.TopK)
	topP(z, float64(r.TopP))
	minP(z, float64(r.MinP))
}

// admit removes what is not allowed and penalises what was seen.
func admit(z []float32, r *device.SampleRow) {
	for v := range z {
		if r.Allowed != nil && r.Allowed[v/64]>>(v%64)&1 == 0 {
			z[v] = removed()
		}
	}
	for _, v := range r.Seen {
		if z[v] > 0 {
			z[v] /= r.Penalty
		} else {
			z[v] *= r.Penalty
		}
	}
}

func removed() float32 { return float32(math.Inf(-1)) }

// argMax is the lowest id among the largest.
func argMax(z []float32) int {
	best := 0
	for v, x := range z {
		if x > z[best] {
			best = v
		}
	}
	return best
}

// topK removes what is smaller than the k-th largest, so that ties with it stay.
func topK(z []float32, k int) {
	if k == 0 || k >= len(z) {
		return
	}
	sorted := slices.Sorted(slices.Values(z))
	kth := sorted[len(z)-k]
	for v, x := range z {
		if x < kth {
			z[v] = removed()
		}
	}
}

// topP removes tokens from the least probable up, among equals the highest id first, while the cumulative
// probability stays at or below 1-p; the most probable one always stays.
func topP(z []float32, p float64) {
	if p == 1 {
		return
	}
	order := make([]int, len(z))
	for v := range order {
		order[v] = v
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(z[a], z[b]), cmp.Compare(b, a)) })
	lse, sum := logSumExp32(z), 0.0
	for _, v := range order[:len(order)-1] {
		sum += math.Exp(float64(z[v]) - lse)
		if sum > 1-p {
			return
		}
		z[v] = removed()
	}
}

// minP removes what has less than p times the probability of the most probable.
func minP(z []float32, p float64) {
	if p == 0 {
		return
	}
	top := float64(z[argMax(z)])
	for v, x := range z {
		if math.Exp(float64(x)-top) < p {
			z[v] = removed()
		}
	}
}

// probabilities are the float32 softmax of z.
func probabilities(z []float32) []float64 {
	lse := logSumExp32(z)
	p := make([]float64, len(z))
	for v, x := range z {
		p[v] = float64(float32(math.Exp(float64(x) - lse)))
	}
	return p
}

// inverse is the inverse at u of the cumulative distribution of p, ids ascending; what has probability 0 is never drawn.
func inverse(p []float64, u float64) int {
	total := 0.0
	for _, x := range p {
		total += x
	}
	id, below := 0, 0.0
	for v, x := range p {
		if x == 0 {
			continue
		}
		id = v
		if below += x; below > u*total {
			break
		}
	}
	return id
}

func logSumExp32(z []float32) float64 {
	wide := make([]float64, len(z))
	for v, x := range z {
		wide[v] = float64(x)
	}
	return logSumExp(wide)
}
