package grpo

import (
	"fmt"
	"math"
)

// lane is one value per token that a graph takes.
type lane int

const (
	laneLogP          lane = iota
	laneDetached           // LogP again, as a constant
	laneOld                // LogP or Old
	laneRef                // Ref
	laneOwn                // 1 for trained tokens, else 0
	laneCoef               // minus the advantage, times every weight without a gradient
	laneFloor              // least ratio that counts
	laneCeiling            // largest ratio that counts
	laneTemperature        // SAPO's tau
	laneKLWeight           // weight of the KL term
	laneEntropy            // Entropy
	laneEntropyWeight      // weight of the entropy bonus; nil: no bonus
	numLanes
)

// batch is a checked micro-batch in float64, with everything that has no gradient computed. Tokens that are not trained
// on hold zeros in every lane: a masked NaN must not reach a graph, where 0*NaN is NaN.
type batch struct {
	in       *Inputs
	tokens   int // N
	rows     []int
	starts   []int  // first token of each row
	mask     []bool // [N]
	count    []float64
	own      float64   // trained tokens
	adv      []float64 // [N]
	weight   []float64 // [N] share of each token in the loss, without the advantage
	shift    []float64 // [N] or, at sequence level, [B]: log importance ratio
	sequence bool      // importance_sampling_level sequence
	perRow   bool      // one advantage and one ratio per row: metrics count rows, not tokens
	lane     [numLanes][]float64
	phi      Metric    // mean of VESPO's weights
	inverse  []float64 // [B] 1/max(1, trained tokens)

	sampling                 samplingRatio
	entropySum, entropyCount float64
}

// prepare checks in and computes what has no gradient.
func (o *Objective) prepare(in Inputs) (*batch, error) {
	in.GradAccum, in.StepsPerGen = max(in.GradAccum, 1), max(in.StepsPerGen, 1)
	b := &batch{in: &in, rows: in.Rows}
	if err := b.layOut(); err != nil {
		return nil, err
	}
	if err := o.require(b); err != nil {
		return nil, err
	}
	if err := b.fill(); err != nil {
		return nil, err
	}
	b.sequence = o.cfg.sequenceLevel()
	b.shift = b.logRatio()
	b.perRow = b.sequence && in.TokenAdvantages == nil
	if err := o.reduceWeights(b); err != nil {
		return nil, err
	}
	if o.cfg.klInLoss() {
		b.lane[laneKLWeight] = scaled(b.weight, o.cfg.Beta)
	}
	o.correctSampling(b)
	o.maskOffPolicy(b)
	if err := o.entropyWeights(b); err != nil {
		return nil, err
	}
	coef := b.weight // from here on it is the surrogate's alone
	for t := range coef {
		coef[t] *= -b.adv[t]
	}
	b.lane[laneCoef] = coef
	if o.family.weigh != nil {
		o.family.weigh(o, b)
	}
	return b, nil
}

// layOut checks lengths and finds the rows.
func (b *batch) layOut() error {
	for i, n := range b.rows {
		if n < 0 {
			return fmt.Errorf("row %d has %d tokens", i, n)
		}
		b.starts = append(b.starts, b.tokens)
		b.tokens += n
	}
	in, n := b.in, b.tokens
	for _, v := range []struct {
		name     string
		have     int
		optional bool
	}{
		{"LogP", len(in.LogP), false}, {"Old", len(in.Old), in.Old == nil}, {"Ref", len(in.Ref), in.Ref == nil},
		{"Sampling", len(in.Sampling), in.Sampling == nil}, {"Entropy", len(in.Entropy), in.Entropy == nil},
		{"Mask", len(in.Mask), in.Mask == nil}, {"TokenAdvantages", len(in.TokenAdvantages), in.TokenAdvantages == nil},
	} {
		if !v.optional && v.have != n {
			return fmt.Errorf("%s has %d values for %d tokens", v.name, v.have, n)
		}
	}
	if in.TokenAdvantages == nil && len(in.Advantages) != len(b.rows) {
		return fmt.Errorf("%d advantages for %d rows", len(in.Advantages), len(b.rows))
	}
	b.mask = in.Mask
	if b.mask == nil {
		b.mask = make([]bool, n)
		for t := range b.mask {
			b.mask[t] = true
		}
	}
	return nil
}

// require checks that what the configuration needs was given.
func (o *Objective) require(b *batch) error {
	if b.tokens == 0 {
		return nil
	}
	if o.cfg.klInLoss() && b.in.Ref == nil {
		return fmt.Errorf("grpo.beta is %v but Ref was not given", o.cfg.Beta)
	}
	if o.cfg.NeedsEntropy() && b.in.Entropy == nil {
		return fmt.Errorf("grpo.entropy_coef or grpo.top_entropy_quantile is set but Entropy was not given")
	}
	if b.in.Sampling != nil {
		return o.cfg.ValidateSampler()
	}
	return nil
}

// fill copies the inputs of trained tokens, which must be finite, and finds what each token's advantage is.
func (b *batch) fill() error {
	in := b.in
	sources := []struct {
		lane   lane
		name   string
		values []float32
	}{{laneLogP, "log-probability", in.LogP}, {laneOld, "old log-probability", in.Old},
		{laneRef, "reference log-probability", in.Ref}, {laneEntropy, "entropy", in.Entropy}}
	for _, s := range sources {
		if s.values == nil {
			continue
		}
		out := make([]float64, b.tokens)
		for t, own := range b.mask {
			if own {
				out[t] = float64(s.values[t])
			}
		}
		if t := notFinite(out); t >= 0 {
			return fmt.Errorf("%s of %s is %v: %w", s.name, b.where(t), out[t], ErrNonFinite)
		}
		b.lane[s.lane] = out
	}
	if in.Old == nil {
		b.lane[laneOld] = b.lane[laneLogP]
	}
	b.lane[laneDetached] = b.lane[laneLogP]
	b.lane[laneOwn] = make([]float64, b.tokens)
	b.adv = make([]float64, b.tokens)
	for i, start := range b.starts {
		n := 0.0
		for t := start; t < start+b.rows[i]; t++ {
			if !b.mask[t] {
				continue
			}
			n++
			b.lane[laneOwn][t] = 1
			if in.TokenAdvantages != nil {
				b.adv[t] = in.TokenAdvantages[t]
			} else {
				b.adv[t] = in.Advantages[i]
			}
		}
		b.count = append(b.count, n)
		b.inverse = append(b.inverse, 1/math.Max(n, 1))
		b.own += n
	}
	if t := notFinite(b.adv); t >= 0 {
		return fmt.Errorf("advantage of %s is %v: %w", b.where(t), b.adv[t], ErrNonFinite)
	}
	return nil
}

// notFinite is the first place where x is NaN or infinite; -1: none.
func notFinite[T float32 | float64](x []T) int {
	for i, v := range x {
		if v-v != 0 {
			return i
		}
	}
	return -1
}

// where names token t for an error.
func (b *batch) where(t int) string {
	row := 0
	for row+1 < len(b.starts) && b.starts[row+1] <= t {
		row++
	}
	return fmt.Sprintf("token %d of row %d", t-b.starts[row], row)
}

// accumulation is the number of micro-steps that the loss is divided by.
func (b *batch) accumulation() float64 {
	if b.in.Eval {
		return 1
	}
	return float64(b.in.GradAccum)
}

// scaled is x times k.
func scaled(x []float64, k float64) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = v * k
	}
	return out
}
