package policy

import (
	"errors"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// TokenScore is what the model says of a token in its place.
type TokenScore struct {
	TokenLogP
	Top []TokenLogP // the likeliest tokens there, likeliest first
}

// scoreRows is of how many tokens the logits are in memory at a time, at least one.
const scoreRows = 32

// ScoreTokens returns the log-probability of each token but the first given those before it, without temperature, and the top likeliest
// tokens in its place.
func (m *Model) ScoreTokens(ids []int32, adapter string, top int) ([]TokenScore, error) {
	if len(ids) < 2 {
		return nil, errors.New("policy: two tokens at least are needed to score one")
	}
	l, err := arrange(&Forest{Segments: []Segment{{Parent: Root, Tokens: ids}}}, limits{m.cfg.Vocab, m.cfg.MaxPositions})
	if err != nil {
		return nil, err
	}
	set, err := m.named(adapter)
	if err != nil {
		return nil, err
	}
	if err := m.needPositions(len(ids)); err != nil {
		return nil, err
	}
	s := m.pool.scope()
	defer s.release()
	r, st := l.upload(s, m.cfg.Pad), m.stack(s, len(ids), keepNothing)
	logits := s.mat(device.F32, min(scoreRows, len(ids)), m.cfg.Vocab)
	if s.err != nil {
		return nil, s.err
	}
	m.net(netOptions{set: set}).forward(&r, st)
	var out []TokenScore
	for i := 0; i < len(ids)-1; i += logits.Rows {
		j := min(i+logits.Rows, len(ids)-1)
		part := logits.RowsOf(0, j-i)
		m.dev.Logits(part, st.final.RowsOf(i, j), m.head)
		flat, err := m.download(part)
		if err != nil {
			return nil, err
		}
		for k := i; k < j; k++ {
			said := distribution(flat[(k-i)*m.cfg.Vocab:(k-i+1)*m.cfg.Vocab], top)
			logp, likeliest := said(ids[k+1])
			out = append(out, TokenScore{TokenLogP{ids[k+1], logp}, likeliest})
		}
	}
	return out, nil
}
