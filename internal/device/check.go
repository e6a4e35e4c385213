package device

import (
	"fmt"
	"math"
	"slices"
)

// The Check functions say what is wrong with the shapes, element kinds and constants of a call, or nil. Every device
// runs the one that belongs to an operation before it touches memory, so that a misuse is the same error everywhere.
// What only a device can know (is this its own memory, do ids in memory stay in range) it checks itself, the latter
// with CheckIndices where reading them costs nothing.

// check collects the first error of one call. Its callers ask before they call fail, so that a call that is right
// formats, and allocates, nothing.
type check struct {
	op  string
	err error
}

// fail records an error unless there is one.
func (c *check) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(c.op+": "+format, args...)
	}
}

// view checks that m lies inside its memory and is [rows, cols]; a negative extent means any.
func (c *check) view(name string, m Mat, rows, cols int) {
	if c.err != nil {
		return
	}
	if m.Absent() {
		c.fail("%s is absent", name)
		return
	}
	if rows < 0 {
		rows = m.Rows
	}
	if cols < 0 {
		cols = m.Cols
	}
	if m.Rows != rows || m.Cols != cols {
		c.fail("%s is [%d,%d], want [%d,%d]", name, m.Rows, m.Cols, rows, cols)
	}
	if m.Off < 0 || m.Rows < 0 || m.Cols <= 0 || m.Stride < m.Cols ||
		m.Rows > 0 && m.Off+(m.Rows-1)*m.Stride+m.Cols > m.Mem.Len() {
		c.fail("%s, a [%d,%d] view at %d with stride %d, does not fit its memory of %d elements", name, m.Rows, m.Cols, m.Off, m.Stride, m.Mem.Len())
	}
}

// mat is view for a float matrix, F32 or Act.
func (c *check) mat(name string, m Mat, rows, cols int) {
	c.view(name, m, rows, cols)
	if !m.Absent() && m.Mem.Kind() == I32 {
		c.fail("%s holds int32, want floats", name)
	}
}

// f32 is view for a matrix that is F32 on every device.
func (c *check) f32(name string, m Mat, rows, cols int) {
	c.view(name, m, rows, cols)
	if !m.Absent() && m.Mem.Kind() != F32 {
		c.fail("%s is not of kind F32", name)
	}
}

func (c *check) optional(name string, m Mat, rows, cols int) {
	if !m.Absent() {
		c.mat(name, m, rows, cols)
	}
}

func (c *check) optionalF32(name string, m Mat, rows, cols int) {
	if !m.Absent() {
		c.f32(name, m, rows, cols)
	}
}

// ints checks an index memory of at least n entries.
func (c *check) ints(name string, m Mem, n int) {
	if m == nil {
		c.fail("%s is absent", name)
		return
	}
	if m.Kind() != I32 {
		c.fail("%s is not of kind I32", name)
	}
	if m.Len() < n {
		c.fail("%s has %d entries, want %d", name, m.Len(), n)
	}
}

// weight checks w against [n, k]; a negative extent means any.
func (c *check) weight(w Weight, n, k int) {
	if w == nil {
		c.fail("the weight is absent")
		return
	}
	wn, wk := w.Shape()
	if n < 0 {
		n = wn
	}
	if k < 0 {
		k = wk
	}
	if wn != n || wk != k {
		c.fail("the weight is [%d,%d], want [%d,%d]", wn, wk, n, k)
	}
}

// spans checks that every span lies in [0, rows).
func (c *check) spans(name string, spans []Span, rows int) {
	for i, s := range spans {
		if s.Row < 0 || s.N < 0 || s.Row+s.N > rows {
			c.fail("%s %d is rows [%d,%d) of %d", name, i, s.Row, s.Row+s.N, rows)
		}
	}
}

// CheckIndices reports the first of idx that is not in [0, n). op and what name it in the error.
func CheckIndices(op, what string, idx []int32, n int) error {
	for i, v := range idx {
		if v < 0 || int(v) >= n {
			return fmt.Errorf("%s: %s %d is %d, want 0 <= it < %d", op, what, i, v, n)
		}
	}
	return nil
}

// CheckAlloc checks Alloc's arguments.
func CheckAlloc(k Kind, n int) error {
	c := check{op: "alloc"}
	if k > I32 {
		c.fail("unknown kind %d", k)
	}
	if n < 0 {
		c.fail("%d elements", n)
	}
	return c.err
}

// CheckTransfer checks a copy of n elements between the host and m[off:]; ints says that the host side is int32.
func CheckTransfer(op string, m Mem, off, n int, ints bool) error {
	c := check{op: op}
	if m == nil {
		c.fail("the memory is absent")
		return c.err
	}
	if (m.Kind() == I32) != ints {
		c.fail("the memory and the host slice differ in kind (int32 against float32)")
	}
	if off < 0 || n > m.Len()-off {
		c.fail("elements [%d,%d) of a memory of %d", off, off+n, m.Len())
	}
	return c.err
}

// CheckNewWeight checks NewWeight's arguments.
func CheckNewWeight(t DType, n, k int) error {
	c := check{op: "new weight"}
	if t > Int4K {
		c.fail("unknown dtype %d", t)
	}
	if n <= 0 || k <= 0 {
		c.fail("shape [%d,%d]", n, k)
	}
	if f, _ := t.Form(); f.Super > 0 && k%f.Super != 0 {
		c.fail("rows of %d are not whole blocks of %v, which have %d", k, t, f.Super)
	}
	return c.err
}

