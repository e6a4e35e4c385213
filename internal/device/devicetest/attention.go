package devicetest

import (
	"fmt"
	"math/rand/v2"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// segment is n tokens below a parent (-1: none) in a forest.
type segment struct{ parent, n int }

// forest is an attention call over segments: how many rows q and k have, and which rows of k are in use.
type forest struct {
	attention device.Attention
	queries   int
	keys      int
	used      []bool
}

// grow lays the segments out: keys in pieces cut at random places, shuffled, with unused rows between them; queries
// either all tokens, segment after segment, or with decode the last token of each segment.
func grow(rng *rand.Rand, a device.Attention, segments []segment, decode bool) forest {
	var f forest
	type piece struct{ segment, order, n int }
	var pieces []piece
	for i, s := range segments {
		for left := s.n; left > 0; {
			n := 1 + rng.IntN(left)
			pieces = append(pieces, piece{i, len(pieces), n})
			left -= n
		}
	}
	at := make([]device.Span, len(pieces))
	for _, p := range rng.Perm(len(pieces)) {
		f.keys += rng.IntN(3)
		at[p] = device.Span{Row: f.keys, N: pieces[p].n}
		f.keys += pieces[p].n
	}
	f.used = make([]bool, f.keys)
	paths := make([][]device.Span, len(segments))
	depth := make([]int, len(segments)) // path positions before the segment
	for i, s := range segments {
		if s.parent >= 0 {
			paths[i] = append(paths[i], paths[s.parent]...)
			depth[i] = depth[s.parent] + segments[s.parent].n
		}
		for _, p := range pieces {
			if p.segment == i {
				paths[i] = append(paths[i], at[p.order])
				for r := at[p.order].Row; r < at[p.order].Row+p.n; r++ {
					f.used[r] = true
				}
			}
		}
		task := device.AttentionTask{Q: device.Span{Row: f.queries, N: s.n}, Pos: depth[i], Keys: paths[i]}
		if decode {
			task.Q.N, task.Pos = 1, depth[i]+s.n-1
		}
		f.queries += task.Q.N
		a.Tasks = append(a.Tasks, task)
	}
	f.attention = a
	return f
}

// key fills k or v: rows that belong to no path are large, so that an error which lets them in shows.
func (f forest) key(rng *rand.Rand, r, _ int) float32 {
	if !f.used[r] {
		return 1e4
	}
	return float32(rng.NormFloat64())
}

// run calls Attention and AttentionGrad with queries of standard deviation std.
func (f forest) run(sc *scene, std float64) {
	a := f.attention
	width, kvWidth := a.Heads*a.HeadDim, a.KVHeads*a.HeadDim
	q := sc.mat("q", device.Act, input, f.queries, width, normal(std))
	k := sc.mat("k", device.Act, input, f.keys, kvWidth, f.key)
	v := sc.mat("v", device.Act, input, f.keys, kvWidth, f.key)
	o, lse := sc.out("o", f.queries, width), sc.outF32("lse", f.queries, a.Heads)
	sc.Attention(o, lse, q, k, v, a)
	sc.Attention(sc.out("o without lse", f.queries, width), device.Mat{}, q, k, v, a)
	do := sc.in("do", f.queries, width)
	dq, dk, dv := sc.grad("dq", f.queries, width), sc.grad("dk", f.keys, kvWidth), sc.grad("dv", f.keys, kvWidth)
	sc.AttentionGrad(dq, dk, dv, do, o, lse, q, k, v, a)
	sc.AttentionGrad(sc.grad("dq alone", f.queries, width), device.Mat{}, device.Mat{}, do, o, lse, q, k, v, a)
	sc.AttentionGrad(device.Mat{}, sc.grad("dk alone", f.keys, kvWidth), device.Mat{}, do, o, lse, q, k, v, a)
	sc.AttentionGrad(device.Mat{}, device.Mat{}, sc.grad("dv alone", f.keys, kvWidth), do, o, lse, q, k, v, a)
}

func heads(h, kv, dim int) device.Attention {
	return device.Attention{Heads: h, KVHeads: kv, HeadDim: dim, Scale: 0.3}
}

func testAttention(s *suite) {
	rng := rand.New(rand.NewPCG(7, 7))
	for _, c := range []struct {
		name     string
		heads    device.Attention
		segments []segment
		decode   bool
		std      float64
	}{
		{"one-token", heads(1, 1, 1), []segment{{-1, 1}}, false, 1},
		{"roots-31-32-33", heads(2, 1, 8), []segment{{-1, 31}, {-1, 32}, {-1, 33}}, false, 1},
		{"group-3", heads(3, 1, 31), []segment{{-1, 33}, {0, 5}}, false, 1},
		{"group-7", heads(7, 1, 16), []segment{{-1, 40}, {0, 1}, {0, 32}}, false, 1},
		{"no-groups", heads(4, 4, 24), []segment{{-1, 17}, {0, 31}, {0, 7}}, false, 1},
		{"qwen", heads(14, 2, 64), []segment{{-1, 65}, {0, 20}, {0, 33}, {0, 1}}, false, 1},
		{"three-levels", heads(6, 2, 12), []segment{{-1, 21}, {0, 9}, {0, 14}, {1, 3}, {1, 30}, {2, 8}, {-1, 5}, {6, 1}}, false, 1},
		{"long", heads(2, 1, 8), []segment{{-1, 1025}}, false, 1},
		{"long-parent", heads(2, 2, 8), []segment{{-1, 1000}, {0, 25}, {0, 3}}, false, 1},
		{"decode", heads(6, 2, 20), []segment{{-1, 65}, {0, 20}, {0, 33}, {0, 1}, {1, 4}, {1, 19}, {-1, 1}}, true, 1},
		{"decode-qwen", heads(14, 2, 64), []segment{{-1, 129}, {0, 31}, {0, 32}, {0, 33}}, true, 1},
		{"decode-long", heads(2, 1, 80), []segment{{-1, 1025}, {0, 1025}}, true, 1},
		{"peaked", heads(3, 1, 16), []segment{{-1, 33}, {0, 40}}, false, 30},
		{"nothing", heads(2, 1, 8), nil, false, 1},
	} {
		c.heads.Scale /= 1 + float32(c.heads.HeadDim)/16
		f := grow(rng, c.heads, c.segments, c.decode)
		for _, strided := range []bool{false, true} {
			s.compare(fmt.Sprintf("%s-strided=%v", c.name, strided), strided, func(sc *scene) {
				sc.loose = c.std // scores are that much larger, and so are their rounding errors
				f.run(sc, c.std)
			})
		}
	}
	s.compare("more-keys-than-needed", false, func(sc *scene) {
		a := heads(2, 1, 8)
		a.Tasks = []device.AttentionTask{
			{Q: device.Span{Row: 2, N: 3}, Pos: 4, Keys: []device.Span{{Row: 5, N: 6}, {Row: 3, N: 0}, {Row: 0, N: 4}}},
			{Q: device.Span{Row: 0, N: 2}, Pos: 0, Keys: []device.Span{{Row: 0, N: 11}}},
			{Q: device.Span{Row: 5, N: 0}, Pos: 0},
		}
		f := forest{a, 5, 11, make([]bool, 11)}
		for i := range f.used {
			f.used[i] = i < 2 || i >= 5
		}
		f.run(sc, 1)
	})
	s.invariant(testAttentionInvariant)
}
