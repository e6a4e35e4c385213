package policy

import (
	"fmt"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// ropeTable are cosine and sine of the rotation for the first n positions.
type ropeTable struct {
	cos, sin device.Mat // [n, HeadDim/2]
	n        int
}

// needPositions makes the rotation tables cover n positions: few models are ever used up to their context's end.
func (m *Model) needPositions(n int) error {
	if n <= m.rope.n {
		return nil
	}
	n = min(max(roundUp(n), 512), max(m.cfg.MaxPositions, n))
	cos, sin := m.cfg.RotaryTables(n)
	m.rope.free(m.dev)
	var err error
	if m.rope.cos, err = m.upload(cos, n, m.cfg.HeadDim/2); err == nil {
		m.rope.sin, err = m.upload(sin, n, m.cfg.HeadDim/2)
	}
	if err != nil {
		return fmt.Errorf("policy: rotation tables of %d positions: %w", n, err)
	}
	m.rope.n = n
	return nil
}

// upload returns a new F32 matrix that holds v.
func (m *Model) upload(v []float32, rows, cols int) (device.Mat, error) {
	mem, err := m.dev.Alloc(device.F32, len(v))
	if err != nil {
		return device.Mat{}, err
	}
	m.dev.Upload(mem, 0, v)
	return device.View(mem, rows, cols), m.dev.Err()
}

func (t *ropeTable) free(dev device.Device) {
	for _, m := range []device.Mat{t.cos, t.sin} {
		if !m.Absent() {
			dev.Free(m.Mem)
		}
	}
	*t = ropeTable{}
}
