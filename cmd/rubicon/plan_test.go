package main

import (
	"io"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/configs"
	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/policy"
)

// card is a device of which only the size is known.
type card struct {
	device.Device
	memory int64
	has    device.Footprint
}

func (c card) Info() device.Info           { return device.Info{Memory: c.memory} }
func (c card) Footprint() device.Footprint { return c.has }

func smolPlan() (policy.Config, policy.PlanOptions) {
	shape := policy.Config{Arch: "llama", Width: 576, Hidden: 1536, Layers: 30, Heads: 9, KVHeads: 3, HeadDim: 64, Vocab: 49152,
		MaxPositions: 8192, NormEps: 1e-5, Tied: true, DType: "bfloat16"}
	o := policy.PlanOptions{Update: true, KeepAll: true, Tokens: 16384, Scored: 8192, Samples: 64, Prompts: 8, Prompt: 512,
		LoRA: &policy.LoRAConfig{R: 16, Alpha: 32, TargetModules: []string{policy.AllLinear}}}
	o.Generate.MaxNewTokens = 512
	return shape, o
}

// A run that does not fit is refused with the settings that would help, the best first, and none that would not.
func TestNoMemory(t *testing.T) {
	shape, o := smolPlan()
	_, err := planMemory(shape, o, card{memory: 4e9, has: device.Footprint{ActBytes: 2, Dense: true}}, io.Discard)
	if err == nil {
		t.Fatal("a run of 6.5 GB fits into 4 GB")
	}
	at := -1
	for _, s := range []string{"the device has 4.00 GB", "gradient_checkpointing: true saves", "per_device_train_batch_size"} {
		next := strings.Index(err.Error(), s)
		if next < at {
			t.Errorf("%q is missing, or before what saves more, in: %v", s, err)
		}
		at = next
	}
	for _, s := range []string{"int8", "max_batch"} {
		if strings.Contains(err.Error(), s) {
			t.Errorf("%s saves nothing, or next to nothing, here: %v", s, err)
		}
	}
}

// Where the keys and values of all samples do not fit, the plan says so and the rest gets what it needs.
func TestPlanSaysThatSamplesWait(t *testing.T) {
	shape, o := smolPlan()
	o.KeepAll = false
	var all, some strings.Builder
	const need = 64*512 + 8*512 // tokens
	tokens, err := planMemory(shape, o, card{memory: 80e9}, &all)
	if err != nil || strings.Contains(all.String(), "wait") || tokens != need {
		t.Fatalf("%sroom for %d tokens, want %d (%v)", &all, tokens, need, err)
	}
	full, err := policy.MemoryPlan(shape, o)
	if err != nil {
		t.Fatal(err)
	}
	page := full.Cache / (need / 32)
	tokens, err = planMemory(shape, o, card{memory: full.Total() - 10*page + 1e8, has: device.Footprint{Fixed: 1e8}}, &some)
	if err != nil || !strings.Contains(some.String(), "wait") || !strings.Contains(some.String(), "device 100.0 MB") || tokens != need-320 {
		t.Errorf("%sroom for %d tokens, want %d (%v)", &some, tokens, need-320, err)
	}
}

// The plan is for the stage that takes most: eight prompts of ten tokens with one completion each, after two with four.
func TestPlanOfStages(t *testing.T) {
	c := configs.Default()
	one, alone := 1, "reinforce_pp"
	c.Optim.PerDeviceTrainBatchSize, c.GRPO.NumGenerations = 8, 4
	c.Optim.Stages = []configs.Stage{{FromStep: 3, NumGenerations: &one, Advantage: &alone}}
	c.Rollout.MaxCompletionLength = 100
	b, err := c.Batching(1)
	if err != nil {
		t.Fatal(err)
	}
	if o := grpoMemory(c, b, []grpo.Prompt{{Tokens: make([]int32, 10)}}, nil); o.Prompts != 8 || o.Samples != 8 || o.Tokens != 8*100+8*10 {
		t.Errorf("the plan has %d prompts, %d samples and %d tokens, want 8, 8 and 880", o.Prompts, o.Samples, o.Tokens)
	}
}
