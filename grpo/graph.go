package grpo

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	// Gorgonia refuses to start on a Go release that is newer than this module's version. The import keeps the
	// version that asks the running release instead of a list.
	_ "go4.org/unsafe/assume-no-moving-gc"
)

// node is a value per token, or a scalar, in an expression graph.
type node = gorgonia.Node

// expr builds an expression graph over size tokens. The first error sticks: every method returns nil after it.
type expr struct {
	o        *Objective
	graph    *gorgonia.ExprGraph
	size     int
	segments *segments
	nodes    [numLanes]*node
	lanes    [numLanes][]float64
	fills    map[float64]*node
	shared   *node // the importance ratio
	err      error
}

// lane is the node of an input.
func (x *expr) lane(l lane) *node {
	if x.nodes[l] == nil {
		x.lanes[l] = make([]float64, x.size)
		x.nodes[l] = x.vector(fmt.Sprintf("lane%d", l), x.lanes[l])
	}
	return x.nodes[l]
}

// fill is a constant vector: minimum and maximum take vectors only.
func (x *expr) fill(v float64) *node {
	if x.fills[v] == nil {
		values := make([]float64, x.size)
		for i := range values {
			values[i] = v
		}
		x.fills[v] = x.vector(fmt.Sprintf("constant%v", v), values)
	}
	return x.fills[v]
}

// vector is an input whose storage is values. Names are unique: Gorgonia takes equal names for one node.
func (x *expr) vector(name string, values []float64) *node {
	t := tensor.New(tensor.WithShape(x.size), tensor.WithBacking(values))
	return gorgonia.NewVector(x.graph, tensor.Float64, gorgonia.WithShape(x.size), gorgonia.WithName(name), gorgonia.WithValue(t))
}

func (x *expr) apply(f func(*node) (*node, error), a *node) *node {
	if x.err != nil {
		return nil
	}
	n, err := f(a)
	x.err = err
	return n
}

func (x *expr) combine(f func(a, b *node) (*node, error), a, b *node) *node {
	if x.err != nil {
		return nil
	}
	n, err := f(a, b)
	x.err = err
	return n
}

func (x *expr) add(a, b *node) *node  { return x.combine(gorgonia.Add, a, b) }
func (x *expr) sub(a, b *node) *node  { return x.combine(gorgonia.Sub, a, b) }
func (x *expr) mul(a, b *node) *node  { return x.combine(gorgonia.HadamardProd, a, b) }
func (x *expr) min(a, b *node) *node  { return x.combine(gorgonia.MinBetween, a, b) }
func (x *expr) max(a, b *node) *node  { return x.combine(gorgonia.MaxBetween, a, b) }
func (x *expr) exp(a *node) *node     { return x.apply(gorgonia.Exp, a) }
func (x *expr) neg(a *node) *node     { return x.apply(gorgonia.Neg, a) }
func (x *expr) square(a *node) *node  { return x.apply(gorgonia.Square, a) }
func (x *expr) sigmoid(a *node) *node { return x.apply(gorgonia.Sigmoid, a) }
func (x *expr) sum(a *node) *node {
	return x.apply(func(a *node) (*node, error) { return gorgonia.Sum(a) }, a)
}

// clamp bounds a, with gradient 1 inside and at the bounds and 0 outside.
func (x *expr) clamp(a *node, low, high float64) *node {
	return x.min(x.max(a, x.fill(low)), x.fill(high))
}

// programKey says which compiled graph fits a chunk.
type programKey struct {
	size  int
	bonus bool // the loss has an entropy bonus
}

// program is a compiled graph with its inputs and outputs.
type program struct {
	size     int
	vm       gorgonia.VM
	lanes    [numLanes][]float64
	segments *segments

	loss, policy, kl, dlogp, dentropy gorgonia.Value // copied out by the machine; kl and dentropy may stay nil
}

// compile builds, differentiates and compiles the graph of a size.
func (o *Objective) compile(key programKey) (p *program, err error) {
	defer func() { // the compiler panics on graphs that it cannot handle
		if r := recover(); r != nil {
			p, err = nil, fmt.Errorf("compiling the loss graph for %d tokens: %v", key.size, r)
		}
	}()
	x := &expr{o: o, graph: gorgonia.NewGraph(), size: key.size, segments: &segments{}, fills: make(map[float64]*node)}
	p = &program{size: key.size, segments: x.segments}

	perToken := o.family.loss(x)
	if o.cfg.klInLoss() {
		kl := x.klPerToken()
		perToken = x.add(perToken, x.mul(kl, x.lane(laneKLWeight)))
		x.read(x.sum(x.mul(kl, x.lane(laneOwn))), &p.kl)
	}
	policy := x.sum(perToken)
	x.read(policy, &p.policy)
	loss, wrt := policy, []*node{x.lane(laneLogP)}
	if key.bonus {
		loss = x.sub(loss, x.sum(x.mul(x.lane(laneEntropy), x.lane(laneEntropyWeight))))
		wrt = append(wrt, x.lane(laneEntropy))
	}
	x.read(loss, &p.loss)
	if x.err != nil {
		return nil, fmt.Errorf("building the loss graph for %d tokens: %w", key.size, x.err)
	}
	grads, err := gorgonia.Grad(loss, wrt...)
	if err != nil {
		return nil, fmt.Errorf("differentiating the loss graph for %d tokens: %w", key.size, err)
	}
	x.read(grads[0], &p.dlogp)
	if key.bonus {
		x.read(grads[1], &p.dentropy)
	}
	p.lanes = x.lanes
	p.vm = gorgonia.NewTapeMachine(x.graph)
	return p, nil
}

// read has the machine copy a value out.
func (x *expr) read(n *node, into *gorgonia.Value) {
	if x.err == nil {
		gorgonia.Read(n, into)
	}
}

// run evaluates rows [row, end) of b and adds to out.
func (p *program) run(b *batch, row, end int, out *outcome) error {
	first := b.starts[row]
	last := b.starts[end-1] + b.rows[end-1]
	for l, dst := range p.lanes {
		if dst != nil {
			clear(dst[copy(dst, b.lane[l][first:last]):])
		}
	}
	p.segments.set(b, row, end)
	err := p.vm.RunAll()
	p.vm.Reset() // without it the next RunAll would do nothing
	if err != nil {
		return fmt.Errorf("running the loss graph on %d tokens: %w", last-first, err)
	}
	out.loss += scalar(p.loss)
	out.policy += scalar(p.policy)
	out.kl += scalar(p.kl)
	copy(out.dlogp[first:last], p.dlogp.Data().([]float64))
	if out.dentropy != nil {
		copy(out.dentropy[first:last], p.dentropy.Data().([]float64))
	}
	return nil
}

// scalar is the number in v; 0 for none.
func scalar(v gorgonia.Value) float64 {
	if v == nil {
		return 0
	}
	return v.Data().(float64)
}
