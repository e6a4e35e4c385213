package policy

import "github.com/rubicon-rl/rubicon/internal/device"

// poolPass is the pooling of a pass: the mean of the last hidden states over the path of each of some segments. Rows are summed in
// the order of the path, so that a vector does not depend on the segments that the path is cut into.
type poolPass struct {
	rows  device.Mem    // the rows of all paths, one path after another
	spans []device.Span // [P] of each path among them
	each  device.Mat    // [sum of the paths' lengths, D]: their hidden states, then the gradients in them
	means device.Mat    // [P,D] F32
}

func (m *Model) poolPass(s *scope, l *layout, pool []bool) poolPass {
	var p poolPass
	var rows []int32
	for i, want := range pool {
		if !want {
			continue
		}
		p.spans = append(p.spans, device.Span{Row: len(rows), N: l.lengths[i]})
		for _, span := range l.paths[i] {
			for row := range span.N {
				rows = append(rows, int32(span.Row+row))
			}
		}
	}
	if len(p.spans) == 0 {
		return p
	}
	p.rows = s.ints(rows)
	p.each = s.mat(device.Act, len(rows), m.cfg.Width)
	p.means = s.mat(device.F32, len(p.spans), m.cfg.Width)
	return p
}

// run computes the pooled vectors from the last hidden states.
func (p *poolPass) run(dev device.Device, final device.Mat) {
	if len(p.spans) > 0 {
		dev.GatherRows(p.each, final, p.rows)
		dev.MeanRows(p.means, p.each, p.spans)
	}
}

// read returns the pooled vectors.
func (p *poolPass) read(m *Model) ([][]float32, error) {
	flat, err := m.download(p.means)
	if err != nil {
		return nil, err
	}
	var list [][]float32
	for i := range p.spans {
		list = append(list, flat[i*m.cfg.Width:(i+1)*m.cfg.Width])
	}
	return list, nil
}

// grad adds to dFinal the gradient of the loss in the pooled vectors, which it replaces p.means by.
func (p *poolPass) grad(dev device.Device, dFinal device.Mat, vectors [][]float32) {
	for i, v := range vectors {
		dev.Upload(p.means.Mem, p.means.RowsOf(i, i+1).Off, v)
	}
	dev.Zero(p.each)
	dev.MeanRowsGrad(p.each, p.means, p.spans)
	dev.ScatterAddRows(dFinal, p.each, p.rows)
}
