package main

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/rubicon-rl/rubicon/policy"
)

// Decoding is timed as the difference of two generations, which both begin with the same prompts.
const (
	shortDecode = 4
	longDecode  = 36
)

// training measures passes without and with the adapter, forward and with the gradient (layers recomputed).
func (t *trial) training(context.Context) error {
	f := t.forest()
	forward := func(name string) (float64, error) {
		var fault error
		s, err := best(t.dev, 3, func() {
			p, err := t.model.Forward(f, policy.ForwardOptions{Adapter: name, Temperature: 1})
			if err != nil {
				fault = err
				return
			}
			p.Release()
		})
		return s, errors.Join(fault, err)
	}
	bare, err := forward("")
	if err != nil {
		return err
	}
	with, err := forward(adapter)
	if err != nil {
		return err
	}
	var fault error
	both, err := best(t.dev, 3, func() { fault = errors.Join(fault, t.gradient(f, nil)) })
	if err := errors.Join(fault, err); err != nil {
		return err
	}
	n := float64(f.Tokens())
	t.out.Forward, t.out.Train, t.out.LoRAForward = n/with, n/both, with/bare-1
	return nil
}

// gradient adds the gradient of the mean log-probability; timed, if it is not nil, gets the seconds of the two passes.
func (t *trial) gradient(f *policy.Forest, timed *[2]float64) error {
	t.params.ZeroGrad(t.dev)
	began := time.Now()
	p, err := t.model.Forward(f, policy.ForwardOptions{Adapter: adapter, Temperature: 1, Grad: true})
	if err != nil {
		return err
	}
	middle := time.Now() // the log-probabilities are on the host: the pass is done
	d := make([]float32, len(p.Output.LogP))
	for i := range d {
		d[i] = -1 / float32(len(d))
	}
	err = errors.Join(p.Backward(policy.Gradients{LogP: d}), t.dev.Sync())
	if timed != nil {
		*timed = [2]float64{middle.Sub(began).Seconds(), time.Since(middle).Seconds()}
	}
	return err
}

// generate samples n tokens after each of the batch's prompts.
func (t *trial) generate(ctx context.Context, name string, n int) ([][]policy.Sample, float64, error) {
	reqs := make([]policy.Request, t.batch)
	for i := range reqs {
		reqs[i] = policy.Request{Prompt: t.tokens(i, t.context), N: 1, Stream: []uint64{1, uint64(i)}}
	}
	began := time.Now()
	samples, err := t.model.Generate(ctx, reqs, t.generation(name, n))
	return samples, time.Since(began).Seconds(), err
}

// decoding measures tokens a second at the whole batch, without the prompts, without and with the adapter.
func (t *trial) decoding(ctx context.Context) error {
	var rate [2]float64
	for i, name := range []string{"", adapter} {
		if _, _, err := t.generate(ctx, name, shortDecode); err != nil { // takes the memory, loads the code
			return err
		}
		_, short, err := t.generate(ctx, name, shortDecode)
		if err != nil {
			return err
		}
		_, long, err := t.generate(ctx, name, longDecode)
		if err != nil {
			return err
		}
		rate[i] = float64(t.batch*(longDecode-shortDecode)) / (long - short)
	}
	t.out.Decode, t.out.Batch, t.out.Context, t.out.LoRADecode = rate[1], t.batch, t.context, rate[0]/rate[1]-1
	return nil
}

// step is a step of GRPO in its parts, and the gap between the sampler's log-probabilities and the trainer's.
func (t *trial) step(ctx context.Context) error {
	samples, sampling, err := t.generate(ctx, adapter, longDecode)
	if err != nil {
		return err
	}
	n := min(t.batch, max(1, t.sequences*t.length/(t.context+longDecode)))
	f := &policy.Forest{}
	var sampled []float32
	for i := range n {
		s := samples[i][0]
		score := make([]bool, t.context+len(s.Tokens))
		for j := range s.Tokens {
			score[t.context+j] = true
		}
		f.Segments = append(f.Segments, policy.Segment{Parent: policy.Root, Tokens: append(t.tokens(i, t.context), s.Tokens...), Score: score})
		sampled = append(sampled, s.LogP...)
	}
	var passes [2]float64
	if err := t.gradient(f, &passes); err != nil {
		return err
	}
	began := time.Now()
	if err := errors.Join(t.adam.Step(t.params, 0, policy.AdamWOptions{Beta1: 0.9, Beta2: 0.999, Eps: 1e-8}, 1), t.dev.Sync()); err != nil {
		return err
	}
	t.out.Step = stepReport{Completions: t.batch, Trained: n, Sampling: sampling, Forward: passes[0], Backward: passes[1], Update: time.Since(began).Seconds()}
	p, err := t.model.Forward(f, policy.ForwardOptions{Adapter: adapter, Temperature: 1})
	if err != nil {
		return err
	}
	defer p.Release()
	t.out.Gap = gap(sampled, p.Output.LogP)
	return nil
}

// gap compares log-probabilities of the same tokens.
func gap(sampler, trainer []float32) (g gapReport) {
	for i, s := range sampler {
		d := float64(trainer[i]) - float64(s)
		g.MeanDifference += math.Abs(d) / float64(len(sampler))
		g.MaxDifference = max(g.MaxDifference, math.Abs(d))
		g.MeanRatio += math.Exp(d) / float64(len(sampler))
	}
	return g
}
