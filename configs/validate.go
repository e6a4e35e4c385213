package configs

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
)

// Fault is one thing that is wrong with a configuration.
type Fault struct {
	Path string // key
	Text string // the key, what is wrong with it, and what to do
}

func (f Fault) Error() string { return f.Text }

// Validate returns all faults of c, joined; nil if there are none. It does not look at files, nor at what only a certain command
// needs.
func (c *Config) Validate() error {
	c.complete()
	var errs []error
	for _, f := range c.faults() {
		errs = append(errs, f)
	}
	return errors.Join(errs...)
}

// faulty collects faults.
type faulty []Fault

func (fs *faulty) check(ok bool, path, format string, args ...any) {
	if !ok {
		*fs = append(*fs, Fault{path, path + " " + fmt.Sprintf(format, args...)})
	}
}

func (c *Config) faults() []Fault {
	var fs faulty
	for _, f := range newSchema().fields {
		if !strings.HasPrefix(f.Path, "grpo.") {
			fs.bounds(f, f.get(c))
		}
	}
	fs.model(c)
	fs.grpo(c)
	fs.sampling(c)
	fs.engine(c)
	fs.optim(c)
	fs.schedule(c.Optim)
	fs.stages(c)
	fs.reward(c.Reward)
	fs.judge(c.Judge)
	fs.track(c.Track)
	fs.checkpoint(c)
	return fs
}

func (fs *faulty) judge(j Judge) {
	fs.check(j.Audit.Steps == 0 || j.Audit.URL != "", "judge.audit.url", "is empty: set it to the server of a judge that is independent of judge.model, or judge.audit.steps to 0")
}

func (fs *faulty) track(t Track) {
	known := Trackers()
	for i, name := range t.To {
		fs.check(slices.Contains(known, name), "track.to", "has %q: use %s%s", name, strings.Join(known, ", "), didYouMean(name, known))
		fs.check(!slices.Contains(t.To[:i], name), "track.to", "has %s twice: name it once", name)
	}
	fs.check(t.Project != "", "track.project", "is empty: set it to a name")
}

// Trackers are the values that track.to may have.
func Trackers() []string { return []string{"tensorboard", "wandb", "mlflow", "prometheus"} }

func (fs *faulty) model(c *Config) {
	quantised := c.Model.DType == "int8" || c.Model.DType == "int4"
	fs.check(!quantised || c.Model.Trainable != "full", "model.dtype",
		"is %s, but quantised weights cannot be trained: set model.trainable to lora, or model.dtype to float32 or bfloat16", c.Model.DType)
	fs.check(c.Model.ComputeDType != "bfloat16" || c.Model.DType != "float32", "model.compute_dtype",
		"is bfloat16, which weights kept in float32 never see: set model.dtype to auto or bfloat16, or model.compute_dtype to float32")
}

// maxCount is the largest size or count of anything; products of two of them fit into an int.
const maxCount = math.MaxInt32

// bounds checks what the tags of a field say.
func (fs *faulty) bounds(f field, v reflect.Value) {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return
		}
		v = v.Elem()
	}
	if v.Kind() == reflect.String {
		fs.check(f.Enum == nil || slices.Contains(f.Enum, v.String()), f.Path, "is %q: set it to one of %s%s",
			v.String(), strings.Join(f.Enum, ", "), didYouMean(v.String(), f.Enum))
		return
	}
	var x float64
	switch {
	case v.CanInt():
		x = float64(v.Int())
	case v.CanFloat():
		x = v.Float()
	default:
		return
	}
	fs.check(!math.IsNaN(x) && !math.IsInf(x, 0), f.Path, "is %v: set it to a finite number", x)
	fs.check(f.Min == nil || x >= *f.Min, f.Path, "is %v: set it to at least %v", x, deref(f.Min))
	fs.check(f.Above == nil || x > *f.Above, f.Path, "is %v: set it above %v", x, deref(f.Above))
	fs.check(f.Max == nil || x <= *f.Max, f.Path, "is %v: set it to at most %v", x, deref(f.Max))
	fs.check(!v.CanInt() || strings.HasSuffix(f.Path, "seed") || x <= maxCount, f.Path, "is %v: set it to at most %d", x, maxCount)
	if v.Type() == reflect.TypeFor[Period]() {
		fs.check(x < 1 || x == math.Trunc(x), f.Path, "is %v: set it to whole steps, or below 1 to a share of all steps", x)
	}
}

// grpo adds the faults that package grpo finds; each begins with its key and a colon. Copies are checked where their keys
// are. Whether the batch sizes fit together is Batching's to say: sft has no groups.
func (fs *faulty) grpo(c *Config) {
	err := c.GRPO.Validate()
	if err == nil {
		return
	}
	errs := []error{err}
	if join, ok := err.(interface{ Unwrap() []error }); ok {
		errs = join.Unwrap()
	}
	for _, err := range errs {
		path, _, _ := strings.Cut(err.Error(), ":")
		if !slices.Contains(grpoCopies(), strings.TrimPrefix(path, "grpo.")) {
			*fs = append(*fs, Fault{path, err.Error()})
		}
	}
}

