package main

import (
	"fmt"
	"io"
	"strings"

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
	for _, s := range c.Optim.Stages { // the largest counts; one that does not fit together is refused elsewhere
		if x, err := c.At(s.FromStep).Batching(b.World); err == nil {
			b.Prompts, b.GenerationBatch = max(b.Prompts, x.Prompts), max(b.GenerationBatch, x.GenerationBatch)
		}
	}
	o := commonMemory(c)
	o.Scored = b.PerDevice * c.Rollout.MaxCompletionLength
	o.Tokens = o.Scored + min(b.PerDevice, b.Prompts)*longest
	copied := c.Model.Trainable == "full" || c.Model.Adapter != "" && c.GRPO.Reference == "initial"
	if c.NeedsReference() && copied {
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

// planMemory prints what a run takes on the device and refuses what cannot fit. It returns the tokens that the cache of keys and
// values is to have room for; 0: what samples turn out to need.
func planMemory(shape policy.Config, o policy.PlanOptions, dev device.Device, w io.Writer) (kvTokens int, err error) {
	o.Memory = dev.Info().Memory
	d, fixed := dev.(interface{ Footprint() device.Footprint })
	if fixed {
		o.Device = d.Footprint()
	}
	p, err := policy.MemoryPlan(shape, o)
	if err != nil {
		return 0, err
	}
	fmt.Fprintf(w, "memory     %s: weights %s, trained %s, activations %s, sampling %s", size(p.Total()),
		size(p.Weights), size(p.Adapters+p.Gradients+p.Optimizer), size(p.Activations+p.Logits), size(p.Cache+p.Decoding))
	if p.Fixed > 0 {
		fmt.Fprintf(w, ", device %s", size(p.Fixed))
	}
	fmt.Fprintln(w)
	if o.Memory > 0 && p.Total() > o.Memory {
		return 0, noMemory(shape, o, p.Total())
	}
	if p.KVTokens < p.WantedKVTokens {
		fmt.Fprintf(w, "           keys and values of %d tokens fit; the samples can need %d, so some will wait\n", p.KVTokens, p.WantedKVTokens)
	} else if !fixed {
		return 0, nil
	}
	return p.KVTokens, nil
}

// settings are what makes a run smaller, in the words of the configuration.
var settings = map[policy.Change]string{
	policy.Recompute: "model.gradient_checkpointing: true",
	policy.HalfPass:  "half of optim.per_device_train_batch_size (and twice optim.gradient_accumulation_steps), of rollout.max_completion_length or of data.max_length",
	policy.HalfBatch: "half of rollout.max_batch",
	policy.HalfRank:  "half of lora.r",
	policy.BFloat16:  "model.dtype: bfloat16",
	policy.Int8:      "model.dtype: int8",
	policy.Int4:      "model.dtype: int4",
}

// noMemory says what a run that does not fit could do without. What saves less than a hundredth is not worth a try.
func noMemory(shape policy.Config, o policy.PlanOptions, total int64) error {
	savings, err := policy.Savings(shape, o)
	if err != nil {
		return err
	}
	var help []string
	for _, s := range savings {
		if s.Bytes >= total/100 {
			help = append(help, fmt.Sprintf("%s saves %s", settings[s.Change], size(s.Bytes)))
		}
	}
	if help == nil {
		help = []string{"a smaller model"}
	}
	return fmt.Errorf("the run needs about %s of memory, the device has %s; what would help: %s", size(total), size(o.Memory), strings.Join(help, "; "))
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
