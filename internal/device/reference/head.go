package reference

import (
	"math"

	"github.com/rubicon-rl/rubicon/internal/device"
)

func (d *reference) Head(out device.HeadOut, h device.Mat, l device.Head) {
	if !d.begin("head", device.CheckHead(out, h, l), headArgs(out, h, l)...) {
		return
	}
	w := l.W.(*weight)
	target, ok := d.indices("head", "target", l.Targets, h.Rows, w.n)
	if !ok {
		return
	}
	z, zRef := make([]float64, w.n), make([]float64, w.n)
	for t := range h.Rows {
		logits(z, row(h, t), w)
		lse := temper(z, l.Temp)
		*cell(out.LSE, t) = lse
		*cell(out.LogP, t) = z[target[t]] - lse
		if !out.Entropy.Absent() {
			*cell(out.Entropy, t) = entropy(z, lse)
		}
		if !out.KL.Absent() {
			logits(zRef, row(l.Ref, t), w)
			lseRef := temper(zRef, l.Temp)
			*cell(out.RefLSE, t) = lseRef
			*cell(out.KL, t) = divergence(zRef, lseRef, z, lse)
		}
	}
}

func headArgs(out device.HeadOut, h device.Mat, l device.Head) []any {
	return []any{out.LogP, out.LSE, out.Entropy, out.KL, out.RefLSE, h, l.W, l.Targets, l.Ref, l.DW}
}

// logits is z = W·h.                                                                 [V]
func logits(z, h []float64, w *weight) {
	for v := range z {
		z[v] = dot(h, w.row(v))
	}
}

// temper divides the logits by the temperature and returns their log-sum-exp.
func temper(z []float64, temp float32) float64 {
	for v := range z {
		z[v] /= float64(temp)
	}
	return logSumExp(z)
}

func logSumExp(z []float64) float64 {
	top := math.Inf(-1)
	for _, x := range z {
		top = max(top, x)
	}
	sum := 0.0
	for _, x := range z {
		sum += math.Exp(x - top)
	}
	return top + math.Log(sum)
}

// entropy is -Σ p log p with log p = z - lse.
func entropy(z []float64, lse float64) float64 {
	sum := 0.0
	for _, x := range z {
		sum -= math.Exp(x-lse) * (x - lse)
	}
	return sum
}

// divergence is Σ p_ref (log p_ref - log p).
func divergence(zRef []float64, lseRef float64, z []float64, lse float64) float64 {
	sum := 0.0
	for v := range z {
		sum += math.Exp(zRef[v]-lseRef) * ((zRef[v] - lseRef) - (z[v] - lse))
	}
	return sum
}

func (d *reference) HeadGrad(dh device.Mat, g device.HeadGrad, out device.HeadOut, h device.Mat, l device.Head) {
	args := append(headArgs(out, h, l), dh, g.LogP, g.Entropy, g.KL)
	if !d.begin("head gradient", device.CheckHeadGrad(dh, g, out, h, l), args...) {
		return
	}
	w := l.W.(*weight)
	target, ok := d.indices("head gradient", "target", l.Targets, h.Rows, w.n)
	if !ok {
		return
	}
	dz, zRef := make([]float64, w.n), make([]float64, w.n)
	for t := range h.Rows {
		logits(dz, row(h, t), w)
		if !g.KL.Absent() {
			logits(zRef, row(l.Ref, t), w)
		}
		clear(optionalRow(dh, t))
		logitGrad(dz, zRef, g, out, int(target[t]), t, float64(l.Temp))
		for v, g := range dz {
			if !dh.Absent() {
				axpy(row(dh, t), g, w.row(v))
			}
			if !l.DW.Absent() {
				axpy(row(l.DW, v), g, row(h, t))
			}
		}
	}
}

// logitGrad replaces the untempered logits z of row t by the loss's gradient in them: per tempered logit,
// dlogp·(1[v=target] - p) - dentropy·p·(log p + entropy) + dkl·(p - p_ref), and all of it divided by the temperature.
func logitGrad(z, zRef []float64, g device.HeadGrad, out device.HeadOut, target, t int, temp float64) {
	for v := range z {
		logp := z[v]/temp - *cell(out.LSE, t)
		p, dz := math.Exp(logp), 0.0
		if !g.LogP.Absent() {
			dz -= *cell(g.LogP, t) * p
			if v == target {
				dz += *cell(g.LogP, t)
			}
		}
		if !g.Entropy.Absent() {
			dz -= *cell(g.Entropy, t) * p * (logp + *cell(out.Entropy, t))
		}
		if !g.KL.Absent() {
			dz += *cell(g.KL, t) * (p - math.Exp(zRef[v]/temp-*cell(out.RefLSE, t)))
		}
		z[v] = dz / temp
	}
}

func (d *reference) Logits(y, h device.Mat, w device.Weight) {
	if !d.begin("logits", device.CheckLogits(y, h, w), y, h, w) {
		return
	}
	for t := range h.Rows {
		logits(row(y, t), row(h, t), w.(*weight))
	}
}
