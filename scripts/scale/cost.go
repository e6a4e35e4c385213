package main

import "github.com/rubicon-rl/rubicon/policy"

// cost is what a step is predicted to take. docs/performance.md has the formulae.
type cost struct {
	Products  float64 `json:"products"`  // floating-point operations with weights and adapters
	Attention float64 `json:"attention"` // and those of attention
	Seconds   float64 `json:"seconds"`
	Device    int64   `json:"device"` // bytes that the device allocates
	Peak      int64   `json:"peak"`   // bytes that the process has at most
}

// predict is the cost model but for the time, which needs rates.
func predict(p point) (cost, error) {
	plan, err := policy.MemoryPlan(p.config(), policy.PlanOptions{
		LoadOptions: loading, LoRA: &lora, Update: true, KeepAll: !p.Recompute, Tokens: p.tokens(), Scored: p.scored(),
	})
	c := cost{Device: plan.Total(), Peak: plan.Total() + scratch(p) + program}
	c.Products, c.Attention = operations(p)
	return c, err
}

// operations are the floating-point operations of a step; a product of [m,k] and [k,n] has 2mkn.
func operations(p point) (products, attention float64) {
	c, rank := p.config(), float64(lora.R)
	n, l, again := float64(p.tokens()), float64(c.Layers), float64(c.Layers-1)
	if !p.Recompute {
		again = 0
	}
	for _, q := range policy.Projections() {
		in, out := c.ProjectionSize(q)
		weight, a, b := 2*n*float64(in*out), 2*n*rank*float64(in), 2*n*rank*float64(out)
		products += l * (2*weight + 4*a + 3*b) // x·W, dy·W; A in x·A, again for dB, in dA and dx; B in u·B, dB and dy·B
		if q != policy.Down {
			products += again * (weight + a + b)
		}
	}
	products += 6 * float64(p.scored()*c.Vocab*c.Width) // logits, logits again, their gradient

	pairs := float64(p.Sequences) * float64(p.Length) * float64(p.Length+1) / 2 // of a query and a key that it sees
	one := 2 * pairs * float64(c.Heads*c.HeadDim)
	return products, one * (7*l + 2*again) // forward 2, backward 5; computed again 2
}

// What memory the CPU device takes beside what the plan counts, as internal/cpu has it.
const (
	program    = 16 << 20 // the process without a model
	logitBytes = 64 << 20 // of a chunk of the head's rows
	splitBytes = 6        // of an element of a product's left operand: three bfloat16 pieces
	lazyWeight = 32 << 20 // bytes of a weight up to which each task splits the rows it needs
	partial    = 32       // sums of dk and dv that attention's gradient takes, over all key heads
)

// scratch is the most memory that one operation takes: the head, the widest product or attention's gradient.
func scratch(p point) int64 {
	c, n := p.config(), p.tokens()
	rows := min(p.scored(), max(128, logitBytes/4/c.Vocab))
	head := rows * c.Vocab * (4 + splitBytes)
	product := 0
	if 2*2*c.Hidden*c.Width > lazyWeight {
		product = n * (2*c.Hidden + c.Width) * splitBytes
	}
	attention := partial / c.KVHeads * n / p.Sequences * c.KVHeads * c.HeadDim * 2 * 4
	return int64(max(head, product, attention))
}

// rates are operations per second and thread.
type rates struct {
	Products  float64 `json:"products"`
	Attention float64 `json:"attention"`
}

// seconds is the predicted time of a point.
func (r rates) seconds(c cost, threads int) float64 {
	return (c.Products/r.Products + c.Attention/r.Attention) / float64(threads)
}

// fit returns the rates with the least squares of the relative errors over all measured points; one for both if the points
// do not tell them apart.
func fit(results []*result) rates {
	var pp, pa, aa, p, a float64
	for _, r := range results {
		s := r.Measured.median() * float64(r.Point.Threads)
		x, y := r.Predicted.Products/s, r.Predicted.Attention/s
		pp, pa, aa, p, a = pp+x*x, pa+x*y, aa+y*y, p+x, a+y
	}
	det := pp*aa - pa*pa
	f := rates{det / (p*aa - a*pa), det / (a*pp - p*pa)}
	if !(f.Products > 0 && f.Attention > 0) {
		one := (pp + 2*pa + aa) / (p + a)
		f = rates{one, one}
	}
	return f
}
