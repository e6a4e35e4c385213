package grpo

import (
	"errors"
	"fmt"
	"math"
	"sync"
)

// ErrNonFinite marks a step that must not move the policy: an input, the loss or its gradient is NaN or infinite.
var ErrNonFinite = errors.New("not finite")

// family is one kind of surrogate. A new one is a file with such a value, and a line in families.
type family struct {
	// loss is the loss of each token, weighted by laneCoef, as an expression.
	loss func(x *expr) *node
	// weigh sets the family's own lanes and multiplies factors without a gradient into laneCoef; nil: there are none.
	weigh func(o *Objective, b *batch)
	// metrics adds the family's own metrics.
	metrics func(o *Objective, b *batch, m Metrics)
	reduce  reduction
	// foldsSampling: the family corrects for the sampler itself, so that laneCoef is not.
	foldsSampling bool
}

// families are the values of grpo.loss_type.
var families = map[string]family{
	"grpo":    clipFamily(perSequence),
	"bnpo":    clipFamily(perToken),
	"dr_grpo": clipFamily(perLength),
	"dapo":    clipFamily(perBatch),
	"luspo":   clipFamily(perRow),
	"cispo":   cispoFamily(),
	"sapo":    sapoFamily(),
	"vespo":   vespoFamily(),
}

// Inputs is a micro-batch of B rows with N tokens in all, laid out flat, row after row, without padding. Values at
// tokens that Mask leaves out are ignored, whatever they are.
type Inputs struct {
	Rows            []int     // [B] tokens of each row
	LogP            []float32 // [N] log-probabilities under the policy; the loss is differentiated by them
	Old             []float32 // [N] the same when the update began; nil: detached LogP, so that every ratio is exactly 1
	Ref             []float32 // [N] under the reference; needed for a KL term in the loss
	Sampling        []float32 // [N] as the sampler gave them, NaN where unknown; nil: sampler and trainer agree
	Entropy         []float32 // [N] nats; needed if Config.NeedsEntropy, else only for the metric
	Mask            []bool    // [N] tokens that are trained on; nil: all
	Advantages      []float64 // [B]
	TokenAdvantages []float64 // [N] instead of Advantages; nil: none
	NumItems        float64   // trained tokens of the whole generation batch, all processes
	GradAccum       int       // micro-steps of this optimiser step; 0: 1
	StepsPerGen     int       // micro-batches of the generation batch; 0: 1
	Eval            bool      // no accumulation
	EntropyCoef     float64   // coefficient of the entropy bonus in force; see EntropyControl
	Whole           *Whole    // the micro-batch that these rows are a part of; nil: they are all of it
}

// Whole is what a micro-batch that several processes share has in all. Losses and gradients of its parts add up to its own.
type Whole struct {
	Rows      int       // rows
	Tokens    float64   // trained tokens
	Entropies []float32 // of the trained tokens; needed if Config.NeedsEntropy
}

// Result is the loss of a micro-batch and its gradients.
type Result struct {
	Loss     float64   // as back-propagated: divided for gradient accumulation
	DLogP    []float32 // [N] dLoss/dLogP
	DEntropy []float32 // [N] dLoss/dEntropy; nil: zero
	Metrics  Metrics

	// Sum of the entropies that the bonus acts on, and their number, for EntropyControl.
	EntropySum, EntropyCount float64
}

// Objective evaluates a loss as a Gorgonia expression graph in float64 and lets Gorgonia differentiate it. Graphs are
// kept for reuse; their sizes are a few powers of two, so that memory stays bounded. Safe for concurrent use: calls run
// one after the other.
type Objective struct {
	cfg    Config
	family family
	kl     klKind

	mu       sync.Mutex
	programs map[programKey]*program
}

// NewObjective returns the objective that cfg describes.
func NewObjective(cfg Config) (*Objective, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Objective{
		cfg:      cfg,
		family:   families[cfg.LossType],
		kl:       klEstimator(cfg.KLEstimator),
		programs: make(map[programKey]*program),
	}, nil
}

