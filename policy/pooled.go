package policy

import "github.com/rubicon-rl/rubicon/internal/device"

// poolPass is the pooling of a pass: the mean of the last hidden states over the path of each of some segments.
type poolPass struct {
	spans []device.Span // the rows of every segment of the forest
	means device.Mat    // [S,D] F32: of each segment's own rows
	paths device.Mat    // [P,D] F32: of each pooled segment's whole path
	parts [][]pathPart  // [P] what each path is made of, root first
}

// pathPart is a segment on a path and its share of the path's tokens.
type pathPart struct {
	segment int
	share   float32
}

func (m *Model) poolPass(s *scope, l *layout, pool []bool) poolPass {
	var p poolPass
	segment := map[int]int{} // by its first row
	for i, row := range l.first {
		segment[row] = i
	}
	for i, want := range pool {
		if !want {
			continue
		}
		var parts []pathPart
		for _, span := range l.paths[i] {
			parts = append(parts, pathPart{segment[span.Row], float32(float64(span.N) / float64(l.lengths[i]))})
		}
		p.parts = append(p.parts, parts)
	}
	if len(p.parts) == 0 {
		return p
	}
	for _, t := range l.tasks {
		p.spans = append(p.spans, t.Q)
	}
	p.means = s.mat(device.F32, len(p.spans), m.cfg.Width)
	p.paths = s.mat(device.F32, len(p.parts), m.cfg.Width)
	return p
}

// run computes the pooled vectors from the last hidden states.
func (p *poolPass) run(dev device.Device, final device.Mat) {
	if len(p.parts) == 0 {
		return
	}
	dev.MeanRows(p.means, final, p.spans)
	dev.Zero(p.paths)
	for i, parts := range p.parts {
		for _, part := range parts {
			dev.Add(p.paths.RowsOf(i, i+1), p.means.RowsOf(part.segment, part.segment+1), part.share)
		}
	}
}

// read returns the pooled vectors.
func (p *poolPass) read(m *Model) ([][]float32, error) {
	flat, err := m.download(p.paths)
	if err != nil {
		return nil, err
	}
	var list [][]float32
	for i := range p.parts {
		list = append(list, flat[i*m.cfg.Width:(i+1)*m.cfg.Width])
	}
	return list, nil
}

// grad adds to dFinal the gradient of the loss in the pooled vectors, which it replaces p.paths by.
func (p *poolPass) grad(dev device.Device, dFinal device.Mat, vectors [][]float32) {
	for i, v := range vectors {
		dev.Upload(p.paths.Mem, p.paths.RowsOf(i, i+1).Off, v)
	}
	dev.Zero(p.means)
	for i, parts := range p.parts {
		for _, part := range parts {
			dev.Add(p.means.RowsOf(part.segment, part.segment+1), p.paths.RowsOf(i, i+1), part.share)
		}
	}
	dev.MeanRowsGrad(dFinal, p.means, p.spans)
}
