package grpo

import (
	"fmt"
	"math"
)

// Column is one reward function: a name for the metrics and its weight in the sum.
type Column struct {
	Name   string
	Weight float64
}

const (
	stdFloor   = 1e-4 // added to a standard deviation before dividing (TRL)
	whitenEps  = 1e-8 // added to the variance of whitened rewards (verl, OpenRLHF)
	zeroStdTol = 1e-8 // a standard deviation up to this counts as zero in frac_reward_zero_std
)

// Advantages sets Reward and Advantage of every completion from its Rewards, one per column, and returns the reward
// metrics. A completion that no function could score gets advantage 0 and is in no statistic; a group whose rewards are
// all equal gets exactly 0 (with advantage reinforce_pp, whose baseline is the batch: a batch whose rewards are).
// With dynamic sampling call it for all sampled groups to log, and again for the kept ones to train.
func Advantages(cfg Config, columns []Column, groups []Group) (Metrics, error) {
	t, err := newTable(columns, groups)
	if err != nil {
		return nil, err
	}
	var zero []bool
	switch cfg.Advantage {
	case "group":
		if cfg.MultiObjectiveAggregation == "normalize_then_sum" {
			zero = t.normalizeThenSum()
		} else {
			zero = t.sumThenNormalize(cfg.scale())
		}
	case "rloo":
		zero = t.leaveOneOut()
	case "reinforce_pp", "reinforce_pp_baseline":
		zero = t.whiten(cfg)
	default:
		return nil, fmt.Errorf("grpo.advantage: %q is not known", cfg.Advantage)
	}
	for i, c := range t.rows {
		if math.IsNaN(c.Advantage) {
			c.Advantage = 0
		}
		c.Reward = t.total[i]
	}
	return t.metrics(zero), nil
}

// table is the rewards of a batch, rows in the order of groups.
type table struct {
	columns []Column
	rows    []*Completion
	spans   [][2]int  // rows of each group
	total   []float64 // weighted sum per row; NaN: unscorable
}

func newTable(columns []Column, groups []Group) (*table, error) {
	t := &table{columns: columns}
	for p, g := range groups {
		start := len(t.rows)
		for i, c := range g.Completions {
			if len(c.Rewards) != len(columns) {
				return nil, fmt.Errorf("completion %d of prompt %d has %d rewards for %d reward functions", i, p, len(c.Rewards), len(columns))
			}
			for k, r := range c.Rewards {
				if math.IsInf(r, 0) {
					return nil, fmt.Errorf("reward %s of completion %d of prompt %d is %v; return a finite number, or mark it unscorable",
						columns[k].Name, i, p, r)
				}
			}
			t.rows = append(t.rows, c)
			t.total = append(t.total, weightedSum(columns, c))
		}
		t.spans = append(t.spans, [2]int{start, len(t.rows)})
	}
	return t, nil
}

// weightedSum is the reward of c over the functions that could score it; NaN if none could.
func weightedSum(columns []Column, c *Completion) float64 {
	if c.Unscorable() {
		return math.NaN()
	}
	sum := 0.0
	for k, r := range c.Rewards {
		if !math.IsNaN(r) {
			sum += columns[k].Weight * r
		}
	}
	return sum
}

// column is one function's values, NaN where it could not score.
func (t *table) column(k int) []float64 {
	out := make([]float64, len(t.rows))
	for i, c := range t.rows {
		out[i] = c.Rewards[k]
	}
	return out
}

// groupZero marks the rows of groups without spread. A group of one completion has none; a larger group in which fewer
// than two could be scored has an unknown spread and is not marked.
func (t *table) groupZero() []bool {
	zero := make([]bool, len(t.rows))
	for _, s := range t.spans {
		sum := summarise(t.total[s[0]:s[1]])
		flat := s[1]-s[0] == 1 || sum.std <= zeroStdTol
		for i := s[0]; i < s[1]; i++ {
			zero[i] = flat
		}
	}
	return zero
}

// allZero marks every row if the spread over the whole batch is zero.
func allZero(n int, s summary) []bool {
	zero := make([]bool, n)
	for i := range zero {
		zero[i] = n == 1 || s.std <= zeroStdTol
	}
	return zero
}