// Eval computes loss, gradients and metrics of one micro-batch. An error that is ErrNonFinite names the token.
func (o *Objective) Eval(in Inputs) (Result, error) {
	b, err := o.prepare(in)
	if err != nil {
		return Result{}, fmt.Errorf("grpo objective: %w", err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	out, err := o.run(b)
	if err != nil {
		return Result{}, fmt.Errorf("grpo objective: %w", err)
	}
	res := Result{
		Loss:         out.loss,
		DLogP:        narrow(out.dlogp),
		DEntropy:     narrow(out.dentropy),
		Metrics:      o.metrics(b, out),
		EntropySum:   b.entropySum,
		EntropyCount: b.entropyCount,
	}
	if t := notFinite(res.DLogP); t >= 0 {
		return Result{}, fmt.Errorf("grpo objective: gradient of %s is %v (log-probability %v, old %v): %w",
			b.where(t), res.DLogP[t], b.lane[laneLogP][t], b.lane[laneOld][t], ErrNonFinite)
	}
	if !finite(res.Loss) {
		return Result{}, fmt.Errorf("grpo objective: loss is %v: %w", res.Loss, ErrNonFinite)
	}
	return res, nil
}

// outcome is what the graphs give, summed over chunks.
type outcome struct {
	loss, policy    float64 // with and without the entropy bonus
	kl              float64 // sum over trained tokens
	dlogp, dentropy []float64
}

// maxChunk is the number of tokens that one graph takes at a time, unless a single row is longer. Larger graphs are
// slower: their intermediate values leave the cache.
const maxChunk = 1 << 14

// run evaluates b in chunks of whole rows.
func (o *Objective) run(b *batch) (outcome, error) {
	out := outcome{dlogp: make([]float64, b.tokens)}
	bonus := b.lane[laneEntropyWeight] != nil
	if bonus {
		out.dentropy = make([]float64, b.tokens)
	}
	for row := 0; row < len(b.rows); {
		end, tokens := row+1, b.rows[row]
		for end < len(b.rows) && tokens+b.rows[end] <= maxChunk {
			tokens += b.rows[end]
			end++
		}
		p, err := o.program(programKey{size: graphSize(tokens), bonus: bonus})
		if err != nil {
			return outcome{}, err
		}
		if err := p.run(b, row, end, &out); err != nil {
			return outcome{}, err
		}
		row = end
	}
	return out, nil
}

// graphSize is the smallest graph for a number of tokens: a power of two from 64.
func graphSize(tokens int) int {
	size := 64
	for size < tokens {
		size *= 2
	}
	return size
}

// program returns the compiled graph of a size.
func (o *Objective) program(key programKey) (*program, error) {
	if p := o.programs[key]; p != nil {
		return p, nil
	}
	p, err := o.compile(key)
	if err != nil {
		return nil, err
	}
	o.programs[key] = p
	return p, nil
}

// metrics are TRL's metrics of a micro-batch.
func (o *Objective) metrics(b *batch, out outcome) Metrics {
	m := Metrics{}
	if b.in.Sampling != nil && o.cfg.ImportanceSamplingCorrection {
		b.sampling.metrics(m)
	}
	if o.cfg.entropyBonus() {
		m["policy_loss"] = Metric{Sum, out.policy * b.accumulation(), 1}
	}
	if o.cfg.klInLoss() {
		m["kl"] = Metric{Mean, out.kl, b.own}
	}
	if b.in.Entropy != nil {
		sum := 0.0
		for t, e := range b.in.Entropy {
			if b.mask[t] {
				sum += float64(e)
			}
		}
		m["entropy"] = Metric{Mean, sum, b.own}
	}
	if o.family.metrics != nil {
		o.family.metrics(o, b, m)
	}
	return m
}

// narrow rounds to float32; nil stays nil.
func narrow(x []float64) []float32 {
	if x == nil {
		return nil
	}
	out := make([]float32, len(x))
	for i, v := range x {
		out[i] = float32(v)
	}
	return out
}

// logOrMinusInf is the logarithm of a bound, -Inf for bounds that no ratio can go below.
func logOrMinusInf(x float64) float64 {
	if x <= 0 {
		return math.Inf(-1)
	}
	return math.Log(x)
}