func (fs *faulty) sampling(c *Config) {
	fs.check(c.Rollout.MaxCompletionLength > 0, "rollout.max_completion_length", "is 0: set it to at least 1")
	fs.check(c.Rollout.Temperature > 0, "rollout.temperature", "is 0, which always samples the same completion: set it above 0")
	for _, s := range []struct {
		path string
		stop []string
	}{{"rollout.stop", c.Rollout.Stop}, {"eval.stop", c.Eval.Stop}} {
		fs.check(!slices.Contains(s.stop, ""), s.path, "has an empty text: remove it")
	}
	const most = 1 << 16 // all of a prompt's completions are held until they are scored
	fs.check(c.Eval.NumGenerationsEval <= most, "eval.num_generations_eval", "is %d: set it to at most %d", c.Eval.NumGenerationsEval, most)
	greedy := c.Eval.Temperature == 0
	fs.check(!greedy || c.Eval.NumGenerationsEval <= 1, "eval.num_generations_eval",
		"is %d, but eval.temperature 0 samples the same completion each time: set eval.temperature above 0", c.Eval.NumGenerationsEval)
}

// engine checks what servers that sample ask of a run.
func (fs *faulty) engine(c *Config) {
	r := c.Rollout
	if r.Engine != "openai" {
		return
	}
	fs.check(len(r.Server.URLs) > 0 && !slices.Contains(r.Server.URLs, ""), "rollout.server.urls", "names no server: set it to the URLs of rubicon serve or vLLM")
	fs.check(c.Model.Trainable == "lora", "rollout.engine", "is openai, but servers are given adapters only: set model.trainable to lora")
	fs.check(c.Env.Kind == "", "rollout.engine", "is openai, which samples single turns: set it to local for env.kind %s", c.Env.Kind)
	const raw = "is %v, but servers say log-probabilities before it: set it to %v for rollout.engine openai"
	fs.check(r.Temperature == 1, "rollout.temperature", raw, r.Temperature, 1)
	fs.check(r.TopP == 1, "rollout.top_p", raw, r.TopP, 1)
	fs.check(r.TopK == 0, "rollout.top_k", raw, r.TopK, 0)
	fs.check(r.MinP == 0, "rollout.min_p", raw, r.MinP, 0)
	fs.check(r.RepetitionPenalty == 1, "rollout.repetition_penalty", raw, r.RepetitionPenalty, 1)
}

func (fs *faulty) optim(c *Config) {
	o := c.Optim
	fs.check(o.MaxSteps != 0, "optim.max_steps", "is 0: set it to at least 1, or to -1 for num_train_epochs")
	fs.check(o.NumTrainEpochs <= maxCount, "optim.num_train_epochs", "is %v: set it to at most %d", o.NumTrainEpochs, maxCount)
	fs.check(o.WarmupSteps <= maxCount, "optim.warmup_steps", "is %v: set it to at most %d", o.WarmupSteps, maxCount)
	fs.check(o.MaxSteps != -1 || o.NumTrainEpochs > 0, "optim.num_train_epochs", "is 0: set it above 0, or set optim.max_steps")
	fs.check(o.AdamBeta1 < 1, "optim.adam_beta1", "is 1: set it below 1")
	fs.check(o.AdamBeta2 < 1, "optim.adam_beta2", "is 1: set it below 1")
	fs.check(o.WarmupSteps < 1 || o.WarmupSteps == math.Trunc(o.WarmupSteps), "optim.warmup_steps",
		"is %v: set it to whole steps, or below 1 to a share of all steps", o.WarmupSteps)
	fs.check(c.Data.TrainBatchSize > 0 || o.PerDeviceTrainBatchSize > 0, "optim.per_device_train_batch_size",
		"is 0: set it to at least 1, or set data.train_batch_size")
	fs.check(c.Data.TrainBatchSize > 0 || o.GradientAccumulationSteps > 0, "optim.gradient_accumulation_steps",
		"is 0: set it to at least 1, or set data.train_batch_size")
	fs.check(c.Model.Trainable == "full" || len(c.LoRA.TargetModules) > 0, "lora.target_modules", "is empty: set it to all-linear, or name layers")
	fs.check(c.Model.Adapter == "" || c.Model.Trainable != "full", "model.adapter",
		"is set, but model.trainable is full: merge the adapter first (rubicon export merged), or set model.trainable to lora")
	fs.check(c.Model.Adapter == "" || c.Model.Init != "random", "model.adapter", "is set, but model.init is random: remove one of them")
	fs.check(c.Model.Init != "random" || c.Model.Trainable == "full", "model.init",
		"is random, but model.trainable is lora: set model.trainable to full")
}

