package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/internal/half"
	"github.com/rubicon-rl/rubicon/policy"
)

// arithmetic measures what the device does at best: a large product, and a copy of memory.
func arithmetic(_ context.Context, m *machine, r *report) (err error) {
	dev, err := m.open(true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	n, copied := 8192, 64<<20
	if m.tiny {
		n, copied = 64, 1<<12
	}
	w, err := dev.NewWeight(device.BFloat16, n, n)
	if err != nil {
		return err
	}
	x, err := dev.Alloc(device.Act, max(n*n, copied))
	if err != nil {
		return err
	}
	y, err := dev.Alloc(device.Act, max(n*n, copied))
	if err != nil {
		return err
	}
	if err := noise(dev, x, w, n); err != nil {
		return err
	}
	t, err := best(dev, 10, func() { dev.Linear(device.View(y, n, n), device.View(x, n, n), device.Linear{W: w}) })
	r.Arithmetic.TFLOPS = 2 * math.Pow(float64(n), 3) / t / 1e12
	if err != nil {
		return err
	}
	a, b := device.View(x, copied/1024, 1024), device.View(y, copied/1024, 1024)
	t, err = best(dev, 10, func() { dev.Copy(b, a) })
	r.Arithmetic.Bandwidth = 2 * 2 * float64(copied) / t / 1e9
	return err
}

// noise fills a weight and as much of x with random numbers: with zeros a matrix unit is faster.
func noise(dev device.Device, x device.Mem, w device.Weight, n int) error {
	block := newRandom(policy.Config{InitStd: 0.02}).block
	values, rows := make([]float32, blockLen), blockLen/n
	for i := range values {
		values[i] = half.FromBF16(block[i])
	}
	for row := 0; row < n; row += rows {
		m := min(rows, n-row)
		dev.Upload(x, row*n, values[:m*n])
		if err := dev.LoadWeightBF16(w, row, block[:m*n]); err != nil {
			return err
		}
	}
	return nil
}

// best is the shortest of several times that f takes, seconds; the first, which loads code, does not count.
func best(dev device.Device, times int, f func()) (float64, error) {
	least := math.Inf(1)
	for i := range times + 1 {
		began := time.Now()
		f()
		if err := dev.Sync(); err != nil {
			return least, err
		}
		if i > 0 {
			least = min(least, time.Since(began).Seconds())
		}
	}
	return least, nil
}

// models measures every shape that fits.
func models(ctx context.Context, m *machine, r *report) error {
	var faults []error
	for _, s := range shapes(m.tiny) {
		if err := ctx.Err(); err != nil {
			return errors.Join(append(faults, fmt.Errorf("%s: "+notDone+": the time was over", s.name))...)
		}
		fmt.Fprintf(os.Stderr, "  %s\n", s.name)
		model := modelReport{Shape: s.name}
		err := measure(ctx, m, s, r.Arithmetic, &model)
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", s.name, err))
			continue
		}
		r.Models = append(r.Models, model)
	}
	return errors.Join(faults...)
}

// trial is a model on the device.
type trial struct {
	shape
	dev    device.Device
	model  *policy.Model
	params *policy.Params
	adam   *policy.AdamW
	out    *modelReport
}

func measure(ctx context.Context, m *machine, s shape, a arithmeticReport, out *modelReport) (err error) {
	dev, err := m.open(true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	before := used(dev)
	plan, err := fit(&s, dev)
	if err != nil {
		return err
	}
	began := time.Now()
	model, err := policy.LoadFrom(ctx, dev, newRandom(s.config), policy.LoadOptions{DType: "bfloat16"})
	if err != nil {
		return err
	}
	if err := errors.Join(model.AddAdapter(adapter, lora(), 1), dev.Sync()); err != nil {
		return err
	}
	out.Parameters, out.LoadSeconds, out.PlanBytes = s.config.Size(), time.Since(began).Seconds(), plan.Total()
	params, err := model.Params(adapter)
	if err != nil {
		return err
	}
	adam, err := policy.NewAdamW(dev, params)
	if err != nil {
		return err
	}
	t := &trial{s, dev, model, params, adam, out}
	for _, part := range []func(context.Context) error{t.training, t.decoding, t.step} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	out.UsedBytes = used(dev) - before
	out.rate(s, a, plan.Weights)
	return nil
}

// used is how much of the device's memory is taken, by whomever; of a device that does not say, what it has given out.
func used(dev device.Device) int64 {
	if d, ok := dev.(interface {
		MemInfo() (free, total int64, err error)
	}); ok {
		if free, total, err := d.MemInfo(); err == nil && free < total {
			return total - free
		}
	}
	return dev.Allocated()
}

// fit plans the memory, and halves the training pass and the batch until there is enough.
func fit(s *shape, dev device.Device) (policy.Plan, error) {
	l := lora()
	for {
		o := policy.PlanOptions{
			LoadOptions: policy.LoadOptions{DType: "bfloat16"}, LoRA: &l, Update: true, Tokens: s.sequences * s.length, Scored: s.sequences * s.length * 3 / 4,
			Samples: s.batch, Prompts: s.batch, Prompt: s.context, Generate: s.generation(adapter, longDecode), Memory: dev.Info().Memory,
		}
		if d, ok := dev.(interface{ Footprint() device.Footprint }); ok {
			o.Device = d.Footprint()
		}
		p, err := policy.MemoryPlan(s.config, o)
		if err != nil || o.Memory == 0 || p.Total() <= o.Memory {
			return p, err
		}
		if s.sequences == 1 && s.batch == 1 {
			return p, fmt.Errorf(notDone+": it needs %.1f GB, the device has %.1f GB", float64(p.Total())/1e9, float64(o.Memory)/1e9)
		}
		s.sequences, s.batch = max(1, s.sequences/2), max(1, s.batch/2)
	}
}

// generation is how n tokens are sampled after each of the batch's prompts.
func (s shape) generation(name string, n int) policy.GenerateOptions {
	return policy.GenerateOptions{
		Adapter: name, MaxBatch: s.batch, KVTokens: s.batch * (s.context + longDecode + 64), PrefillChunk: min(4096, s.batch*s.context),
		SamplingParams: policy.SamplingParams{Temperature: 1, TopP: 1, RepetitionPenalty: 1, MaxNewTokens: n},
	}
}

// forest is the sequences of a training pass, of random tokens.
func (s shape) forest() *policy.Forest {
	f := &policy.Forest{}
	for i := range s.sequences {
		g := policy.Segment{Parent: policy.Root, Tokens: s.tokens(i, s.length), Score: make([]bool, s.length)}
		for j := range g.Score {
			g.Score[j] = j >= s.length/4
		}
		f.Segments = append(f.Segments, g)
	}
	return f
}

// tokens are n random tokens.
func (s shape) tokens(seed, n int) []int32 {
	tokens, x := make([]int32, n), uint32(seed+1)
	for i := range tokens {
		x = x*1664525 + 1013904223
		tokens[i] = int32(x>>8) % int32(s.config.Vocab)
	}
	return tokens
}
