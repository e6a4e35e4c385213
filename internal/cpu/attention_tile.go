package cpu

import "github.com/rubicon-rl/rubicon/internal/device"

// keyBlock is the number of path positions whose scores are taken at once. Blocks begin at multiples of it on the
// path, wherever spans are cut, so that a query's sums have one order.
const keyBlock = 128

// scoreStride separates the rows of a block of scores. It is no multiple of 64, which would put the same column of all
// rows into a few sets of the first cache.
const scoreStride = keyBlock + 16

// tileRows bounds the rows of a tile.
const tileRows = 112

// tile is what one worker computes at a time, for one key head: queries, with the query heads of that key head, whose
// paths begin alike, so that the keys of a shared prompt are turned and multiplied once for several completions.
type tile struct {
	members []member
	rows    int // of all members
	common  int // the first keys of the path that all members share; of a single member all keys
}

// member is the queries [i, i+n) of a task. Row row+g*n+j of its tile is query i+j, head g of the key head's group.
type member struct {
	task      *device.AttentionTask
	i, n, row int
}

// end is the path position after the last key that the member sees.
func (m member) end() int { return m.task.Pos + m.i + m.n }

// cut makes the tiles of a call, of at most so many rows unless one query has more: the queries of each task in equal
// pieces, the last ones first, since they see most keys; then pieces that follow each other and share keys are put
// together.
func (t *attention) cut(limit int) {
	t.tiles, t.members = t.tiles[:0], t.members[:0]
	limit = max(limit, t.group)
	for i := range t.a.Tasks {
		task := &t.a.Tasks[i]
		pieces := (task.Q.N*t.group + limit - 1) / limit
		for p := pieces - 1; p >= 0; p-- {
			from, to := p*task.Q.N/pieces, (p+1)*task.Q.N/pieces
			t.place(member{task: task, i: from, n: to - from}, limit)
		}
	}
	at := 0
	for i := range t.tiles {
		s := &t.tiles[i]
		n := len(s.members)
		s.members, at = t.members[at:at+n], at+n // t.members may have moved
	}
}

// enough is tileRows, or fewer rows if there would be too few tiles for the threads.
func (t *attention) enough() int {
	rows := 0
	for i := range t.a.Tasks {
		rows += t.a.Tasks[i].Q.N * t.group
	}
	if n := t.d.pool.n; n > 1 {
		return min(tileRows, max(t.d.k.mr, rows*t.a.KVHeads/(4*n)))
	}
	return tileRows
}

// place adds m to the last tile, or to a new one if the last is full or would share less.
func (t *attention) place(m member, limit int) {
	rows := m.n * t.group
	if n := len(t.tiles); n > 0 {
		s := &t.tiles[n-1]
		first := s.members[0]
		c := min(prefix(first.task.Keys, m.task.Keys), s.common, m.end()) / panel * panel
		if s.rows+rows <= limit && c > 0 && (len(s.members) == 1 || c == s.common) {
			m.row = s.rows
			t.members = append(t.members, m)
			s.members, s.rows, s.common = t.members[len(t.members)-1-len(s.members):], s.rows+rows, c
			return
		}
	}
	t.members = append(t.members, m)
	t.tiles = append(t.tiles, tile{t.members[len(t.members)-1:], rows, m.end()})
}

// prefix is how many keys two paths begin with in common.
func prefix(a, b []device.Span) int {
	n := 0
	for i := range min(len(a), len(b)) {
		if a[i].Row != b[i].Row {
			break
		}
		n += min(a[i].N, b[i].N)
		if a[i].N != b[i].N {
			break
		}
	}
	return n
}

// end is the path position after the last key that a row of the tile sees.
func (s *tile) end() int {
	end := 0
	for _, m := range s.members {
		end = max(end, m.end())
	}
	return end
}

// patch is the keys of a block that belong to some rows of a tile: those before common to all rows, the others to their
// members'.
type patch struct {
	row, rows int           // rows of the tile
	col, n    int           // columns of the block of scores
	runs      []device.Span // rows of k and v
}

