package grpo

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// readGolden decodes a file of TRL's numbers.
func readGolden(t testing.TB, name string, into any) {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "golden", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(name, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	if err := json.NewDecoder(r).Decode(into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// number is a float that TRL writes as null (NaN) or "inf" where JSON has no number.
type number float64

func (n *number) UnmarshalJSON(data []byte) error {
	switch string(data) {
	case "null":
		*n = number(math.NaN())
		return nil
	case `"inf"`:
		*n = number(math.Inf(1))
		return nil
	}
	return json.Unmarshal(data, (*float64)(n))
}

type lossGolden struct {
	InputSets map[string]*inputSet `json:"input_sets"`
	Cases     []*lossCase
}

type inputSet struct {
	LogP       [][]number `json:"per_token_logps"`
	Old        [][]number `json:"old_per_token_logps"`
	Ref        [][]number `json:"ref_per_token_logps"`
	Sampling   [][]number `json:"sampling_per_token_logps"`
	Entropy    [][]number `json:"entropies"`
	Mask       [][]int    `json:"completion_mask"`
	ToolMask   [][]int    `json:"tool_mask"`
	Advantages []float64
}

type lossCase struct {
	Name     string
	InputSet string `json:"input_set"`
	Mode     string
	UseOld   bool    `json:"use_old_logps"`
	UseTool  bool    `json:"use_tool_mask"`
	UseVLLM  bool    `json:"use_vllm"`
	NumItems float64 `json:"num_items_in_batch"`
	LastEnt  *number `json:"last_world_entropy"`
	Config   struct {
		LossType   string `json:"loss_type"`
		Level      string `json:"importance_sampling_level"`
		Epsilon    float64
		EpsHigh    *float64 `json:"epsilon_high"`
		Delta      *float64
		Beta       float64
		BiasKL     bool     `json:"use_bias_correction_kl"`
		TopEntropy float64  `json:"top_entropy_quantile"`
		Coef       float64  `json:"entropy_coef"`
		Adaptive   bool     `json:"use_adaptive_entropy"`
		Target     float64  `json:"entropy_target"`
		CoefDelta  float64  `json:"entropy_coef_delta"`
		CoefMin    float64  `json:"entropy_coef_min"`
		CoefMax    float64  `json:"entropy_coef_max"`
		OffPolicy  *float64 `json:"off_policy_mask_threshold"`
		GradAccum  int      `json:"gradient_accumulation_steps"`
		Steps      int      `json:"steps_per_generation"`
		MaxLength  int      `json:"max_completion_length"`
		SAPOPos    float64  `json:"sapo_temperature_pos"`
		SAPONeg    float64  `json:"sapo_temperature_neg"`
		KPos       float64  `json:"vespo_k_pos"`
		LambdaPos  float64  `json:"vespo_lambda_pos"`
		KNeg       float64  `json:"vespo_k_neg"`
		LambdaNeg  float64  `json:"vespo_lambda_neg"`
		ISCorrect  bool     `json:"vllm_importance_sampling_correction"`
		ISMode     string   `json:"vllm_importance_sampling_mode"`
		ISMax      *float64 `json:"vllm_importance_sampling_clip_max"`
		ISMin      *float64 `json:"vllm_importance_sampling_clip_min"`
	}
	SamplingMetrics map[string]float64 `json:"sampling_metrics"`
	Expected        struct {
		Loss      float64
		DLogP     [][]float64 `json:"grad_per_token_logps"`
		DEntropy  [][]float64 `json:"grad_entropies"`
		Metrics   map[string]float64
		CoefAfter float64 `json:"entropy_coef_after"`
	}
}

func (c *lossCase) config() Config {
	g, cfg := c.Config, Default()
	cfg.LossType, cfg.ImportanceSamplingLevel = g.LossType, g.Level
	cfg.Epsilon, cfg.EpsilonHigh, cfg.Delta = g.Epsilon, g.EpsHigh, g.Delta
	cfg.Beta, cfg.UseBiasCorrectionKL = g.Beta, g.BiasKL
	cfg.TopEntropyQuantile, cfg.EntropyCoef, cfg.UseAdaptiveEntropy = g.TopEntropy, g.Coef, g.Adaptive
	cfg.EntropyTarget, cfg.EntropyCoefDelta = g.Target, g.CoefDelta
	cfg.EntropyCoefMin, cfg.EntropyCoefMax = g.CoefMin, g.CoefMax
	cfg.OffPolicyMaskThreshold, cfg.MaxCompletionLength = g.OffPolicy, g.MaxLength
	cfg.SAPOTemperaturePos, cfg.SAPOTemperatureNeg = g.SAPOPos, g.SAPONeg
	cfg.VESPOKPos, cfg.VESPOLambdaPos, cfg.VESPOKNeg, cfg.VESPOLambdaNeg = g.KPos, g.LambdaPos, g.KNeg, g.LambdaNeg
	cfg.ImportanceSamplingCorrection, cfg.ImportanceSamplingMode = g.ISCorrect, g.ISMode
	cfg.ImportanceSamplingClipMax, cfg.ImportanceSamplingClipMin = g.ISMax, g.ISMin
	return cfg
}

// control is the entropy controller as it stands before the case.
func (c *lossCase) control(cfg Config) EntropyControl {
	ctrl := NewEntropyControl(cfg)
	if c.LastEnt != nil {
		ctrl.last = float64(*c.LastEnt)
	}
	return ctrl
}

// inputs lays the case out flat. padded keeps TRL's padding as tokens outside of the mask, with values that would ruin
// everything if they were read; otherwise padding is left out. at maps token to (row, column).
func (c *lossCase) inputs(s *inputSet, cfg Config, padded bool) (in Inputs, at [][2]int) {
	ctrl := c.control(cfg)
	in = Inputs{Advantages: s.Advantages, NumItems: c.NumItems, GradAccum: c.Config.GradAccum, StepsPerGen: c.Config.Steps,
		Eval: c.Mode == "eval", EntropyCoef: ctrl.Coef()}
	for i, row := range s.Mask {
		n := 0
		for j, m := range row {
			if m == 0 && !padded {
				continue
			}
			own := m == 1 && (!c.UseTool || s.ToolMask[i][j] == 1)
			value := func(x [][]number) float32 {
				if !own {
					return float32(math.NaN())
				}
				return float32(x[i][j])
			}
			n++
			at = append(at, [2]int{i, j})
			in.Mask = append(in.Mask, own)
			in.LogP = append(in.LogP, value(s.LogP))
			in.Entropy = append(in.Entropy, value(s.Entropy))
			if c.UseOld {
				in.Old = append(in.Old, value(s.Old))
			}
			if cfg.NeedsReference() {
				in.Ref = append(in.Ref, value(s.Ref))
			}
			if c.UseVLLM {
				in.Sampling = append(in.Sampling, value(s.Sampling))
			}
		}
		in.Rows = append(in.Rows, n)
	}
	return in, at
}

// relative is |a-b| / max(1, |b|).
func relative(a, b float64) float64 { return math.Abs(a-b) / math.Max(1, math.Abs(b)) }

func TestLossGolden(t *testing.T) {
	var g lossGolden
	readGolden(t, "loss_cases.json.gz", &g)
	worstLoss, worstGrad, worstMetric := 0.0, 0.0, 0.0
	for _, c := range g.Cases {
		for _, padded := range []bool{false, true} {
			cfg := c.config()
			o, err := NewObjective(cfg)
			if err != nil {
				t.Fatalf("%s: %v", c.Name, err)
			}
			in, at := c.inputs(g.InputSets[c.InputSet], cfg, padded)
			res, err := o.Eval(in)
			if err != nil {
				t.Errorf("%s: %v", c.Name, err)
				continue
			}
			loss := relative(res.Loss, c.Expected.Loss)
			grad := worstOf(res.DLogP, c.Expected.DLogP, at)
			if c.Expected.DEntropy != nil {
				grad = math.Max(grad, worstOf(res.DEntropy, c.Expected.DEntropy, at))
			}
			metric := c.compareMetrics(t, cfg, res)
			if loss > 1e-5 || grad > 1e-5 || metric > 1e-5 {
				t.Errorf("%s (padded %v): loss %.9g, want %.9g; relative errors: loss %.2g, gradient %.2g, metrics %.2g",
					c.Name, padded, res.Loss, c.Expected.Loss, loss, grad, metric)
			}
			worstLoss, worstGrad, worstMetric = math.Max(worstLoss, loss), math.Max(worstGrad, grad), math.Max(worstMetric, metric)
		}
	}
	t.Logf("%d cases: worst relative error of the loss %.2g, gradients %.2g, metrics %.2g", len(g.Cases), worstLoss, worstGrad, worstMetric)
	if len(g.Cases) < 72 {
		t.Errorf("%d cases, the file has 72", len(g.Cases))
	}
}

// worstOf compares a flat gradient with a padded one; nil is all zeros.
func worstOf(flat []float32, padded [][]float64, at [][2]int) float64 {
	worst, largest, seen := 0.0, 1.0, map[[2]int]bool{}
	for k, p := range at {
		have := 0.0
		if flat != nil {
			have = float64(flat[k])
		}
		want := padded[p[0]][p[1]]
		largest = math.Max(largest, math.Abs(want))
		worst = math.Max(worst, math.Abs(have-want))
		seen[p] = true
	}
	for i, row := range padded {
		for j, want := range row {
			if !seen[[2]int{i, j}] {
				worst = math.Max(worst, math.Abs(want)) // padding has no gradient
			}
		}
	}
	return worst / largest
}

// compareMetrics checks that exactly TRL's metrics come out, those of the entropy controller and the sampler included.
func (c *lossCase) compareMetrics(t *testing.T, cfg Config, res Result) (worst float64) {
	ctrl := c.control(cfg)
	ctrl.Add(res)
	ctrl.Step(ctrl.Window())
	have := res.Metrics.Values()
	for name, v := range ctrl.Metrics().Values() {
		have[name] = v
	}
	want := map[string]float64{}
	for name, v := range c.Expected.Metrics {
		want[name] = v
	}
	for name, v := range c.SamplingMetrics {
		want[name] = v
	}
	if cfg.entropyBonus() {
		worst = relative(ctrl.coef, c.Expected.CoefAfter)
	}
	for name, v := range have {
		if _, ok := want[name]; !ok {
			t.Errorf("%s: metric %s = %v, which TRL does not log", c.Name, name, v)
		}
	}
	for name, v := range want {
		got, ok := have[name]
		if !ok {
			t.Errorf("%s: metric %s is missing", c.Name, name)
		}
		worst = math.Max(worst, relative(got, v))
	}
	return worst
}
