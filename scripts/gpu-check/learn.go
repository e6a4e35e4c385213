package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/rubicon-rl/rubicon/internal/cpu"
	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/policy"
)

// learning trains the smallest shape, cut to a few layers, for some steps on the device and on the CPU: the losses must go the
// same way.
func learning(ctx context.Context, m *machine, r *report) (err error) {
	s := shapes(m.tiny)[0]
	s.config.Layers, s.sequences, s.length = min(4, s.config.Layers), 2, min(128, s.length)
	host, err := cpu.New(cpu.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, host.Close()) }()
	if r.Learning.CPU, err = curve(ctx, host, s); err != nil {
		return err
	}
	for _, bf16 := range []bool{false, true} {
		dev, err := m.open(bf16)
		if err != nil {
			return err
		}
		losses, err := curve(ctx, dev, s)
		if err := errors.Join(err, dev.Close()); err != nil {
			return err
		}
		if bf16 {
			r.Learning.BFloat16 = losses
		} else {
			r.Learning.Float32 = losses
		}
	}
	return r.Learning.check()
}

// updates is how many the curve has.
const updates = 12

// curve is the mean loss before each update on the same sequences.
func curve(ctx context.Context, dev device.Device, s shape) ([]float64, error) {
	model, err := policy.LoadFrom(ctx, dev, newRandom(s.config), policy.LoadOptions{DType: "bfloat16"})
	if err != nil {
		return nil, err
	}
	if err := model.AddAdapter(adapter, lora(), 1); err != nil {
		return nil, err
	}
	params, err := model.Params(adapter)
	if err != nil {
		return nil, err
	}
	adam, err := policy.NewAdamW(dev, params)
	if err != nil {
		return nil, err
	}
	defer adam.Close()
	f := s.forest()
	var losses []float64
	for range updates {
		params.ZeroGrad(dev)
		p, err := model.Forward(f, policy.ForwardOptions{Adapter: adapter, Temperature: 1, Grad: true})
		if err != nil {
			return nil, err
		}
		loss, d := 0.0, make([]float32, len(p.Output.LogP))
		for i, l := range p.Output.LogP {
			loss -= float64(l) / float64(len(d))
			d[i] = -1 / float32(len(d))
		}
		losses = append(losses, loss)
		if err := errors.Join(p.Backward(policy.Gradients{LogP: d}),
			adam.Step(params, 2e-3, policy.AdamWOptions{Beta1: 0.9, Beta2: 0.999, Eps: 1e-8}, 1), ctx.Err()); err != nil {
			return nil, err
		}
	}
	return losses, model.Close()
}

// check compares the curves: the device's loss falls, and is where the CPU's is, to a share of how far that fell.
func (l learningReport) check() error {
	fell := l.CPU[0] - l.CPU[updates-1]
	var faults []error
	for _, c := range []struct {
		name   string
		losses []float64
		share  float64
	}{{"float32", l.Float32, 0.02}, {"bfloat16", l.BFloat16, 0.1}} {
		for i, loss := range c.losses {
			if d := loss - l.CPU[i]; !(max(d, -d) <= c.share*fell) {
				faults = append(faults, fmt.Errorf("%s: the loss before update %d is %.4f, the CPU's %.4f, whose curve falls by %.4f", c.name, i+1, loss, l.CPU[i], fell))
				break
			}
		}
	}
	return errors.Join(faults...)
}