// CheckLoadWeight checks a load of n host elements into rows of w that begin at row.
func CheckLoadWeight(w Weight, row, n int) error {
	c := check{op: "load weight"}
	c.weight(w, -1, -1)
	if c.err != nil {
		return c.err
	}
	rows, k := w.Shape()
	if n%k != 0 {
		c.fail("%d elements are no whole number of rows of %d", n, k)
	}
	if row < 0 || row+n/k > rows {
		c.fail("rows [%d,%d) of %d", row, row+n/k, rows)
	}
	return c.err
}

// CheckLoadWeightQuant checks LoadWeightQuant's arguments.
func CheckLoadWeightQuant(w Weight, row int, q Quant) error {
	c := check{op: "load quantised weight"}
	c.weight(w, -1, q.K)
	if c.err != nil {
		return c.err
	}
	if w.DType() != q.DType {
		c.fail("rows of type %v for a weight of type %v", q.DType, w.DType())
		return c.err
	}
	if n, _ := w.Shape(); row < 0 || q.Rows < 0 || row+q.Rows > n {
		c.fail("rows [%d,%d) of %d", row, row+q.Rows, n)
		return c.err
	}
	want := quantLengths(q.DType, q.Rows, q.K)
	if got := [...]int{len(q.Codes), len(q.Scale), len(q.Min), len(q.SubScale), len(q.SubMin)}; got != want {
		c.fail("%v codes, scales, minima and their factors, want %v", got, want)
	}
	for _, list := range [][]uint16{q.Scale, q.Min} {
		if i := slices.IndexFunc(list, func(h uint16) bool { return !finite(h) }); i >= 0 {
			c.fail("scale or minimum %d is not finite", i)
		}
	}
	return c.err
}

// CheckRepack checks Repack's arguments.
func CheckRepack(w Weight, row int, src Mat) error {
	c := check{op: "repack"}
	c.weight(w, -1, -1)
	if c.err != nil {
		return c.err
	}
	n, k := w.Shape()
	c.mat("src", src, -1, k)
	if row < 0 || row+src.Rows > n {
		c.fail("rows [%d,%d) of %d", row, row+src.Rows, n)
	}
	return c.err
}

// CheckSame checks an elementwise operation on float matrices of one shape.
func CheckSame(op string, first Mat, others ...Mat) error {
	c := check{op: op}
	c.mat("the first operand", first, -1, -1)
	for _, m := range others {
		c.mat("another operand", m, first.Rows, first.Cols)
	}
	return c.err
}

// CheckGatherRows checks GatherRows; the entries of rows must be in [0, x.Rows).
func CheckGatherRows(y, x Mat, rows Mem) error {
	c := check{op: "gather rows"}
	c.mat("y", y, -1, -1)
	c.mat("x", x, -1, y.Cols)
	c.ints("rows", rows, y.Rows)
	return c.err
}

// CheckScatterRows checks ScatterRows and ScatterAddRows; the entries of rows must be in [0, y.Rows).
func CheckScatterRows(y, x Mat, rows Mem) error {
	c := check{op: "scatter rows"}
	c.mat("y", y, -1, -1)
	c.mat("x", x, -1, y.Cols)
	c.ints("rows", rows, x.Rows)
	return c.err
}

// CheckMeanRows checks MeanRows.
func CheckMeanRows(y, x Mat, spans []Span) error {
	return checkMeanRows(check{op: "mean rows"}, "y", y, "x", x, spans)
}

// CheckMeanRowsGrad checks MeanRowsGrad.
func CheckMeanRowsGrad(dx, dy Mat, spans []Span) error {
	return checkMeanRows(check{op: "mean rows gradient"}, "dy", dy, "dx", dx, spans)
}

func checkMeanRows(c check, mean string, y Mat, rows string, x Mat, spans []Span) error {
	c.f32(mean, y, len(spans), -1)
	c.mat(rows, x, -1, y.Cols)
	c.spans("span", spans, x.Rows)
	if slices.ContainsFunc(spans, func(s Span) bool { return s.N == 0 }) {
		c.fail("a span has no rows, and so no mean")
	}
	return c.err
}

// CheckAdamW checks AdamW.
func CheckAdamW(w, g, m, v Mat, h AdamW) error {
	c := check{op: "adamw"}
	c.f32("w", w, -1, -1)
	c.f32("g", g, w.Rows, w.Cols)
	c.f32("m", m, w.Rows, w.Cols)
	c.f32("v", v, w.Rows, w.Cols)
	if h.Step < 1 {
		c.fail("step %d, want one that counts from 1", h.Step)
	}
	if !(h.Beta1 >= 0 && h.Beta1 < 1 && h.Beta2 >= 0 && h.Beta2 < 1) {
		c.fail("betas %g, %g, want 0 <= beta < 1", h.Beta1, h.Beta2)
	}
	finite := !math.IsNaN(h.LR+h.Eps+h.WeightDecay+h.GradScale) && !math.IsInf(h.LR+h.Eps+h.WeightDecay+h.GradScale, 0)
	if !(finite && h.Eps >= 0) {
		c.fail("a constant is not finite, or eps is negative: %+v", h)
	}
	return c.err
}
