package trainer

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/configs"
)

func readJSON(t *testing.T, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}

func checkSchedule(t *testing.T, name string, o configs.Optim, total int, want []float64) {
	t.Helper()
	lr, err := NewSchedule(o, total)
	if err != nil {
		t.Fatal(err)
	}
	for step, w := range want {
		if got := lr(step); math.Abs(got-w) > 1e-18 {
			t.Errorf("%s: step %d has %v, want %v", name, step, got, w)
		}
	}
}

// All schedules of transformers' get_scheduler, with their defaults.
func TestScheduleGolden(t *testing.T) {
	var golden struct {
		BaseLR           float64 `json:"base_lr"`
		NumTrainingSteps int     `json:"num_training_steps"`
		Schedules        map[string][]float64
	}
	readJSON(t, "testdata/lr_schedules.json", &golden)
	if len(golden.Schedules) != 16 {
		t.Fatalf("%d schedules", len(golden.Schedules))
	}
	for name, want := range golden.Schedules {
		i := strings.LastIndex(name, "_warmup")
		kind, warm := name[:i], float64(name[len(name)-1]-'0')
		o := configs.Optim{LearningRate: golden.BaseLR, LRSchedulerType: kind, WarmupSteps: warm}
		if kind == "cosine_with_min_lr" {
			low := 0.1
			o.LRSchedulerKwargs.MinLRRate = &low
		}
		checkSchedule(t, name, o, golden.NumTrainingSteps, want)
	}
}

// What lr_scheduler_kwargs change, against transformers' own functions.
func TestScheduleKwargs(t *testing.T) {
	var golden struct {
		BaseLR           float64 `json:"base_lr"`
		NumTrainingSteps int     `json:"num_training_steps"`
		Cases            []struct {
			Type        string
			WarmupSteps float64 `json:"warmup_steps"`
			Kwargs      struct {
				NumCycles      *float64 `json:"num_cycles"`
				Power          *float64
				LREnd          *float64 `json:"lr_end"`
				Timescale      *int
				MinLR          *float64 `json:"min_lr"`
				NumDecaySteps  *int     `json:"num_decay_steps"`
				NumStableSteps *int     `json:"num_stable_steps"`
				WarmupType     *string  `json:"warmup_type"`
				DecayType      *string  `json:"decay_type"`
				MinLRRatio     *float64 `json:"min_lr_ratio"`
			}
			LR []float64
		}
	}
	readJSON(t, "testdata/lr_schedules_kwargs.json", &golden)
	if len(golden.Cases) != 30 {
		t.Fatalf("%d cases", len(golden.Cases))
	}
	for _, c := range golden.Cases {
		k := c.Kwargs
		o := configs.Optim{LearningRate: golden.BaseLR, LRSchedulerType: c.Type, WarmupSteps: c.WarmupSteps}
		o.LRSchedulerKwargs = configs.LRSchedulerKwargs{
			NumCycles: k.NumCycles, Power: k.Power, LREnd: k.LREnd, Timescale: k.Timescale, MinLR: k.MinLR, NumDecaySteps: k.NumDecaySteps,
			NumStableSteps: k.NumStableSteps, WarmupType: k.WarmupType, DecayType: k.DecayType, MinLRRatio: k.MinLRRatio,
		}
		checkSchedule(t, c.Type, o, golden.NumTrainingSteps, c.LR)
	}
}

// A warm-up below 1 is a share of the run, rounded up; one of 1 is one step; constant ignores it.
func TestScheduleWarmup(t *testing.T) {
	for _, tt := range []struct {
		kind   string
		warmup float64
		steps  int // of the warm-up, of 21
	}{{"linear", 0.1, 3}, {"linear", 0, 0}, {"linear", 1, 1}, {"linear", 5, 5}, {"constant", 5, 0}, {"constant_with_warmup", 0.95, 20}} {
		lr, err := NewSchedule(configs.Optim{LearningRate: 1, LRSchedulerType: tt.kind, WarmupSteps: tt.warmup}, 21)
		if err != nil {
			t.Fatal(err)
		}
		for s := range tt.steps {
			if want := float64(s) / float64(tt.steps); lr(s) != want {
				t.Errorf("%s, warm-up %v: step %d has %v, want %v", tt.kind, tt.warmup, s, lr(s), want)
			}
		}
		if lr(tt.steps) != 1 {
			t.Errorf("%s, warm-up %v: step %d has %v, want 1", tt.kind, tt.warmup, tt.steps, lr(tt.steps))
		}
	}
}

func TestScheduleFaults(t *testing.T) {
	for _, o := range []configs.Optim{{LRSchedulerType: "nonsense"}, {LRSchedulerType: "warmup_stable_decay"}} {
		if _, err := NewSchedule(o, 10); err == nil {
			t.Errorf("%s: no error", o.LRSchedulerType)
		}
	}
	if _, err := NewSchedule(configs.Optim{LRSchedulerType: "linear"}, 0); err == nil {
		t.Error("no steps: no error")
	}
}