// sumThenNormalize is TRL's default: A = (R - mean_group) / (std + 1e-4).
func (t *table) sumThenNormalize(scale string) []bool {
	batch := summarise(t.total)
	for _, s := range t.spans {
		group := summarise(t.total[s[0]:s[1]])
		divisor := 1.0
		switch scale {
		case "group":
			divisor = group.std + stdFloor
		case "batch":
			divisor = batch.std + stdFloor
		}
		for i := s[0]; i < s[1]; i++ {
			t.rows[i].Advantage = (t.total[i] - group.mean) / divisor // the mean of equal rewards is exact: 0
		}
	}
	if scale == "batch" {
		return allZero(len(t.rows), batch)
	}
	return t.groupZero()
}

// normalizeThenSum is GDPO (arXiv:2601.05242): each function is normalised in its group, the weighted sum of these in
// the batch.
func (t *table) normalizeThenSum() []bool {
	sum := make([]float64, len(t.rows))
	signal := make([]bool, len(t.rows)) // the row's group has spread in some function
	for k, col := range t.columns {
		values := t.column(k)
		for _, s := range t.spans {
			group := summarise(values[s[0]:s[1]])
			for i := s[0]; i < s[1] && !group.equal(); i++ {
				signal[i] = true
				if z := (values[i] - group.mean) / (group.std + stdFloor); !math.IsNaN(z) {
					sum[i] += col.Weight * z
				}
			}
		}
	}
	for i, c := range t.rows {
		if c.Unscorable() {
			sum[i] = math.NaN()
		}
	}
	batch := summarise(sum)
	for i, c := range t.rows {
		c.Advantage = 0
		if signal[i] && !batch.equal() {
			c.Advantage = (sum[i] - batch.mean) / (batch.std + stdFloor)
		}
	}
	return allZero(len(t.rows), batch)
}

// leaveOneOut is RLOO (arXiv:2402.14740): A_i = r_i - mean of the others.
func (t *table) leaveOneOut() []bool {
	for _, s := range t.spans {
		group := summarise(t.total[s[0]:s[1]])
		sum := group.mean * float64(group.n)
		for i := s[0]; i < s[1]; i++ {
			t.rows[i].Advantage = 0
			if r := t.total[i]; !group.equal() {
				t.rows[i].Advantage = r - (sum-r)/float64(group.n-1)
			}
		}
	}
	return t.groupZero()
}

// whiten is REINFORCE++ (arXiv:2501.03262) with discount 1 and the reward at the last token: rewards, or their
// differences from the group mean, are whitened over the loss tokens of the batch.
func (t *table) whiten(cfg Config) []bool {
	baseline := cfg.Advantage == "reinforce_pp_baseline"
	value := make([]float64, len(t.rows))
	flat := make([]bool, len(t.rows))
	for _, s := range t.spans {
		group := summarise(t.total[s[0]:s[1]])
		for i := s[0]; i < s[1]; i++ {
			value[i] = t.total[i]
			if baseline {
				value[i] -= group.mean
				flat[i] = group.equal()
				if flat[i] && !math.IsNaN(t.total[i]) {
					value[i] = 0
				}
			}
		}
	}
	weight := make([]float64, len(t.rows))
	for i, c := range t.rows {
		weight[i] = float64(lossTokens(cfg, c))
	}
	mean, variance := weightedMoments(value, weight)
	equal := summarise(value).equal()
	for i, c := range t.rows {
		c.Advantage = 0
		if !flat[i] && !equal {
			c.Advantage = (value[i] - mean) / math.Sqrt(variance+whitenEps)
		}
	}
	return t.groupZero()
}

// weightedMoments are mean and variance of values that each occur weight times (Bessel's n/(n-1) over occurrences).
func weightedMoments(values, weight []float64) (mean, variance float64) {
	n, sum := 0.0, 0.0
	for i, v := range values {
		if !math.IsNaN(v) {
			n += weight[i]
			sum += weight[i] * v
		}
	}
	mean = sum / n
	squares := 0.0
	for i, v := range values {
		if !math.IsNaN(v) {
			squares += weight[i] * (v - mean) * (v - mean)
		}
	}
	return mean, squares / (n - 1)
}

// metrics are TRL's reward metrics; zero marks the rows without spread.
func (t *table) metrics(zero []bool) Metrics {
	m := Metrics{}
	for k, col := range t.columns {
		s := summarise(t.column(k))
		m.set("rewards/"+col.Name+"/mean", s.mean)
		m.set("rewards/"+col.Name+"/std", s.std)
	}
	s := summarise(t.total)
	m.set("reward", s.mean)
	m.set("reward_std", s.std)
	count := 0.0
	for _, z := range zero {
		if z {
			count++
		}
	}
	m["frac_reward_zero_std"] = Metric{Mean, count, float64(len(zero))}
	return m
}
