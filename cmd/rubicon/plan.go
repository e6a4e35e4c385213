package main

import (
	"fmt"
	"io"

	"github.com/rubicon-rl/rubicon/configs"
	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/policy"
	"github.com/rubicon-rl/rubicon/trainer"
)

// grpoMemory describes a GRPO run to the memory plan.
func grpoMemory(c *configs.Config, b grpo.Batching, prompts, heldOut []grpo.Prompt) policy.PlanOptions {
	longest := 0
	for _, set := range [][]grpo.Prompt{prompts, heldOut} {
		for i := range set {
			longest = max(longest, len(set[i].Tokens))
		}
	}
	o := commonMemory(c)
	o.Scored = b.PerDevice * c.Rollout.MaxCompletionLength
	o.Tokens = o.Scored + min(b.PerDevice, b.Prompts)*longest
	copied := c.Model.Trainable == "full" || c.Model.Adapter != "" && c.GRPO.Reference == "initial"
	if c.GRPO.NeedsReference() && copied {
		o.Frozen = 1
	}
	o.Generate = policy.GenerateOptions{MaxBatch: c.Rollout.MaxBatch, KVTokens: c.Rollout.KVTokens}
	o.Generate.MaxNewTokens = max(c.Rollout.MaxCompletionLength, c.Eval.MaxCompletionLength)
	o.Samples = max(b.GenerationBatch, len(heldOut)*c.Eval.NumGenerationsEval)
	o.Prompts, o.Prompt = max(b.Prompts, len(heldOut)), longest
	return o
}

// sftMemory describes a supervised run to the memory plan.
func sftMemory(c *configs.Config, examples []trainer.Example) policy.PlanOptions {
	longest := 0
	for _, e := range examples {
		longest = max(longest, len(e.Tokens))
	}
	if c.Data.Packing {
		longest = max(longest, c.Data.MaxLength)
	}
	o := commonMemory(c)
	o.Tokens = max(1, c.Optim.PerDeviceTrainBatchSize) * longest
	o.Scored = o.Tokens
	return o
}

func commonMemory(c *configs.Config) policy.PlanOptions {
	o := policy.PlanOptions{
		LoadOptions: policy.LoadOptions{DType: c.Model.WeightDType(), Train: c.Model.Trainable},
		Update:      true, KeepAll: !c.Model.GradientCheckpointing,
	}
	if c.Model.Trainable == "lora" {
		l := loraConfig(c.LoRA)
		o.LoRA = &l
	}
	return o
}

// planMemory prints what a run takes on the device and refuses what cannot fit.
func planMemory(shape policy.Config, o policy.PlanOptions, dev device.Device, w io.Writer) error {
	p, err := policy.MemoryPlan(shape, o)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "memory     %s: weights %s, trained %s, activations %s, sampling %s\n", size(p.Total()),
		size(p.Weights), size(p.Adapters+p.Gradients+p.Optimizer), size(p.Activations), size(p.Cache+p.Decoding))
	if limit := dev.Info().Memory; limit > 0 && p.Total() > limit {
		return fmt.Errorf("the run needs about %s of memory, the device has %s: lower optim.per_device_train_batch_size (and raise optim.gradient_accumulation_steps as much), rollout.max_completion_length or rollout.max_batch, keep model.gradient_checkpointing on, or set model.dtype to bfloat16, int8 or int4",
			size(p.Total()), size(limit))
	}
	return nil
}

func size(bytes int64) string {
	if bytes < 1e9 {
		return fmt.Sprintf("%.1f MB", float64(bytes)/1e6)
	}
	return fmt.Sprintf("%.2f GB", float64(bytes)/1e9)
}

// count prints a number of parameters.
func count(n int) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.2fB", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.2fM", float64(n)/1e6)
	}
	return fmt.Sprint(n)
}
