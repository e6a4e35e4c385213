package reference

import (
	"math"

	"github.com/rubicon-rl/rubicon/internal/device"
)

func (d *reference) SwiGLU(y, gu device.Mat) {
	if !d.begin("swiglu", device.CheckSwiGLU(y, gu), y, gu) {
		return
	}
	for t := range y.Rows {
		g, u := row(gu, t)[:y.Cols], row(gu, t)[y.Cols:]
		for i := range y.Cols {
			row(y, t)[i] = g[i] * sigmoid(g[i]) * u[i]
		}
	}
}

func (d *reference) SwiGLUGrad(dgu, dy, gu device.Mat) {
	if !d.begin("swiglu gradient", device.CheckSwiGLUGrad(dgu, dy, gu), dgu, dy, gu) || dgu.Absent() {
		return
	}
	for t := range dy.Rows {
		g, u := row(gu, t)[:dy.Cols], row(gu, t)[dy.Cols:]
		dg, du := row(dgu, t)[:dy.Cols], row(dgu, t)[dy.Cols:]
		for i, dy := range row(dy, t) {
			s := sigmoid(g[i])
			dg[i] = dy * u[i] * s * (1 + g[i]*(1-s))
			du[i] = dy * g[i] * s
		}
	}
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
