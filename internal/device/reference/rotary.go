package reference

import "github.com/rubicon-rl/rubicon/internal/device"

func (d *reference) Rotary(y, x device.Mat, r device.Rotary) {
	if !d.begin("rotary", device.CheckRotary(y, x, r), y, x, r.Cos, r.Sin, r.Norm, r.DNorm, r.Pos) {
		return
	}
	pos, ok := d.indices("rotary", "position", r.Pos, x.Rows, r.Cos.Rows)
	if !ok {
		return
	}
	head := make([]float64, r.HeadDim)
	for t := range x.Rows {
		for c := 0; c < x.Cols; c += r.HeadDim {
			copy(head, row(x, t)[c:])
			if !r.Norm.Absent() {
				rmsNorm(head, head, row(r.Norm, 0), float64(r.Eps))
			}
			rotate(row(y, t)[c:c+r.HeadDim], head, row(r.Cos, int(pos[t])), row(r.Sin, int(pos[t])), 1)
		}
	}
}

// rotate turns each pair (i, i+half) of x by its angle, or back by it if sign is -1.
func rotate(y, x, cos, sin []float64, sign float64) {
	half := len(cos)
	for i := range half {
		a, b, s := x[i], x[i+half], sign*sin[i]
		y[i] = a*cos[i] - b*s
		y[i+half] = b*cos[i] + a*s
	}
}

func (d *reference) RotaryGrad(dx, dy, x device.Mat, r device.Rotary) {
	if !d.begin("rotary gradient", device.CheckRotaryGrad(dx, dy, x, r), dx, dy, x, r.Cos, r.Sin, r.Norm, r.DNorm, r.Pos) {
		return
	}
	pos, ok := d.indices("rotary gradient", "position", r.Pos, dy.Rows, r.Cos.Rows)
	if !ok {
		return
	}
	back := make([]float64, r.HeadDim)
	for t := range dy.Rows {
		for c := 0; c < dy.Cols; c += r.HeadDim {
			rotate(back, row(dy, t)[c:c+r.HeadDim], row(r.Cos, int(pos[t])), row(r.Sin, int(pos[t])), -1)
			var dhead []float64
			if !dx.Absent() {
				dhead = row(dx, t)[c : c+r.HeadDim]
			}
			switch {
			case !r.Norm.Absent():
				clear(dhead)
				rmsNormGrad(dhead, optionalRow(r.DNorm, 0), back, row(x, t)[c:c+r.HeadDim], row(r.Norm, 0), float64(r.Eps))
			case dhead != nil:
				copy(dhead, back)
			}
		}
	}
}
