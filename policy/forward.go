package policy

import (
	"errors"
	"fmt"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// Pass is a forward pass: its results, and, if gradients were asked for, what Backward needs. Backward and Release give
// its memory back; one of them has to be called.
type Pass struct {
	Output Output

	m     *Model
	mem   *scope
	rows  rows
	net   *net
	stack *stack
	head  headPass
	pool  poolPass
	grad  bool
}

// headPass is the head of a pass over its N scored tokens.
type headPass struct {
	n       int
	parents device.Mem // [N] row of st.final that each is predicted from
	hidden  device.Mat // [N,D]
	args    device.Head
	out     device.HeadOut
}

// Forward computes what o asks for over the forest. Output holds one entry per scored token.
func (m *Model) Forward(f *Forest, o ForwardOptions) (*Pass, error) {
	l, err := arrange(f, limits{m.cfg.Vocab, m.cfg.MaxPositions})
	if err != nil {
		return nil, err
	}
	if err := m.checkForward(l, f, o); err != nil {
		return nil, err
	}
	p := &Pass{m: m, mem: m.pool.scope(), grad: o.Grad}
	if o.HasKL && len(l.targets) > 0 {
		p.head.args.Ref = p.mem.mat(device.Act, len(l.targets), m.cfg.Width)
		err = errors.Join(p.mem.err, m.scoredHidden(p.head.args.Ref, l, o.KL))
	}
	if err == nil {
		err = p.prepare(l, o)
	}
	if err == nil {
		err = p.run()
	}
	if err != nil {
		p.Release()
		return nil, err
	}
	return p, nil
}

func (m *Model) checkForward(l *layout, f *Forest, o ForwardOptions) error {
	if len(l.targets) > 0 && !(o.Temperature > 0) {
		return fmt.Errorf("policy: temperature %g, want a positive one (1 leaves the distribution as it is)", o.Temperature)
	}
	if o.Pool != nil && len(o.Pool) != len(f.Segments) {
		return fmt.Errorf("policy: %d pool marks for %d segments", len(o.Pool), len(f.Segments))
	}
	if !o.Grad {
		return nil
	}
	if o.Adapter == "" {
		if !m.full() {
			return errors.New("policy: gradients of frozen weights are not computed: name an adapter, or load the model with Train \"full\"")
		}
		return nil
	}
	a, err := m.adapter(o.Adapter)
	if err != nil {
		return err
	}
	if a.frozen {
		return fmt.Errorf("policy: adapter %q is a frozen copy and has no gradients", o.Adapter)
	}
	return a.needGrad(m.dev)
}

// named returns the adapter set of a name, nil for "".
func (m *Model) named(name string) (*adapter, error) {
	if name == "" {
		return nil, nil
	}
	return m.adapter(name)
}

// prepare takes the pass's memory.
func (p *Pass) prepare(l *layout, o ForwardOptions) error {
	m := p.m
	set, err := m.named(o.Adapter)
	if err != nil {
		return err
	}
	p.rows = l.upload(p.mem, p.m.cfg.Pad)
	k := keepNothing
	if o.Grad {
		k = keepInputs
		if o.KeepAll {
			k = keepAll
		}
	}
	p.stack = m.stack(p.mem, p.rows.n, k)
	p.prepareHead(l, o)
	p.pool = m.poolPass(p.mem, l, o.Pool)
	if p.mem.err != nil {
		return p.mem.err
	}
	var drop *dropping
	if o.Train {
		drop = &dropping{o.Seed, o.Step, &p.rows}
	}
	if err := m.needPositions(l.maxPos + 1); err != nil {
		return err
	}
	p.net = m.net(netOptions{set: set, grad: o.Grad, drop: drop})
	return nil
}

func (p *Pass) prepareHead(l *layout, o ForwardOptions) {
	n, h := len(l.targets), &p.head
	if n == 0 {
		return
	}
	column := func(want bool) device.Mat {
		if !want {
			return device.Mat{}
		}
		return p.mem.mat(device.F32, n, 1)
	}
	h.n, h.parents, h.hidden = n, p.mem.ints(l.parents), p.mem.mat(device.Act, n, p.m.cfg.Width)
	h.args.W, h.args.Temp, h.args.Targets = p.m.head, o.Temperature, p.mem.ints(l.targets)
	h.out = device.HeadOut{
		LogP: column(true), LSE: column(true), Entropy: column(o.Entropy), KL: column(o.HasKL), RefLSE: column(o.HasKL),
	}
}

// scoredHidden writes into y [N,D] the last hidden states that l's scored tokens are predicted from, under adapter set
// name.
func (m *Model) scoredHidden(y device.Mat, l *layout, name string) error {
	p := &Pass{m: m, mem: m.pool.scope()}
	defer p.Release()
	if err := p.prepare(l, ForwardOptions{Adapter: name}); err != nil {
		return err
	}
	p.net.forward(&p.rows, p.stack)
	m.dev.GatherRows(y, p.stack.final, p.head.parents)
	return m.dev.Err()
}

// run computes the pass and reads its results.
func (p *Pass) run() error {
	dev, h := p.m.dev, &p.head
	p.net.forward(&p.rows, p.stack)
	if h.n > 0 {
		dev.GatherRows(h.hidden, p.stack.final, h.parents)
		dev.Head(h.out, h.hidden, h.args)
	}
	p.pool.run(dev, p.stack.final)
	var err error
	for _, column := range []struct {
		from device.Mat
		to   *[]float32
	}{{h.out.LogP, &p.Output.LogP}, {h.out.Entropy, &p.Output.Entropy}, {h.out.KL, &p.Output.KL}} {
		if *column.to, err = p.m.download(column.from); err != nil {
			return err
		}
	}
	if p.Output.Pooled, err = p.pool.read(p.m); err != nil {
		return err
	}
	return dev.Err()
}

// download reads a matrix of contiguous rows; an absent one is nil.
func (m *Model) download(x device.Mat) ([]float32, error) {
	if x.Absent() {
		return nil, nil
	}
	v := make([]float32, x.Rows*x.Cols)
	return v, m.dev.Download(v, x.Mem, x.Off)
}

// Release gives the pass's memory back. It may be called again, and after Backward.
func (p *Pass) Release() {
	if p.mem != nil {
		p.mem.release()
		p.mem = nil
	}
}
