package policy

import (
	"fmt"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// Params are the trainable parameters of one set as one flat vector, so that norms, reductions over processes, updates
// and checkpoints are each one operation. Tensor i is Names[i], row-major of shape Shapes[i] at W[Offsets[i]:].
type Params struct {
	Names   []string // as Hugging Face and PEFT name them
	Shapes  [][]int
	Offsets []int
	Decay   []bool // weight decay applies: not to biases and norms, to every part of an adapter
	Len     int    // elements
	W, Grad device.Mem
}

func newParams(c *catalog) *Params {
	p := &Params{Len: c.total, Offsets: c.offsets}
	for _, t := range c.tensors {
		p.Names = append(p.Names, t.Name)
		p.Shapes = append(p.Shapes, t.Shape)
		p.Decay = append(p.Decay, len(t.Shape) > 1)
	}
	return p
}

// alloc takes the memory of the parameters, and of their gradients if they are to be trained. Both are zero.
func (p *Params) alloc(dev device.Device, train bool) error {
	var err error
	if p.W, err = dev.Alloc(device.F32, p.Len); err != nil {
		return err
	}
	if train {
		if p.Grad, err = dev.Alloc(device.F32, p.Len); err != nil {
			p.free(dev)
		}
	}
	return err
}

func (p *Params) free(dev device.Device) {
	for _, m := range []*device.Mem{&p.W, &p.Grad} {
		if *m != nil {
			dev.Free(*m)
			*m = nil
		}
	}
}

// rowLen is the length of a row of the matrix that an elementwise operation over a flat vector is given.
const rowLen = 4096

// chunks calls do with matrices that cover the elements [from, to) of a vector: one of whole rows, and the rest.
func chunks(from, to int, do func(view func(device.Mem) device.Mat)) {
	part := func(off, rows, cols int) {
		if rows*cols > 0 {
			do(func(m device.Mem) device.Mat {
				return device.Mat{Mem: m, Off: off, Rows: rows, Cols: cols, Stride: cols}
			})
		}
	}
	n := (to - from) / rowLen
	part(from, n, rowLen)
	part(from+n*rowLen, 1, (to-from)%rowLen)
}

// ZeroGrad clears the gradient.
func (p *Params) ZeroGrad(dev device.Device) {
	chunks(0, p.Len, func(view func(device.Mem) device.Mat) { dev.Zero(view(p.Grad)) })
}

// GradSquares is the sum of the squares of the gradient; it is not finite if an element is not.
func (p *Params) GradSquares(dev device.Device) float64 {
	sum := 0.0
	chunks(0, p.Len, func(view func(device.Mem) device.Mat) { sum += dev.SumSquares(view(p.Grad)) })
	return sum
}

// Squares is the sum of the squares of the parameters, with the same bits as long as no parameter changes.
func (p *Params) Squares(dev device.Device) float64 {
	sum := 0.0
	chunks(0, p.Len, func(view func(device.Mem) device.Mat) { sum += dev.SumSquares(view(p.W)) })
	return sum
}

// Download returns the parameters as one vector.
func (p *Params) Download(dev device.Device) ([]float32, error) {
	v := make([]float32, p.Len)
	return v, dev.Download(v, p.W, 0)
}

// Upload sets the parameters from one vector. For all of a model's weights, Model.Refresh has to follow.
func (p *Params) Upload(dev device.Device, v []float32) error {
	if len(v) != p.Len {
		return fmt.Errorf("policy: %d values for %d parameters", len(v), p.Len)
	}
	dev.Upload(p.W, 0, v)
	return dev.Err()
}
