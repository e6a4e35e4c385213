package devicetest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// testAttentionInvariant: what a query at a path position gets does not depend on how many queries share its task,
// how its path is cut into spans and where these lie, nor on the other tasks of the call.
func testAttentionInvariant(s *suite) {
	for _, c := range []struct {
		heads  device.Attention
		length int
	}{{heads(6, 2, 24), 200}, {heads(7, 1, 10), 97}, {heads(14, 2, 64), 140}, {heads(1, 1, 16), 600}} {
		s.Run(fmt.Sprintf("h%d-kv%d-d%d", c.heads.Heads, c.heads.KVHeads, c.heads.HeadDim), func(t *testing.T) {
			p := newPath(t, s.dev, c.heads, c.length)
			whole, ones := []int{c.length}, make([]int, c.length)
			for i := range ones {
				ones[i] = 1
			}
			want := p.attend(t, whole, whole, 1)
			same := func(what string, got [][]float32) {
				t.Helper()
				for i := range got {
					if got[i] != nil && !equalBits(t, fmt.Sprintf("%s: position %d", what, i), got[i], want[i]) {
						return
					}
				}
			}
			same("every token in a task of its own", p.attend(t, ones, whole, 1))
			same("every key in a span of its own", p.attend(t, whole, ones, 1))
			for range 25 {
				chunks, spans := p.cut(), p.cut()
				same(fmt.Sprintf("queries in runs of %v, keys in spans of %v", chunks, spans), p.attend(t, chunks, spans, 0.7))
				same(fmt.Sprintf("few queries in runs of %v, keys in spans of %v", chunks, spans), p.attend(t, chunks, spans, 0.1))
			}
		})
	}
}

// path is a sequence of tokens with their queries, keys and values on the host, and the device that attends.
type path struct {
	dev     device.Device
	rng     *rand.Rand
	heads   device.Attention
	length  int
	q, k, v []float32
}

func newPath(t *testing.T, d device.Device, a device.Attention, length int) path {
	sc := newScene(t, d)
	draw := func(cols int) []float32 {
		values := make([]float32, length*cols)
		for i := range values {
			values[i] = float32(sc.rng.NormFloat64())
		}
		return values
	}
	return path{d, sc.rng, a, length, draw(a.Heads * a.HeadDim), draw(a.KVHeads * a.HeadDim), draw(a.KVHeads * a.HeadDim)}
}

// cut splits the path's length into random parts.
func (p path) cut() []int {
	var parts []int
	most := 1 + p.rng.IntN(p.length)
	for left := p.length; left > 0; {
		part := min(left, 1+p.rng.IntN(most))
		parts = append(parts, part)
		left -= part
	}
	return parts
}

// scatter lays consecutive runs of path positions out in rows, in random order: the rows of each run, and the path
// position of each row.
func (p path) scatter(runs []int) (spans []device.Span, position []int) {
	start, at := make([]int, len(runs)), 0
	for i, n := range runs {
		start[i] = at
		at += n
	}
	spans = make([]device.Span, len(runs))
	for _, i := range p.rng.Perm(len(runs)) {
		spans[i] = device.Span{Row: len(position), N: runs[i]}
		for j := range runs[i] {
			position = append(position, start[i]+j)
		}
	}
	return spans, position
}

// attend computes a share of the path in one call, one task for each run of queries, with the keys in shuffled spans.
// The result has the output and the log-sum-exps for each path position, nil where none was computed.
func (p path) attend(t *testing.T, queries, keys []int, share float64) [][]float32 {
	sc := newScene(t, p.dev)
	defer sc.free()
	qSpans, qPosition := p.scatter(queries)
	kSpans, kPosition := p.scatter(keys)
	a := p.heads
	width, kvWidth := a.Heads*a.HeadDim, a.KVHeads*a.HeadDim
	gather := func(values []float32, position []int, cols int) fill {
		return func(_ *rand.Rand, r, c int) float32 { return values[position[r]*cols+c] }
	}
	computed := make([]bool, p.length)
	for _, s := range qSpans {
		if p.rng.Float64() >= share {
			continue
		}
		a.Tasks = append(a.Tasks, device.AttentionTask{Q: s, Pos: qPosition[s.Row], Keys: kSpans})
		for r := s.Row; r < s.Row+s.N; r++ {
			computed[r] = true
		}
	}
	o, lse := sc.out("o", p.length, width), sc.outF32("lse", p.length, a.Heads)
	sc.Attention(o, lse, sc.mat("q", device.Act, input, p.length, width, gather(p.q, qPosition, width)),
		sc.mat("k", device.Act, input, p.length, kvWidth, gather(p.k, kPosition, kvWidth)),
		sc.mat("v", device.Act, input, p.length, kvWidth, gather(p.v, kPosition, kvWidth)), a)
	outs, lses := sc.rows(o), sc.rows(lse)
	result := make([][]float32, p.length)
	for r, at := range qPosition {
		if computed[r] {
			result[at] = append(append([]float32(nil), outs[r]...), lses[r]...)
		}
	}
	return result
}
