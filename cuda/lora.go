package cuda

import (
	"github.com/rubicon-rl/rubicon/cuda/driver"
	"github.com/rubicon-rl/rubicon/internal/device"
)

// spreading is y = bias + Σ drop(u·V) over strips (kernels/spread.cu), with what is to be spread side by side in u.
type spreading struct {
	y, bias, u driver.Matrix
	rows, cols int
	turned     bool // V of a strip is [r,n], not [n,r]
	exact      bool // float32 throughout
	add        bool // y +=
	drop       *device.Dropout
	strips     []strip
}

// strip is scale·V on the columns [col, col+n) of y.
type strip struct {
	v         driver.Matrix
	col, n, r int
	scale     float32
}

// pieces appends p to list, cut if it has more ranks than a launch takes; turned is of the spreading that p is for.
func (p strip) pieces(list []strip, turned bool) []strip {
	for r := p.r; r > 0; r -= mostRanks {
		p.r = min(r, mostRanks)
		list = append(list, p)
		if turned {
			p.v = at(p.v, mostRanks)
		} else {
			p.v = columns(p.v, mostRanks)
		}
	}
	return list
}

// The tile of spread: columns of a block, rows of a round of its warps, and blocks wanted on a processor.
const (
	spreadCols    = 64
	spreadRows    = 64
	spreadThreads = 128
	spreadBlocks  = 16
)

// spread does s in as few launches as its strips need.
func (d *gpu) spread(s spreading) {
	for first := true; first || len(s.strips) > 0; first = false {
		n, ranks := 0, 0
		for n < min(partsOnce, len(s.strips)) && ranks+filled(s.strips[n].r) <= mostRanks {
			ranks += filled(s.strips[n].r)
			n++
		}
		d.spreadOnce(s, s.strips[:n], ranks)
		s.strips, s.u, s.bias, s.add = s.strips[n:], columns(s.u, ranks), driver.Matrix{}, true
	}
}

func (d *gpu) spreadOnce(s spreading, strips []strip, ranks int) {
	a := d.args().Matrix(s.y).Matrix(s.bias).Matrix(s.u).Int(s.rows).Int(s.cols).Int(ranks / rankStep)
	a.Int(flag(s.add)).Int(flag(s.turned)).Int(runOf(s.cols, s.y))
	d.dropArgs(a, s.drop)
	for i := range partsOnce {
		var p strip
		if i < len(strips) {
			p = strips[i]
		}
		a.Matrix(p.v).Int(p.col).Int(p.n).Int(p.r).Float(p.scale)
	}
	name, planes := "spread", 1
	if s.exact {
		name, planes = "spread_exact", 3
	}
	wide := (s.cols + spreadCols - 1) / spreadCols
	high := min((s.rows+spreadRows-1)/spreadRows, max(1, spreadBlocks*d.info.Processors/wide), maxGrid)
	d.launch(kernel{"spread", name}, shape{
		grid: [3]int{wide, high, 1}, block: [3]int{spreadThreads, 1, 1}, shared: ranks * spreadCols * 2 * planes,
	}, a)
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

// narrow sets u to x·Aᵀ of all parts, for few rows: every block reads a row of an A as it is.
func (d *gpu) narrow(t *linear, u driver.Matrix) {
	run := wideRun
	for i := range t.parts {
		run = min(run, runOf(t.k, t.x, t.parts[i].a))
	}
	for i := 0; i < len(t.parts); i += partsOnce {
		j := min(i+partsOnce, len(t.parts))
		a := d.args().Matrix(columns(u, t.parts[i].at)).Matrix(t.x).Int(t.rows).Int(t.k).Int(run)
		t.some(a, i, j, false)
		s := perRow(t.ranksOf(i, j))
		s.grid[1] = (t.rows + narrowRows - 1) / narrowRows
		d.launch(kernel{"lora", "narrow"}, s, a)
	}
}

// narrowRows are the rows that a block of narrow does.
const narrowRows = 8

// some appends the A, or its gradient, of the parts [i, j), at most partsOnce, each with its rank.
func (t *linear) some(a *driver.Args, i, j int, gradient bool) {
	for q := i; q < i+partsOnce; q++ {
		var p part
		if q < j {
			p = t.parts[q]
		}
		if gradient {
			p.a = p.dA
		}
		a.Matrix(p.a).Int(p.r)
	}
}

// stacked is the A of all parts one above the other [ranks, K], of x's type, in scratch memory.
func (d *gpu) stacked(t *linear) driver.Matrix {
	y := d.dense(t.ranks, t.k, t.x.Type)
	run := runOf(t.k, y)
	for i := range t.parts {
		run = min(run, runOf(t.k, t.parts[i].a))
	}
	for i := 0; i < len(t.parts); i += partsOnce {
		j := min(i+partsOnce, len(t.parts))
		rows := t.ranksOf(i, j)
		a := d.args().Matrix(at(y, t.parts[i].at)).Int(rows).Int(t.k).Int(run)
		t.some(a, i, j, false)
		d.launch(kernel{"lora", "stack"}, runs(rows, t.k, run), a)
	}
	return y
}

// diagonal is a matrix [N, ranks] with scale·B of each part on its columns of y and its ranks, 0 elsewhere, in scratch
// memory.
func (d *gpu) diagonal(t *linear, kind driver.Type) driver.Matrix {
	y := d.dense(t.n, t.ranks, kind)
	for i := 0; i < len(t.parts); i += partsOnce {
		j := min(i+partsOnce, len(t.parts))
		ranks := t.ranksOf(i, j)
		a := d.args().Matrix(columns(y, t.parts[i].at)).Int(t.n).Int(ranks)
		for q := i; q < i+partsOnce; q++ {
			var p part
			if q < j {
				p = t.parts[q]
			}
			a.Matrix(p.b).Int(p.col).Int(p.n).Int(p.r).Float(p.scale)
		}
		d.launch(kernel{"lora", "diagonal"}, perRow((t.n*ranks+threads-1)/threads), a)
	}
	return y
}
