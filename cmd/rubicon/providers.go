package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rubicon-rl/rubicon/configs"
	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/rewards/amaris"
	"github.com/rubicon-rl/rubicon/rewards/arco"
	"github.com/rubicon-rl/rubicon/rewards/exec"
	"github.com/rubicon-rl/rubicon/rewards/http"
	"github.com/rubicon-rl/rubicon/rewards/mix"
	"github.com/rubicon-rl/rubicon/rewards/rare"
	"github.com/rubicon-rl/rubicon/rewards/rubric"
	"github.com/rubicon-rl/rubicon/rewards/verify"
)

// providers are the values of reward.kind that are one provider; mix is made of these. A new provider is a folder under
// rewards/ and a line here.
var providers = map[string]func(run rewards.Run, options map[string]any) (rewards.Provider, error){
	"verify": verify.New,
	"amaris": amaris.New,
	"arco":   arco.New,
	"rubric": rubric.New,
	"rare":   rare.New,
	"http":   http.New,
	"exec":   exec.New,
}

// reward is what scores the completions of a run, and the judge that it asks.
type reward struct {
	rewards.Provider
	name  string // in metrics
	judge *judge
}

// openReward opens the reward of a run with its folder and number of steps ("" and 0: there is none): its providers and, if
// one of them asks for it, the judge.
func (r *openedRun) openReward(dir string, steps int) (*reward, error) {
	c := r.Config
	rw := &reward{judge: &judge{cfg: c.Judge, seed: uint64(c.Seed), dir: dir, console: r.Console, tokenizer: r.Tokenizer, lock: r.Lock, moves: c.Model.Trainable == "full"}}
	run := rewards.Run{
		Dir: dir, Seed: uint64(c.Seed), Steps: steps, Judge: rw.judge.open, Embedder: r.embedders.open,
		Notify: func(text string) { fmt.Fprintf(r.Console, "note: %s\n", text) },
		Lock:   r.Lock,
		Model:  fmt.Sprintf("%s, %s parameters", c.Model.Path, count(r.shape.Size())),
	}
	var err error
	if rw.Provider, rw.name, err = openProvider(run, c.Reward); err != nil {
		return nil, errors.Join(err, rw.judge.close())
	}
	return rw, nil
}

func openProvider(run rewards.Run, r configs.Reward) (rewards.Provider, string, error) {
	if r.Kind != "mix" {
		return openPart(run, r.RewardPart)
	}
	var parts []mix.Part
	for _, part := range r.Parts {
		if part.Kind == "arco" {
			return nil, "", errors.Join(errors.New("reward.parts: arco values the turns of episodes, which a sum of parts cannot: make it reward.kind itself"), closeParts(parts))
		}
		own := run
		if run.Dir != "" {
			own.Dir = filepath.Join(run.Dir, "rewards", cmp.Or(part.Name, part.Kind))
		}
		p, name, err := openPart(own, part)
		if err != nil {
			return nil, "", errors.Join(err, closeParts(parts))
		}
		parts = append(parts, mix.Part{Name: name, Weight: part.Weight, Provider: p})
	}
	p, err := mix.New(parts...)
	if err != nil {
		return nil, "", errors.Join(err, closeParts(parts))
	}
	return p, cmp.Or(r.Name, r.Kind), nil
}

func openPart(run rewards.Run, r configs.RewardPart) (rewards.Provider, string, error) {
	name := cmp.Or(r.Name, r.Kind)
	open, ok := providers[r.Kind]
	if !ok {
		return nil, "", fmt.Errorf("reward.kind %s is unknown; there are %s and mix", r.Kind, strings.Join(slices.Sorted(maps.Keys(providers)), ", "))
	}
	p, err := open(run, r.Options)
	if err != nil {
		return nil, "", fmt.Errorf("reward %s: %w", name, err)
	}
	return p, name, nil
}

func closeParts(parts []mix.Part) (err error) {
	for _, p := range parts {
		if c, ok := p.Provider.(io.Closer); ok {
			err = errors.Join(err, c.Close())
		}
	}
	return err
}

// check refuses what the reward cannot score, and tries what it depends on, before anything is sampled.
func (r *reward) check(ctx context.Context, sets ...[]grpo.Prompt) error {
	if c, ok := r.Provider.(rewards.Checker); ok {
		for _, set := range sets {
			for i := range set {
				if err := c.Check(&set[i]); err != nil {
					return err
				}
			}
		}
	}
	if p, ok := r.Provider.(rewards.Preflighter); ok {
		if err := p.Preflight(ctx); err != nil {
			return fmt.Errorf("reward %s: %w", r.name, err)
		}
	}
	return r.judge.preflight(ctx)
}

// close ends what the reward has started.
func (r *reward) close() error {
	var err error
	if c, ok := r.Provider.(io.Closer); ok {
		err = c.Close()
	}
	return errors.Join(err, r.judge.close())
}
