package cpu

import (
	"fmt"
	"math"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// sampleTask draws a token for each row.
type sampleTask struct {
	d      *cpu
	out    device.SampleOut
	logits mat
	rows   []device.SampleRow
}

// notFinite stands in for an id where the logits are not finite.
const notFinite = -1

// Sample takes temperature, penalty and thresholds in float32 and float64 as reference does; where no processor is on
// the filtered distribution is the full one, and Filtered has the bits of LogP. A greedy row is drawn from a point
// mass: its Filtered is 0.
func (d *cpu) Sample(out device.SampleOut, logits device.Mat, rows []device.SampleRow) {
	if !d.ok(device.CheckSample(out, logits, rows)) {
		return
	}
	t := &d.ops.sample
	*t = sampleTask{d, out, d.mat(logits), rows}
	d.each(len(rows), max(1, gateChunk(logits.Cols)/2), t)
	*t = sampleTask{}
	for i := range rows {
		if d.err == nil && out.IDs[i] == notFinite {
			d.ok(fmt.Errorf("sample: the logits of row %d are not finite: the weights are damaged or have diverged, go back to an earlier checkpoint", i))
		}
	}
}

func (t *sampleTask) do(w, i, j int) {
	k := t.d.k
	for r := i; r < j; r++ {
		a := &t.d.workers[w].arena
		a.reset()
		z, inv := t.logits.row(r), 1/t.rows[r].Temp
		full := k.distribution(a, z, inv, k.maxOf(z)*inv)
		s := softmaxStats{inv: inv, shift: full.shift, sum: full.total}
		if lse := s.lse(); math.IsNaN(lse) || math.IsInf(lse, 0) {
			t.out.IDs[r] = notFinite
			continue
		}
		id, filtered := t.draw(a, z, &t.rows[r], s, full)
		t.out.IDs[r], t.out.LogP[r], t.out.Filtered[r] = int32(id), s.logp(z[id]), filtered
	}
}

// draw chooses a token from the logits z, whose distribution without processors is full, and returns its
// log-probability under what it was drawn from.
func (t *sampleTask) draw(a *arena, z []float32, r *device.SampleRow, s softmaxStats, full distribution) (id int, filtered float32) {
	k := t.d.k
	u := float64(device.Uniform(device.Philox(r.Key, [4]uint32{r.Index, 0, 0, 0})[0]))
	if !r.Greedy && plain(r) {
		id = full.at(u)
		return id, s.logp(z[id])
	}
	f := filter{k: k, z: a.take(len(z))}
	copy(f.z, z)
	f.admit(r)
	if r.Greedy {
		return argMax(k, f.z), 0
	}
	f.apply(a, r)
	kept := k.distribution(a, f.z, 1, k.maxOf(f.z))
	id = kept.at(u)
	return id, float32(float64(f.z[id]) - (float64(kept.shift) + math.Log(kept.total)))
}

// plain reports whether no processor changes the distribution.
func plain(r *device.SampleRow) bool {
	return r.Allowed == nil && r.TopK == 0 && r.TopP == 1 && r.MinP == 0 && (r.Penalty == 1 || len(r.Seen) == 0)
}

// argMax is the lowest id among the largest.
func argMax(k *kernels, z []float32) int {
	best, top := 0, negInf()
	for i := 0; i < len(z); i += statBlock {
		if x := k.maxOf(z[i:min(len(z), i+statBlock)]); x > top {
			best, top = i, x
		}
	}
	for z[best] != top {
		best++
	}
	return best
}

// distribution are the weights exp(scale·z-shift) of ids, with their sums by statBlock and in all.
type distribution struct {
	shift         float32
	weights, sums []float32
	total         float64
}

func (k *kernels) distribution(a *arena, z []float32, scale, shift float32) distribution {
	d := distribution{shift: shift, weights: a.take(len(z)), sums: a.take((len(z) + statBlock - 1) / statBlock)}
	for b := range d.sums {
		i, j := b*statBlock, min(len(z), (b+1)*statBlock)
		d.sums[b] = k.expSum(d.weights[i:j], z[i:j], scale, shift)
		d.total += float64(d.sums[b])
	}
	return d
}

// at is the inverse at u of the cumulative distribution, ids ascending. What has weight 0 is never drawn.
func (d *distribution) at(u float64) (id int) {
	below, goal := 0.0, u*d.total
	for b, sum := range d.sums {
		if below+float64(sum) <= goal && b < len(d.sums)-1 {
			below += float64(sum)
			continue
		}
		for v := b * statBlock; v < min(len(d.weights), (b+1)*statBlock); v++ {
			if d.weights[v] == 0 {
				continue
			}
			id = v
			if below += float64(d.weights[v]); below > goal {
				return id
			}
		}
	}
	return id
}
