package grpo

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
)

var nan = math.NaN()

// group makes a group with one reward function; tokens 1, 2, 3, ... per completion.
func group(rewards ...float64) Group {
	g := Group{Prompt: &Prompt{}}
	for i, r := range rewards {
		g.Completions = append(g.Completions, &Completion{Tokens: make([]int32, i+1), Rewards: []float64{r}})
	}
	return g
}

func advantagesOf(groups ...Group) (out []float64) {
	for _, g := range groups {
		for _, c := range g.Completions {
			out = append(out, c.Advantage)
		}
	}
	return out
}

func near(a, b []float64, tol float64) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool { return math.Abs(x-y) <= tol })
}

var one = []Column{{"r", 1}}

// Worked by hand.
func TestAdvantagesByHand(t *testing.T) {
	// Rewards weighted by tokens 1, 2, 3: of (0, 1, 1): mean 5/6; squares 25/36 + 5/36 = 30/36; variance 30/36/5 = 1/6.
	whitened := []float64{-5.0 / 6 / math.Sqrt(1.0/6+1e-8), 1.0 / 6 / math.Sqrt(1.0/6+1e-8), 1.0 / 6 / math.Sqrt(1.0/6+1e-8)}
	// Minus the group mean 2/3: (-2/3, 1/3, 1/3), the same but for a shift, which whitening removes.
	for _, c := range []struct {
		name   string
		cfg    func(*Config)
		groups []Group
		want   []float64
	}{
		{"rloo", func(c *Config) { c.Advantage = "rloo" }, []Group{group(1, 2, 6)}, []float64{1 - 4, 2 - 3.5, 6 - 1.5}},
		{"rloo unscorable", func(c *Config) { c.Advantage = "rloo" }, []Group{group(1, nan, 6), group(nan, 3)}, []float64{-5, 0, 5, 0, 0}},
		{"reinforce_pp", func(c *Config) { c.Advantage = "reinforce_pp" }, []Group{group(0, 1, 1)}, whitened},
		{"reinforce_pp unscorable", func(c *Config) { c.Advantage = "reinforce_pp" }, []Group{group(0, 1, 1, nan)}, append(slices.Clone(whitened), 0)},
		{"reinforce_pp_baseline", func(c *Config) { c.Advantage = "reinforce_pp_baseline" }, []Group{group(0, 1, 1)}, whitened},
		{"reinforce_pp across groups", func(c *Config) { c.Advantage = "reinforce_pp" }, []Group{group(3, 3), group(5, 5)},
			[]float64{-1 / math.Sqrt(1.2), -1 / math.Sqrt(1.2), 1 / math.Sqrt(1.2), 1 / math.Sqrt(1.2)}}, // 3+3 tokens: variance 6/5
		{"baseline removes the group", func(c *Config) { c.Advantage = "reinforce_pp_baseline" }, []Group{group(3, 3), group(5, 5)}, make([]float64, 4)},
	} {
		if _, err := Advantages(with(c.cfg), one, c.groups); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if got := advantagesOf(c.groups...); !near(got, c.want, 1e-7) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// Truncated completions that lose their loss do not weigh in the whitening.
func TestWhiteningCountsLossTokens(t *testing.T) {
	g := group(0, 1, 1, 100)
	g.Completions[3].Truncated = true
	cfg := with(func(c *Config) { c.Advantage, c.MaskTruncatedCompletions = "reinforce_pp", true })
	if _, err := Advantages(cfg, one, []Group{g}); err != nil {
		t.Fatal(err)
	}
	if got := advantagesOf(g)[:3]; !near(got, []float64{-2.0412414, 0.4082483, 0.4082483}, 1e-6) { // sqrt(6)*(-5, 1, 1)/6
		t.Error(got)
	}
}

// Equal rewards give exactly 0, also where their mean is not exact in binary; what is in a group of its own or
// unscorable gets 0 too.
func TestEqualRewardsGiveExactlyZero(t *testing.T) {
	for _, advantage := range []string{"group", "rloo", "reinforce_pp", "reinforce_pp_baseline"} {
		for _, scale := range []string{"group", "batch", "none"} {
			for _, aggregation := range []string{"sum_then_normalize", "normalize_then_sum"} {
				cfg := with(func(c *Config) {
					c.Advantage, c.ScaleRewards, c.MultiObjectiveAggregation = advantage, scale, aggregation
				})
				equal := []Group{group(0.1, 0.1, 0.1), group(0.7, nan, 0.7), group(0.3), group(nan, nan)}
				groups := append([]Group{group(0.1, 1.7, 3), group(0.3, 0.35, 0.21, 0.9)}, equal...)
				if advantage == "reinforce_pp" {
					groups = []Group{group(0.7, 0.7), group(0.7, nan), group(0.7, 0.7, 0.7)} // the baseline is the batch
					equal = groups
				}
				if _, err := Advantages(cfg, one, groups); err != nil {
					t.Fatal(err)
				}
				for _, a := range advantagesOf(equal...) {
					if a != 0 {
						t.Errorf("%s %s %s: %v", advantage, scale, aggregation, advantagesOf(groups...))
						break
					}
				}
			}
		}
	}
}

// Neither does the reported spread of equal rewards show the rounding of their mean.
func TestEqualRewardsHaveNoSpread(t *testing.T) {
	m, err := Advantages(Default(), one, []Group{group(0.1, 0.1, 0.1)})
	if v := m.Values(); err != nil || v["reward"] != 0.1 || v["reward_std"] != 0 || v["rewards/r/std"] != 0 {
		t.Error(v, err)
	}
}

// The share of groups without spread, in rows: 2 + 1 of 8; a group in which one of two could be scored is not counted.
func TestZeroSpreadShare(t *testing.T) {
	for _, advantage := range []string{"group", "rloo", "reinforce_pp", "reinforce_pp_baseline"} {
		m, err := Advantages(with(func(c *Config) { c.Advantage = advantage }), one, []Group{group(0.1, 0.1), group(4), group(1, 2, 2), group(1, nan)})
		if got := m.Values()["frac_reward_zero_std"]; err != nil || got != 3.0/8 {
			t.Errorf("%s: %v, %v", advantage, got, err)
		}
	}
}

func TestAdvantagesRefuse(t *testing.T) {
	g := group(1, math.Inf(1))
	if _, err := Advantages(Default(), one, []Group{g}); err == nil || !strings.Contains(err.Error(), "reward r of completion 1 of prompt 0 is +Inf") {
		t.Error(err)
	}
	if _, err := Advantages(Default(), append(one, one...), []Group{group(1)}); err == nil || !strings.Contains(err.Error(), "1 rewards for 2 reward functions") {
		t.Error(err)
	}
	if m, err := Advantages(Default(), one, nil); err != nil || !math.IsNaN(m.Values()["reward"]) {
		t.Errorf("no groups: %v, %v", m, err)
	}
}

// Shaping adds columns; rows that nothing could score stay unscorable, and the input slices are not written to.
func TestShape(t *testing.T) {
	cfg := with(func(c *Config) {
		c.SoftPunishCache, c.MaxCompletionLength = 2, 4
		c.Beta, c.KLInReward, c.KLEstimator = 0.5, true, "k1"
	})
	g := group(1, 1, 1, nan, 1)
	given := g.Completions[0].Rewards
	for i, c := range g.Completions {
		for k := range c.Tokens {
			c.LogP = append(c.LogP, -1)
			c.Ref = append(c.Ref, float32(-1-k-i))
		}
	}
	g.Completions[1].Mask = []bool{true, false}
	g.Completions[2].Old = []float32{-2, -2, -2}
	columns, err := Shape(cfg, one, []Group{g})
	if err != nil {
		t.Fatal(err)
	}
	if len(columns) != 3 || columns[1] != (Column{OverlongColumn, 1}) || columns[2] != (Column{KLColumn, 1}) {
		t.Errorf("columns %v", columns)
	}
	// logp - ref = k + i at token k of completion i; 1 less with Old; the second token of completion 1 is not the policy's.
	want := [][]float64{{1, 0, 0}, {1, 0, -0.5}, {1, -0.5, -0.5 * (1 + 2 + 3)}, {nan, nan, nan}, {1, -1, -0.5 * (4 + 5 + 6 + 7 + 8)}}
	for i, c := range g.Completions {
		for k, w := range want[i] {
			if got := c.Rewards[k]; got != w && !(math.IsNaN(got) && math.IsNaN(w)) {
				t.Errorf("completion %d: rewards %v, want %v", i, c.Rewards, want[i])
				break
			}
		}
	}
	if !g.Completions[3].Unscorable() || len(given) != 1 {
		t.Error("shaping changes what cannot be scored, or its input")
	}
	if _, err := Advantages(cfg, columns, []Group{g}); err != nil || g.Completions[2].Reward != 1-0.5-3 {
		t.Errorf("reward %v, %v", g.Completions[2].Reward, err)
	}
}

func TestShapeRefuses(t *testing.T) {
	cfg := with(func(c *Config) { c.Beta, c.KLInReward = 0.5, true })
	g := group(1)
	if _, err := Shape(cfg, one, []Group{g}); err == nil || !strings.Contains(err.Error(), "completion 0 of prompt 0: grpo.kl_in_reward needs") {
		t.Error(err)
	}
	g.Completions[0].LogP, g.Completions[0].Ref = []float32{float32(nan)}, []float32{0}
	if _, err := Shape(cfg, one, []Group{g}); !errors.Is(err, ErrNonFinite) {
		t.Error(err)
	}
}

// k1, k2 and k3 outside of the graph, and their bound of 20 nats, by hand.
func TestKLValue(t *testing.T) {
	for _, c := range []struct {
		kind klKind
		d    float64
		want float64
	}{
		{klK1, -0.5, -0.5}, {klK2, -0.5, 0.125}, {klK3, -0.5, math.Exp(0.5) - 1.5}, {klK3, 0, 0},
		{klK1, 30, 20}, {klK2, -30, 200}, {klK3, -30, math.Exp(20) - 21},
	} {
		if got := klValue(c.kind, c.d); math.Abs(got-c.want) > 1e-12*math.Abs(c.want) {
			t.Errorf("k%d of %v is %v, want %v", c.kind, c.d, got, c.want)
		}
	}
}

func TestDynamicSampling(t *testing.T) {
	signal, err := HasSignal([]Column{{"a", 1}, {"b", 2}}, []Group{
		two([2]float64{1, 0}, [2]float64{1, 0}), two([2]float64{1, 0}, [2]float64{1, 1}),
		two([2]float64{2, 0}, [2]float64{0, 1}), // the same sum
		two([2]float64{1, nan}, [2]float64{nan, nan}), {Prompt: &Prompt{}},
	})
	if err != nil || !slices.Equal(signal, []bool{false, true, false, false, false}) {
		t.Error(signal, err)
	}
	cfg := with(func(c *Config) { c.DynamicSampling, c.MaxNumGenBatches = true, 3 })
	if !DrawAgain(cfg, 1, 2, 1) || DrawAgain(cfg, 2, 2, 1) || DrawAgain(cfg, 0, 2, 3) || DrawAgain(Default(), 0, 2, 1) {
		t.Error("draws")
	}
}

func two(rewards ...[2]float64) Group {
	g := Group{Prompt: &Prompt{}}
	for _, r := range rewards {
		g.Completions = append(g.Completions, &Completion{Rewards: r[:]})
	}
	return g
}
