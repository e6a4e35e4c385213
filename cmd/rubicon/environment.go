package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/rubicon-rl/rubicon/configs"
	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/rewards/arco"
	"github.com/rubicon-rl/rubicon/trainer"
	"github.com/rubicon-rl/rubicon/trainer/env"
)

// openEpisodes opens the environment that the configuration names; nil: there is none.
func (r *openedRun) openEpisodes() (*trainer.Episodes, error) {
	c := r.Config.Env
	if c.Kind == "" {
		return nil, nil
	}
	e, err := env.Kinds[c.Kind](env.Run{Embedder: r.environmentEmbedder}, c.Options)
	if err != nil {
		return nil, err
	}
	return &trainer.Episodes{Env: e, Conversation: r.conversation(), MaxTurnLength: c.MaxTurnLength, Retries: c.Retries}, nil
}

// environmentEmbedder opens an embedder for an environment, which needs it while the run's model samples.
func (r *openedRun) environmentEmbedder(name string) (rewards.Embedder, error) {
	if name == "policy" {
		return nil, errors.New("the run's own model is busy sampling when the environment would need it: use lexical, minilm or openai")
	}
	return r.embedders.open(name)
}

// check refuses rows that the reward cannot score, and tries what the run depends on, before anything is sampled.
func (r *openedRun) check(ctx context.Context, sets ...[]grpo.Prompt) error {
	if err := r.embedders.preflight(ctx); err != nil {
		return err
	}
	return r.reward.check(ctx, sets...)
}

// needsEpisodes refuses a reward that is an outcome of an environment, as ARCO's default is, where there is no environment.
func needsEpisodes(c *configs.Config) error {
	if c.Env.Kind != "" {
		return nil
	}
	for _, part := range append([]configs.RewardPart{c.Reward.RewardPart}, c.Reward.Parts...) {
		checks, at := part.Options, "checks"
		if part.Kind == "arco" {
			checks, at = arco.Default().Reward, "reward"
			if own, set := part.Options["reward"].(map[string]any); set {
				checks = own
			}
		}
		list, _ := checks["checks"].([]any)
		for _, check := range list {
			if k, _ := check.(map[string]any); k["kind"] == "outcome" {
				return fmt.Errorf("reward.kind %s: the reward is the outcome %v of an environment, but env.kind is not set: set env.kind, or reward.options.%s to a check of completions", part.Kind, cmp.Or(k["metric"], any("em")), at)
			}
		}
	}
	return nil
}
