package configs

import (
	"strings"
)

const (
	verlActorAt  = "actor_rollout_ref.actor."
	verlOptimAt  = verlActorAt + "optim."
	verlSampleAt = "actor_rollout_ref.rollout."
)

// resolveVerl gives verl's names that mean something together their keys.
func (l *loader) resolveVerl(c *Config) {
	for i, name := range []string{"data.max_response_length", verlSampleAt + "response_length"} { // the second follows the first there
		n, k, ok := take[int](l, name)
		if _, _, first := take[int](l, "data.max_response_length"); ok && (i == 0 || !first) {
			l.settle(c, "rollout.max_completion_length", n, k)
		}
	}
	low, k, ok := take[float64](l, verlActorAt+"clip_ratio_low")
	both, k2, ok2 := take[float64](l, verlActorAt+"clip_ratio")
	switch {
	case ok:
		l.settle(c, "grpo.epsilon", low, k)
		if ok2 && both != low {
			l.unused(k2, "clip_ratio_low and clip_ratio_high count where they are set, as in verl, whose defaults for both are 0.2")
		}
	case ok2:
		l.settle(c, "grpo.epsilon", both, k2)
	}
	for i, name := range []string{verlActorAt + "grad_clip", verlOptimAt + "clip_grad"} { // the same thing by backend
		x, k, ok := take[float64](l, name)
		if first, _, ok2 := take[float64](l, verlActorAt+"grad_clip"); ok && (i == 0 || !ok2) {
			l.settle(c, "optim.max_grad_norm", x, k)
		} else if ok && x != first {
			l.unused(k, "actor.grad_clip counts")
		}
	}
	l.verlObjective(c)
	l.verlKL(c)
	l.verlSteps(c, l.verlBatches(c))
	l.verlEval(c)
	l.overlong(c)
}

// verlObjective reads the loss and how it is summed; losses on sequences bring their own sum.
func (l *loader) verlObjective(c *Config) {
	mode, km, okMode := takeOr(l, verlActorAt+"policy_loss.loss_mode", "vanilla")
	agg, ka, okAgg := take[string](l, verlActorAt+"loss_agg_mode")
	switch mode {
	case "gspo":
		l.settle(c, "grpo.loss_type", "grpo", km)
		l.settle(c, "grpo.importance_sampling_level", "sequence", km)
		return
	case "sapo":
		l.settle(c, "grpo.loss_type", "sapo", km)
		return
	case "vanilla":
	case "cispo":
		l.fail(km.from, km.name, "is cispo, which is bounded on one side here: set grpo.loss_type to cispo and grpo.epsilon_high to 1 + clip_ratio_high")
	default:
		l.fail(km.from, km.name, "is %q, want one of vanilla, gspo, sapo; or set grpo.loss_type", mode)
	}
	if !okAgg || okMode && mode != "vanilla" {
		return
	}
	ours := map[string]string{"token-mean": "dapo", "seq-mean-token-mean": "grpo", "seq-mean-token-sum-norm": "dr_grpo"}[agg]
	if ours == "" {
		l.fail(ka.from, ka.name, "is %q, want one of token-mean, seq-mean-token-mean, seq-mean-token-sum-norm", agg)
		return
	}
	l.settle(c, "grpo.loss_type", ours, ka)
}

// verlKL reads where the KL term is and what it weighs. There is one term here.
func (l *loader) verlKL(c *Config) {
	inLoss, kl, _ := take[bool](l, verlActorAt+"use_kl_loss")
	inReward, kr, _ := take[bool](l, "algorithm.use_kl_in_reward")
	if inLoss && inReward {
		l.fail(kr.from, kr.name, "is true beside use_kl_loss, but there is one KL term: set one of them to false")
		return
	}
	l.klTerm(c, inLoss, kl, verlActorAt+"kl_loss_coef", verlActorAt+"kl_loss_type", "k3")
	l.klTerm(c, inReward, kr, "algorithm.kl_ctrl.kl_coef", "algorithm.kl_penalty", "k1")
	if inReward {
		l.settle(c, "grpo.kl_in_reward", true, kr)
	}
	if inLoss {
		l.settle(c, "grpo.use_bias_correction_kl", false, kl) // verl's k3 is not weighed by the ratio
	}
}

// klTerm reads the weight and the estimator of one KL term, if it is on.
func (l *loader) klTerm(c *Config, on bool, by kept, coefName, typeName, typeDefault string) {
	coef, kc, okCoef := takeOr(l, coefName, 0.001)
	kind, kt, okKind := takeOr(l, typeName, typeDefault)
	if !on {
		if okCoef && coef != 0.001 {
			l.unused(kc, "the KL term is off")
		}
		return
	}
	by2 := []kept{by}
	if okCoef {
		by2 = []kept{kc, by}
	}
	l.settle(c, "grpo.beta", coef, by2...)
	if !okKind {
		kt = by
	}
	ours := map[string]string{"kl": "k1", "k1": "k1", "mse": "k2", "k2": "k2", "low_var_kl": "k3", "k3": "k3"}[strings.TrimSuffix(kind, "+")]
	switch {
	case ours == "":
		l.fail(kt.from, kt.name, "is %q, want one of kl, mse, low_var_kl, k1, k2, k3", kind)
		return
	case strings.HasSuffix(kind, "+"): // the gradient is that of k2
		ours = "k2"
	}
	l.settle(c, "grpo.kl_estimator", ours, kt)
}

