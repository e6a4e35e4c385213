package reference

import "github.com/rubicon-rl/rubicon/internal/device"

func (d *reference) Linear(y, x device.Mat, l device.Linear) {
	if !d.begin("linear", device.CheckLinear(y, x, l), append(linearArgs(l), y, x)...) {
		return
	}
	w := l.W.(*weight)
	for t := range x.Rows {
		yt, xt := row(y, t), row(x, t)
		for n := range yt {
			yt[n] = dot(xt, w.row(n))
			if !l.Bias.Absent() {
				yt[n] += row(l.Bias, 0)[n]
			}
		}
		for _, p := range l.LoRA {
			u := lowRank(p, dropped(p.Drop, xt, t))
			for n := range p.B.Rows {
				yt[p.Col+n] += float64(p.Scale) * dot(u, row(p.B, n))
			}
		}
	}
}

// linearArgs are everything in l that has an owner.
func linearArgs(l device.Linear) []any {
	args := []any{l.W, l.Bias, l.DW, l.DBias}
	for _, p := range l.LoRA {
		args = append(args, p.A, p.B, p.DA, p.DB)
		if p.Drop != nil {
			args = append(args, p.Drop.Seg, p.Drop.Pos)
		}
	}
	return args
}

// lowRank is A·x.                                                                    [r]
func lowRank(p device.LoRA, x []float64) []float64 {
	u := make([]float64, p.A.Rows)
	for j := range u {
		u[j] = dot(x, row(p.A, j))
	}
	return u
}

// dropped is x with the dropout of row t of the call applied; x itself if there is none.
func dropped(drop *device.Dropout, x []float64, t int) []float64 {
	if drop == nil {
		return x
	}
	seg, pos := drop.Seg.(*memory).i[t], drop.Pos.(*memory).i[t]
	kept := make([]float64, len(x))
	for c := range x {
		word := device.Philox(drop.Key, [4]uint32{uint32(seg), uint32(pos), uint32(c / 4), 0})[c%4]
		if device.Uniform(word) >= drop.P {
			kept[c] = x[c] / (1 - float64(drop.P))
		}
	}
	return kept
}

func (d *reference) LinearGrad(dx, dy, x device.Mat, l device.Linear) {
	if !d.begin("linear gradient", device.CheckLinearGrad(dx, dy, x, l), append(linearArgs(l), dx, dy, x)...) {
		return
	}
	for t := range x.Rows {
		clear(optionalRow(dx, t))
		weightGrad(optionalRow(dx, t), row(dy, t), row(x, t), l)
		for _, p := range l.LoRA {
			loraGrad(optionalRow(dx, t), row(dy, t)[p.Col:p.Col+p.B.Rows], row(x, t), p, t)
		}
	}
}

// weightGrad is one row's part of dx += dy·W, dW += dyᵀ·x and dBias += dy.
func weightGrad(dx, dy, x []float64, l device.Linear) {
	for n, g := range dy {
		if dx != nil {
			axpy(dx, g, l.W.(*weight).row(n))
		}
		if !l.DW.Absent() {
			axpy(row(l.DW, n), g, x)
		}
		if !l.DBias.Absent() {
			row(l.DBias, 0)[n] += g
		}
	}
}

// loraGrad is row t's part of dB += scale·dyᵀ·u, dA += duᵀ·drop(x) and dx += drop(du·A), with u = drop(x)·Aᵀ and
// du = scale·dy·B.
func loraGrad(dx, dy, x []float64, p device.LoRA, t int) {
	xd := dropped(p.Drop, x, t)
	u := lowRank(p, xd)
	du := make([]float64, len(u))
	for n, g := range dy {
		g *= float64(p.Scale)
		axpy(du, g, row(p.B, n))
		if !p.DB.Absent() {
			axpy(row(p.DB, n), g, u)
		}
	}
	dxd := make([]float64, len(x))
	for j, g := range du {
		axpy(dxd, g, row(p.A, j))
		if !p.DA.Absent() {
			axpy(row(p.DA, j), g, xd)
		}
	}
	if dx != nil {
		axpy(dx, 1, dropped(p.Drop, dxd, t))
	}
}
