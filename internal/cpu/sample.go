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
	d.each(len(rows), max(1, gateChunk(logits.Cols)/4), t)
	*t = sampleTask{}
	for i := range rows {
		if d.err == nil && out.IDs[i] == notFinite {
			d.ok(fmt.Errorf("sample: the logits of row %d are not finite: the weights are damaged or have diverged, go back to an earlier checkpoint", i))
		}
	}
}

func (t *sampleTask) do(w, i, j int) {
	for r := i; r < j; r++ {
		a := &t.d.workers[w].arena
		a.reset()
		z := t.logits.row(r)
		s := t.d.k.softmaxStats(z, 1/t.rows[r].Temp)
		if lse := s.lse(); math.IsNaN(lse) || math.IsInf(lse, 0) {
			t.out.IDs[r] = notFinite
			continue
		}
		id, filtered := t.draw(a, z, &t.rows[r], s)
		t.out.IDs[r], t.out.LogP[r], t.out.Filtered[r] = int32(id), s.logp(z[id]), filtered
	}
}

// draw chooses a token from the logits z and returns its log-probability under what it was drawn from.
func (t *sampleTask) draw(a *arena, z []float32, r *device.SampleRow, s softmaxStats) (id int, filtered float32) {
	k := t.d.k
	u := float64(device.Uniform(device.Philox(r.Key, [4]uint32{r.Index, 0, 0, 0})[0]))
	if !r.Greedy && plain(r) {
		id, _ = k.inverse(a, z, s.inv, s.shift, u)
		return id, s.logp(z[id])
	}
	f := filter{k: k, z: a.take(len(z))}
	copy(f.z, z)
	f.admit(r)
	if r.Greedy {
		return argMax(f.z), 0
	}
	f.apply(a, r)
	top := k.maxOf(f.z)
	id, total := k.inverse(a, f.z, 1, top, u)
	return id, float32(float64(f.z[id]) - (float64(top) + math.Log(total)))
}

// plain reports whether no processor changes the distribution.
func plain(r *device.SampleRow) bool {
	return r.Allowed == nil && r.TopK == 0 && r.TopP == 1 && r.MinP == 0 && (r.Penalty == 1 || len(r.Seen) == 0)
}

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

// drawBlock is the number of weights whose sum is taken at once.
const drawBlock = 1024

// inverse is the inverse at u of the cumulative distribution, ids ascending, of the weights exp(scale·z-shift), and
// their total. What has weight 0 is never drawn.
func (k *kernels) inverse(a *arena, z []float32, scale, shift float32, u float64) (id int, total float64) {
	weights, sums := a.take(len(z)), a.take((len(z)+drawBlock-1)/drawBlock)
	for b := range sums {
		i, j := b*drawBlock, min(len(z), (b+1)*drawBlock)
		sums[b] = k.expSum(weights[i:j], z[i:j], scale, shift)
		total += float64(sums[b])
	}
	below, goal := 0.0, u*total
	for b, sum := range sums {
		if below+float64(sum) <= goal && b < len(sums)-1 {
			below += float64(sum)
			continue
		}
		for v := b * drawBlock; v < min(len(z), (b+1)*drawBlock); v++ {
			if weights[v] == 0 {
				continue
			}
			id = v
			if below += float64(weights[v]); below > goal {
				return id, total
			}
		}
	}
	return id, total
}