// verlBatches reads the mini-batch, which counts prompts, and returns the optimiser steps of one generation.
func (l *loader) verlBatches(c *Config) (perGeneration int) {
	mini, k, ok := take[int](l, verlActorAt+"ppo_mini_batch_size")
	if !ok {
		return c.GRPO.NumIterations
	}
	switch prompts := c.Data.TrainBatchSize; {
	case prompts == 0:
		l.fail(k.from, k.name, "counts prompts, as data.train_batch_size does: set that too")
	case mini < 1 || prompts%mini != 0:
		l.fail(k.from, k.name, "is %d, which does not divide data.train_batch_size %d: set it to a divisor", mini, prompts)
	default:
		l.accumulate(c, mini*c.GRPO.NumGenerations, k)
		return prompts / mini * c.GRPO.NumIterations
	}
	return c.GRPO.NumIterations
}

// accumulate sets how many backward passes make up an optimiser step of so many completions in one process.
func (l *loader) accumulate(c *Config, completions int, by kept) {
	micro := c.Optim.PerDeviceTrainBatchSize
	if !l.isSet("optim.per_device_train_batch_size") {
		for micro = min(completions, micro); completions%micro != 0; micro-- {
		}
		l.settle(c, "optim.per_device_train_batch_size", micro, by)
	}
	if micro < 1 || completions%micro != 0 {
		l.fail(by.from, by.name, "makes steps of %d completions, which passes of %d do not divide: set optim.per_device_train_batch_size to a divisor", completions, micro)
		return
	}
	l.settle(c, "optim.gradient_accumulation_steps", completions/micro, by)
}

// verlSteps reads what counts generations there and optimiser steps here.
func (l *loader) verlSteps(c *Config, perGeneration int) {
	l.period(c, "trainer.save_freq", "checkpoint.save_steps", perGeneration)
	l.period(c, "trainer.test_freq", "eval.eval_steps", perGeneration)
	if n, k, ok := take[*int](l, "trainer.total_training_steps"); ok && n != nil {
		l.settle(c, "optim.max_steps", *n*perGeneration, k)
	}
	warm := false
	if n, k, ok := takeOr(l, verlOptimAt+"lr_warmup_steps", -1); ok && n >= 0 {
		l.settle(c, "optim.warmup_steps", n*perGeneration, k)
		warm = n > 0
	} else if share, k, ok := take[float64](l, verlOptimAt+"lr_warmup_steps_ratio"); ok {
		if share >= 1 {
			l.fail(k.from, k.name, "is %v: set it below 1", share)
			return
		}
		l.settle(c, "optim.warmup_steps", share, k)
		warm = share > 0
	}
	l.verlSchedule(c, warm)
}

// period reads a number of generations, -1 for never.
func (l *loader) period(c *Config, name, path string, perGeneration int) {
	if n, k, ok := take[int](l, name); ok {
		l.settle(c, path, max(n, 0)*perGeneration, k)
	}
}

// verlSchedule reads the course of the learning rate. verl's constant has a warm-up.
func (l *loader) verlSchedule(c *Config, warm bool) {
	const kwargs = "optim.lr_scheduler_kwargs."
	kind, k, ok := take[string](l, verlOptimAt+"lr_scheduler_type")
	if style, ks, okStyle := take[*string](l, verlOptimAt+"warmup_style"); okStyle && style != nil {
		kind, k, ok = *style, ks, true
	}
	if !ok {
		return
	}
	lowest, kl, _ := takeOr(l, verlOptimAt+"min_lr_ratio", 0.0)
	waves, kw, okWaves := takeOr(l, verlOptimAt+"num_cycles", 0.5)
	switch {
	case kind == "constant" && warm:
		kind = "constant_with_warmup"
	case kind == "cosine" && lowest > 0:
		kind = "cosine_with_min_lr"
		l.settle(c, kwargs+"min_lr_rate", lowest, kl)
	}
	if strings.HasPrefix(kind, "cosine") && okWaves && waves != 0.5 {
		l.settle(c, kwargs+"num_cycles", waves, kw)
	}
	l.settle(c, "optim.lr_scheduler_type", kind, k)
}

// verlEval reads the sampling of evaluations, and what a run begins from.
func (l *loader) verlEval(c *Config) {
	sample, ks, okSample := take[bool](l, verlSampleAt+"val_kwargs.do_sample")
	temperature, kt, okTemperature := take[float64](l, verlSampleAt+"val_kwargs.temperature")
	switch {
	case okSample && !sample:
		l.settle(c, "eval.temperature", 0.0, ks)
		if okTemperature && temperature != 0 {
			l.unused(kt, "val_kwargs.do_sample is false, which is greedy in verl")
		}
	case okTemperature:
		l.settle(c, "eval.temperature", temperature, kt)
	}
	mode, km, okMode := take[string](l, "trainer.resume_mode")
	path, kp, _ := take[*string](l, "trainer.resume_from_path")
	switch {
	case !okMode || mode == "disable":
	case mode == "resume_path" && path != nil:
		l.settle(c, "checkpoint.resume", *path, kp, km)
	case mode == "auto":
		l.settle(c, "checkpoint.resume", "auto", km)
	default:
		l.fail(km.from, km.name, "is %q, want one of auto, disable, resume_path (with trainer.resume_from_path)", mode)
	}
}

// overlong reads DAPO's soft punishment of long completions.
func (l *loader) overlong(c *Config) {
	on, k, _ := take[bool](l, "overlong.enable")
	tokens, kt, ok := takeOr(l, "overlong.len", 4096)
	if on {
		if ok {
			k = kt
		}
		l.settle(c, "grpo.soft_punish_cache", tokens, k)
	}
}
