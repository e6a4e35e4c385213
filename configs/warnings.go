package configs

import "slices"

// Warnings are settings that are allowed and that people have come to regret, each with what to do instead. A comment names a
// report of each.
func (c *Config) Warnings() []Note {
	w := &warner{}
	w.learning(c)
	w.sampling(c)
	w.keeping(c)
	w.judging(c)
	return w.notes
}

type warner struct{ notes []Note }

func (w *warner) when(is bool, key, text string) {
	if is {
		w.notes = append(w.notes, Note{Key: key, Text: text})
	}
}

func (w *warner) learning(c *Config) {
	o, lora := c.Optim, c.Model.Trainable == "lora"
	w.when(lora && o.LearningRate < 5e-6, "optim.learning_rate", // TRL#2872
		"is one for all weights; an adapter learns about ten times slower at the same rate: try 1e-5 to 1e-4")
	w.when(!lora && o.LearningRate > 1e-5, "optim.learning_rate", // verl#2738
		"is one for an adapter; with all weights rewards collapse at it: try 1e-6")
	w.when(o.MaxGradNorm == 0, "optim.max_grad_norm", // verl#2738
		"is 0, so that one bad batch can undo a run: set it to 1")
	w.when(lora && c.LoRA.Dropout > 0, "lora.dropout", // verl#2953
		"is above 0, so that the sampler's log-probabilities are not the trainer's: set it to 0")
	w.when(c.GRPO.NumGenerations < 4, "grpo.num_generations", // open-r1#239
		"is so small that most groups have equal rewards, or advantages of one size whatever the rewards are: set it to 8 or more")
	w.when(o.MaxBadSteps > 20, "optim.max_bad_steps", // TRL#5773
		"lets a run that has diverged go on: set it to a few steps")
}

func (w *warner) sampling(c *Config) {
	r := c.Rollout
	w.when(r.Temperature < 0.5, "rollout.temperature", // TRL#3857
		"is so low that the completions of a group are alike and nothing is learnt from them: set it to 1")
	const narrowed = "narrows what is sampled, which the loss does not know: the policy is pushed by completions that are not its own; switch it off"
	w.when(r.TopP < 1, "rollout.top_p", narrowed) // TRL#6789, #7269
	w.when(r.TopK > 0, "rollout.top_k", narrowed)
	w.when(r.MinP > 0, "rollout.min_p", narrowed)
	w.when(r.RepetitionPenalty != 1, "rollout.repetition_penalty", narrowed)
	w.when(c.GRPO.DynamicSampling && c.GRPO.MaxNumGenBatches > 10, "grpo.max_num_gen_batches", // DAPO#22
		"allows that many generations for one step, each of which takes as long as the first: lower it, or use easier data")
}

func (w *warner) keeping(c *Config) {
	k, measured := c.Checkpoint, len(c.Eval.Files)+len(c.Eval.Benchmarks) > 0
	w.when(k.SaveSteps == 0, "checkpoint.save_steps", // RLinf#1469
		"is 0: a run that is killed begins anew; set it to 50")
	w.when(k.SaveOnlyModel, "checkpoint.save_only_model", // ms-swift#9935
		"is true: no checkpoint can be resumed from; set it to false")
	w.when(!measured, "eval.files", // Rubric Dropout, arXiv 2608.11669
		"is empty: without held-out prompts a reward that is tricked looks like one that is earned; set it to some")
	w.when(measured && c.Eval.EvalSteps > 0 && k.MetricForBestModel == "", "checkpoint.metric_for_best_model", // verl#4281
		"is empty: the best checkpoint is not kept; set it to eval_reward")
	w.when(measured && c.Eval.Temperature > 0 && c.Eval.NumGenerationsEval == 1, "eval.num_generations_eval", // TRL#5790
		"is 1 at a temperature above 0: evaluations differ by chance; set eval.temperature to 0, or sample more")
}

// judging is about rewards that may not come.
func (w *warner) judging(c *Config) {
	kinds := []string{c.Reward.Kind}
	for _, p := range c.Reward.Parts {
		kinds = append(kinds, p.Kind)
	}
	w.when(c.Reward.MaxUnscorable > 0.5, "reward.max_unscorable", // slime#1361
		"lets a step be made of the few completions that were scored: set it to 0.1")
	if j := c.Judge; slices.ContainsFunc(kinds, func(k string) bool { return slices.Contains([]string{"rubric", "amaris", "rare"}, k) }) {
		w.when(j.Temperature != nil && *j.Temperature > 0, "judge.temperature", // pinchbench#337
			"is above 0: the same completion gets other verdicts when it is asked again; set it to 0")
		priced := j.PromptPrice != nil || j.CompletionPrice != nil
		w.when(priced && j.BudgetMoney == 0 && j.BudgetTokens == 0, "judge.budget_money",
			"is 0: nothing bounds what the judge may cost")
	}
}
