// Package trainer is the run: the GRPO step (step.go tells it), supervised fine-tuning, evaluation on held-out data,
// checkpoints and resuming.
package trainer

import (
	"context"
	"errors"
	"fmt"
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
	patience         time.Duration // for scoring, after the run was asked to stop
	auditor          Auditor
	judge            rewards.Drawer // its calls, time and cost; nil: the reward asks none
	benchmarks       []Measured
	conversation     Conversation
}

// Task is the data and the reward of a GRPO run. Of several processes only rank 0 has Provider, Judge and Benchmarks.
type Task struct {
	Prompts, HeldOut []grpo.Prompt // tokenised; HeldOut may be empty
	Provider         rewards.Provider
	Name             string         // of the provider, in metrics
	Judge            rewards.Drawer // what the judge that the provider asks did since it was last looked at; may be nil
	Auditor          Auditor        // of that judge; may be nil
	Episodes         *Episodes      // nil: completions have one turn
	Engine           Engine         // samples in place of the run's model, for a single process; nil: the model does
	Reference        Reference
	Benchmarks       []Measured   // measured when held-out prompts are
	Conversation     Conversation // how their questions are written
}

// Auditor compares the judge that a provider asks with an independent one: on a sample of what it is asked between Listen and
// Compare. Package audit has one.
type Auditor interface {
	Listen()
	Compare(ctx context.Context) (map[string]float64, error)
}

// Reference gives log-probabilities under the reference policy: which model, and which of its adapter sets.
type Reference struct {
	Model   *policy.Model
	Adapter string // "": the frozen weights alone
}

// New prepares a GRPO run in its folder.
func New(p Parts, in Task) (*Trainer, error) {
	cfg := p.Config
	batching, err := cfg.Batching(p.Group.World())
	if err != nil {
		return nil, err
	}
	if err := checkStages(cfg, p.Group.World(), len(in.Prompts)); err != nil {
		return nil, err
	}
	objective, err := grpo.NewObjective(cfg.GRPO)
	if err != nil {
		return nil, err
	}
	if in.Engine != nil && p.Group.World() > 1 {
		return nil, fmt.Errorf("rollout.engine %s serves runs of one process, this one has %d: set it to local", cfg.Rollout.Engine, p.Group.World())
	}
	same := p.Device.Info().Invariant && in.Engine == nil
	if !same {
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
		core: c, sampled: !same, exact: same && dropout == 0, objective: objective, batching: batching, entropy: grpo.NewEntropyControl(cfg.GRPO),
		rollouts: Rollouts{Config: cfg, Model: p.Model, Adapter: p.Adapter, Tokenizer: p.Tokenizer, Provider: in.Provider, Name: in.Name, Lock: p.Lock, Episodes: in.Episodes, Group: p.Group},
		Prompts:  in.Prompts, HeldOut: in.HeldOut, Reference: in.Reference, judge: in.Judge, auditor: in.Auditor, patience: scoringPatience,
		benchmarks: in.Benchmarks, conversation: in.Conversation,
	}
	if in.Engine != nil {
		if t.rollouts.external, err = newExternal(in.Engine, c.dir.join("rollout")); err != nil {
			return nil, errors.Join(err, t.Close())
		}
	}
	t.state.Data = fingerprint(len(in.Prompts), func(i int) []int32 { return in.Prompts[i].Tokens })
	t.state.Cursor = data.NewCursor(len(in.Prompts), cfg.Data.Shuffle, dataSeed(cfg))
	t.state.MicroRows = batching.PerDevice * batching.World
	t.micro, t.steps = batching.Epoch(len(in.Prompts))
	t.total = totalSteps(cfg.Optim, t.steps)
	return t, nil
}

// Steps is the number of optimiser steps of a run of world processes on so many prompts.
func Steps(cfg *configs.Config, prompts, world int) (int, error) {
	batching, err := cfg.Batching(world)
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