// reward checks the provider, or the parts of a mix.
func (fs *faulty) reward(r Reward) {
	if r.Kind != "mix" {
		fs.check(len(r.Parts) == 0, "reward.parts", "is only for kind mix: set reward.kind to mix, or remove it")
		return
	}
	fs.check(len(r.Parts) > 0, "reward.parts", "is empty: list the providers of the mix")
	fs.check(r.Weight == 1, "reward.weight", "has no effect for kind mix: weigh the parts")
	fs.check(len(r.Options) == 0, "reward.options", "has no effect for kind mix: put it into the parts")
	kinds, _ := newSchema().field("reward.kind")
	seen := map[string]bool{}
	for i, p := range r.Parts {
		at := fmt.Sprintf("reward.parts[%d]", i)
		fs.bounds(field{Path: at + ".kind", Enum: kinds.Enum}, reflect.ValueOf(p.Kind))
		fs.bounds(field{Path: at + ".weight"}, reflect.ValueOf(p.Weight))
		fs.check(p.Kind != "mix", at+".kind", "is mix: put its parts here instead")
		name := cmp.Or(p.Name, p.Kind)
		fs.check(!seen[name], at+".name", "%s is taken: give each part another name", name)
		seen[name] = true
	}
}

func (fs *faulty) checkpoint(c *Config) {
	k, e := c.Checkpoint, c.Eval
	best := k.MetricForBestModel != ""
	measured := len(e.Files)+len(e.Benchmarks) > 0
	fs.check(!best || measured, "checkpoint.metric_for_best_model", "needs a held-out evaluation: set eval.files or eval.benchmarks")
	fs.check(!best || e.EvalSteps > 0, "checkpoint.metric_for_best_model", "needs evaluations during the run: set eval.eval_steps")
	fs.check(e.EvalSteps == 0 || measured, "eval.eval_steps", "is set, but there is nothing to evaluate on: set eval.files or eval.benchmarks")
	fs.check(!e.EvalOnStart || measured, "eval.eval_on_start", "is set, but there is nothing to evaluate on: set eval.files or eval.benchmarks")
	fs.check(e.Server.URL == "" || e.Server.Model != "", "eval.server.model", "is not set: name the model on %s", e.Server.URL)
}

// scheduleKwargs are the settings that each course of the learning rate takes.
func scheduleKwargs() map[string][]string {
	return map[string][]string{
		"cosine":               {"num_cycles"},
		"cosine_with_restarts": {"num_cycles"},
		"polynomial":           {"power", "lr_end"},
		"inverse_sqrt":         {"timescale"},
		"cosine_with_min_lr":   {"num_cycles", "min_lr", "min_lr_rate"},
		"warmup_stable_decay":  {"num_decay_steps", "num_stable_steps", "warmup_type", "decay_type", "min_lr_ratio", "num_cycles"},
	}
}

func (fs *faulty) schedule(o Optim) {
	const at = "optim.lr_scheduler_kwargs"
	takes := scheduleKwargs()[o.LRSchedulerType]
	v := reflect.ValueOf(o.LRSchedulerKwargs)
	for i := range v.NumField() {
		key := yamlKey(v.Type().Field(i))
		fs.check(v.Field(i).IsNil() || slices.Contains(takes, key), at+"."+key, "has no meaning for %s: remove it", o.LRSchedulerType)
	}
	k := o.LRSchedulerKwargs
	switch o.LRSchedulerType {
	case "cosine_with_min_lr":
		fs.check((k.MinLR == nil) != (k.MinLRRate == nil), at+".min_lr_rate", "or min_lr, just one of them, must be set for cosine_with_min_lr: set min_lr_rate, for instance to 0.1")
		fs.check(k.MinLR == nil || *k.MinLR < o.LearningRate, at+".min_lr", "is not below optim.learning_rate %v: lower it", o.LearningRate)
	case "warmup_stable_decay":
		fs.check(k.NumDecaySteps != nil, at+".num_decay_steps", "is needed for warmup_stable_decay: set it")
	case "polynomial":
		end := 1e-7
		if k.LREnd != nil {
			end = *k.LREnd
		}
		fs.check(o.LearningRate > end, at+".lr_end", "is %v, not below optim.learning_rate %v: lower it", end, o.LearningRate)
	case "cosine_with_restarts":
		fs.check(k.NumCycles == nil || *k.NumCycles == math.Trunc(*k.NumCycles), at+".num_cycles", "is not whole: restarts are counted, set a whole number")
	}
}

func deref(x *float64) float64 {
	if x == nil {
		return math.NaN()
	}
	return *x
}

// validate adds the faults of the loaded configuration, each with the place that set its key.
func (l *loader) validate(c *Config) {
	for _, f := range c.faults() {
		path, _, _ := strings.Cut(f.Path, "[")
		if from := l.sources[path]; from != "" {
			l.errs = append(l.errs, fmt.Errorf("%s: %w", from, f))
		} else {
			l.errs = append(l.errs, f)
		}
	}
}
