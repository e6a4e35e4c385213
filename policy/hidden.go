package policy

// Hidden returns, per segment of the forest, the last hidden states (after the final norm) of its tokens under an
// adapter set, [tokens, width] row-major. adapter "" is the frozen weights alone.
func (m *Model) Hidden(f *Forest, adapter string) ([][]float32, error) {
	states, err := m.states(f, adapter)
	if err != nil {
		return nil, err
	}
	last, at := states[len(states)-1], 0
	list := make([][]float32, len(f.Segments))
	for i := range f.Segments {
		n := len(f.Segments[i].Tokens) * m.cfg.Width
		list[i] = last[at : at+n]
		at += n
	}
	return list, nil
}

// states returns the residual stream of all rows at the input of each layer and, last, the final norm's output.
func (m *Model) states(f *Forest, adapter string) ([][]float32, error) {
	l, err := arrange(f, limits{m.cfg.Vocab, m.cfg.MaxPositions})
	if err != nil {
		return nil, err
	}
	set, err := m.named(adapter)
	if err != nil {
		return nil, err
	}
	if err := m.needPositions(l.maxPos + 1); err != nil {
		return nil, err
	}
	s := m.pool.scope()
	defer s.release()
	r, st := l.upload(s, m.cfg.Pad), m.stack(s, len(l.ids), keepInputs)
	if s.err != nil {
		return nil, s.err
	}
	m.net(netOptions{set: set}).forward(&r, st)
	var list [][]float32
	for i := range st.acts {
		x, err := m.download(st.acts[i].x)
		if err != nil {
			return nil, err
		}
		list = append(list, x)
	}
	last, err := m.download(st.final)
	return append(list, last), err
}
