package reference

import (
	"math"

	"github.com/rubicon-rl/rubicon/internal/device"
)

func (d *reference) Attention(o, lse, q, k, v device.Mat, a device.Attention) {
	if !d.begin("attention", device.CheckAttention(o, lse, q, k, v, a), o, lse, q, k, v) {
		return
	}
	for _, task := range a.Tasks {
		path := pathRows(task)
		for i := range task.Q.N {
			t, keys := task.Q.Row+i, path[:task.Pos+i+1]
			for h := range a.Heads {
				l := attend(headOf(o, t, h, a.HeadDim), headOf(q, t, h, a.HeadDim), k, v, a, h, keys)
				if !lse.Absent() {
					row(lse, t)[h] = l
				}
			}
		}
	}
}

// pathRows lists the rows in k and v of the path positions 0..Pos+N-1 of a task.
func pathRows(task device.AttentionTask) []int {
	rows := make([]int, 0, task.Pos+task.Q.N)
	for _, s := range task.Keys {
		for r := s.Row; r < s.Row+s.N && len(rows) < cap(rows); r++ {
			rows = append(rows, r)
		}
	}
	return rows
}

// headOf is head h of row r of m.
func headOf(m device.Mat, r, h, dim int) []float64 { return row(m, r)[h*dim : (h+1)*dim] }

// attend writes one query head's output and returns the log-sum-exp of its scaled scores.
func attend(o, q []float64, k, v device.Mat, a device.Attention, h int, keys []int) float64 {
	kv := h / (a.Heads / a.KVHeads)
	scores := make([]float64, len(keys))
	top := math.Inf(-1)
	for j, r := range keys {
		scores[j] = float64(a.Scale) * dot(q, headOf(k, r, kv, a.HeadDim))
		top = max(top, scores[j])
	}
	clear(o)
	sum := 0.0
	for j, r := range keys {
		p := math.Exp(scores[j] - top)
		sum += p
		axpy(o, p, headOf(v, r, kv, a.HeadDim))
	}
	for i := range o {
		o[i] /= sum
	}
	return top + math.Log(sum)
}

func (d *reference) AttentionGrad(dq, dk, dv, do, o, lse, q, k, v device.Mat, a device.Attention) {
	m := device.AttentionGradMats{DQ: dq, DK: dk, DV: dv, DO: do, O: o, LSE: lse, Q: q, K: k, V: v}
	if !d.begin("attention gradient", device.CheckAttentionGrad(m, a), dq, dk, dv, do, o, lse, q, k, v) {
		return
	}
	for _, m := range []device.Mat{dq, dk, dv} {
		for r := range m.Rows {
			clear(row(m, r))
		}
	}
	for _, task := range a.Tasks {
		path := pathRows(task)
		for i := range task.Q.N {
			for h := range a.Heads {
				attendGrad(m, a, task.Q.Row+i, h, path[:task.Pos+i+1])
			}
		}
	}
}

// attendGrad is one query head's part: with p = exp(scale·q·k - lse), dv += p·do, ds = p·(do·v - do·o),
// dq += scale·ds·k, dk += scale·ds·q.
func attendGrad(m device.AttentionGradMats, a device.Attention, t, h int, keys []int) {
	kv, dim, scale := h/(a.Heads/a.KVHeads), a.HeadDim, float64(a.Scale)
	q, do := headOf(m.Q, t, h, dim), headOf(m.DO, t, h, dim)
	mean := dot(do, headOf(m.O, t, h, dim))
	for _, r := range keys {
		k := headOf(m.K, r, kv, dim)
		p := math.Exp(scale*dot(q, k) - row(m.LSE, t)[h])
		ds := p * (dot(do, headOf(m.V, r, kv, dim)) - mean)
		if !m.DQ.Absent() {
			axpy(headOf(m.DQ, t, h, dim), scale*ds, k)
		}
		if !m.DK.Absent() {
			axpy(headOf(m.DK, r, kv, dim), scale*ds, q)
		}
		if !m.DV.Absent() {
			axpy(headOf(m.DV, r, kv, dim), p, do)
		}
	}
}
