// Package trainer is the run: the GRPO step (step.go tells it), supervised fine-tuning, evaluation on held-out data,
// checkpoints and resuming.
package trainer

import (
	"context"
	"time"

	"github.com/rubicon-rl/rubicon/configs"
	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/policy"
	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/trainer/data"
)

// Trainer trains a policy with GRPO.
type Trainer struct {
	*core
	rollouts         Rollouts
	Prompts, HeldOut []grpo.Prompt // tokenised; HeldOut may be empty
	Reference        Reference
	objective        *grpo.Objective
	batching         grpo.Batching
	sampled          bool // the sampler's numbers differ from the trainer's
	exact            bool // the trainer's log-probabilities have the sampler's bits: no dropout either
	entropy          grpo.EntropyControl
	buffer           buffer
	shown            table // the last generation, for people
	noted            int   // the step whose completions were written last
	details          map[*grpo.Completion]Detail
	patience         time.Duration  // for scoring, after the run was asked to stop
	judge            rewards.Drawer // its calls, time and cost; nil: the reward asks none
	benchmarks       []Measured
	conversation     Conversation
}

// Task is the data and the reward of a GRPO run.
type Task struct {
	Prompts, HeldOut []grpo.Prompt // tokenised; HeldOut may be empty
	Provider         rewards.Provider
	Name             string         // of the provider, in metrics
	Judge            rewards.Drawer // what the judge that the provider asks did since it was last looked at; may be nil
	Episodes         *Episodes      // nil: completions have one turn
	Reference        Reference
	Benchmarks       []Measured   // measured when held-out prompts are
	Conversation     Conversation // how their questions are written
}

// Reference gives log-probabilities under the reference policy: which model, and which of its adapter sets.
type Reference struct {
	Model   *policy.Model
	Adapter string // "": the frozen weights alone
}

// New prepares a GRPO run in its folder.
func New(p Parts, in Task) (*Trainer, error) {
	cfg := p.Config
	batching, err := cfg.Batching(1)
	if err != nil {
		return nil, err
	}
	if err := checkStages(cfg, len(in.Prompts)); err != nil {
		return nil, err
	}
	objective, err := grpo.NewObjective(cfg.GRPO)
	if err != nil {
		return nil, err
	}
	invariant := p.Device.Info().Invariant
	if !invariant {
		if err := cfg.GRPO.ValidateSampler(); err != nil {
			return nil, err
		}
	}
	dropout, err := dropout(p)
	if err != nil {
		return nil, err
	}
	c, err := newCore(p, "grpo")
	if err != nil {
		return nil, err
	}
	t := &Trainer{
		core: c, sampled: !invariant, exact: invariant && dropout == 0, objective: objective, batching: batching, entropy: grpo.NewEntropyControl(cfg.GRPO),
		rollouts: Rollouts{Config: cfg, Model: p.Model, Adapter: p.Adapter, Tokenizer: p.Tokenizer, Provider: in.Provider, Name: in.Name, Lock: p.Lock, Episodes: in.Episodes},
		Prompts:  in.Prompts, HeldOut: in.HeldOut, Reference: in.Reference, judge: in.Judge, patience: scoringPatience,
		benchmarks: in.Benchmarks, conversation: in.Conversation,
	}
	t.state.Data = fingerprint(len(in.Prompts), func(i int) []int32 { return in.Prompts[i].Tokens })
	t.state.Cursor = data.NewCursor(len(in.Prompts), cfg.Data.Shuffle, dataSeed(cfg))
	t.micro, t.steps = batching.Epoch(len(in.Prompts))
	t.total = totalSteps(cfg.Optim, t.steps)
	return t, nil
}

// Steps is the number of optimiser steps of a run on so many prompts.
func Steps(cfg *configs.Config, prompts int) (int, error) {
	batching, err := cfg.Batching(1)
	if err != nil {
		return 0, err
	}
	_, perEpoch := batching.Epoch(prompts)
	return totalSteps(cfg.Optim, perEpoch), nil
}

// dropout is that of the adapter that is trained.
func dropout(p Parts) (float64, error) {
	if p.Adapter == "" {
		return 0, nil
	}
	l, err := p.Model.AdapterConfig(p.Adapter)
	return l.Dropout, err
}

// Run makes the run's steps, from its checkpoint if it resumes.
func (t *Trainer) Run(ctx context.Context) error { return t.run(ctx, t) }