// patches cuts the block of path positions from on.
func (t *attention) patches(a *worker, s *tile, from int) []patch {
	a.patches, a.runs = a.patches[:0], a.runs[:0]
	if n := min(s.common-from, keyBlock); n > 0 {
		a.patches = append(a.patches, patch{0, s.rows, 0, n, a.spans(s.members[0].task, from, n)})
	}
	if len(s.members) == 1 {
		return a.patches
	}
	for _, m := range s.members {
		lo := max(from, s.common)
		if n := min(m.end(), from+keyBlock) - lo; n > 0 {
			a.patches = append(a.patches, patch{m.row, t.group * m.n, lo - from, n, a.spans(m.task, lo, n)})
		}
	}
	return a.patches
}

// width is how many columns of a block the patches take.
func width(patches []patch) int {
	n := 0
	for _, p := range patches {
		n = max(n, p.col+p.n)
	}
	return n
}

// spans are the rows of the n keys from a path position on.
func (a *worker) spans(task *device.AttentionTask, from, n int) []device.Span {
	first := len(a.runs)
	for _, s := range task.Keys {
		if skip := min(from, s.N); skip < s.N && n > 0 {
			m := min(n, s.N-skip)
			a.runs = append(a.runs, device.Span{Row: s.Row + skip, N: m})
			n -= m
		}
		from = max(0, from-s.N)
	}
	return a.runs[first:]
}

// place is where a tile's row lies in q: the row there, and the head.
type place struct{ row, head int }

// locate finds the places of a tile's rows, and how many keys of its path each of them sees.
func (t *attention) locate(a *worker, s *tile, kv int) (at []place, sees []int32) {
	a.places, sees = a.places[:0], a.takeInts(s.rows)
	for _, m := range s.members {
		for g := range t.group {
			for j := range m.n {
				sees[len(a.places)] = int32(m.task.Pos + m.i + j + 1)
				a.places = append(a.places, place{m.task.Q.Row + m.i + j, kv*t.group + g})
			}
		}
	}
	return a.places, sees
}

// head is the part of m's row and head.
func (t *attention) head(m mat, at place) []float32 {
	i := at.row*m.stride + at.head*t.a.HeadDim
	return m.f[i : i+t.a.HeadDim]
}

// gather copies the rows of m at places, times scale, into scratch.
func (t *attention) gather(a *worker, m mat, at []place, scale float32) mat {
	rows := dense(a.take(len(at)*t.a.HeadDim), len(at), t.a.HeadDim)
	for r, p := range at {
		if scale == 1 {
			copy(rows.row(r), t.head(m, p))
		} else {
			t.d.k.scaleTo(rows.row(r), t.head(m, p), scale)
		}
	}
	return rows
}

// panels transposes the patch's rows of m into panels of 32 keys, [n/32][dim][32].
func (t *attention) panels(p *patch, m mat, kv int, dst []float32) []float32 {
	at, dim := 0, t.a.HeadDim
	for _, run := range p.runs {
		for i := 0; i < run.N; {
			rows := min(halfPanel, run.N-i, panel-at%panel)
			t.d.k.transpose(&dst[at/panel*dim*panel+at%panel], panel, m.at(run.Row+i, kv*dim), m.stride, rows, dim)
			i, at = i+rows, at+rows
		}
	}
	return dst
}

// mulKeys goes on with C += P·M for the patch's rows, M being its rows of m; P is packed, all rows and columns of the
// block.
func (t *attention) mulKeys(l *left, p *patch, m mat, kv int, c mat) {
	col := p.col
	for _, run := range p.runs {
		rows := mat{m.f[run.Row*m.stride+kv*t.a.HeadDim:], run.N, t.a.HeadDim, m.stride}
		t.d.k.mulRows(l, p.row, col, rows, p.of(c))
		col += run.N
	}
}

// of and block are the patch's rows of a matrix of all rows, and its columns of a block.
func (p *patch) of(m mat) mat    { return m.rowsOf(p.row, p.row+p.rows) }
func (p *patch) block(m mat) mat { return p.of(m).columns(p.col, p.col+p.n) }
