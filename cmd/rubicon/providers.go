package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rubicon-rl/rubicon/configs"
	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/rewards/mix"
	"github.com/rubicon-rl/rubicon/rewards/verify"
)

// providers are the values of reward.kind that are one provider; mix is made of these. A new provider is a folder under
// rewards/ and a line here.
var providers = map[string]func(options map[string]any) (rewards.Provider, error){
	"verify": verify.New,
}

// openProvider makes the reward of a run and its name in metrics.
func openProvider(r configs.Reward) (p rewards.Provider, name string, err error) {
	name = cmp.Or(r.Name, r.Kind)
	if r.Kind != "mix" {
		open, ok := providers[r.Kind]
		if !ok {
			return nil, "", fmt.Errorf("reward.kind %s is unknown; there are %s and mix", r.Kind, strings.Join(slices.Sorted(maps.Keys(providers)), ", "))
		}
		if p, err = open(r.Options); err != nil {
			return nil, "", fmt.Errorf("reward %s: %w", name, err)
		}
		return p, name, nil
	}
	var parts []mix.Part
	for _, part := range r.Parts {
		p, name, err := openProvider(part)
		if err != nil {
			return nil, "", err
		}
		parts = append(parts, mix.Part{Name: name, Weight: part.Weight, Provider: p})
	}
	p, err = mix.New(parts...)
	return p, name, err
}

// checkRows refuses data that the reward cannot score before anything is sampled.
func checkRows(p rewards.Provider, sets ...[]grpo.Prompt) error {
	c, ok := p.(rewards.Checker)
	if !ok {
		return nil
	}
	for _, set := range sets {
		for i := range set {
			if err := c.Check(&set[i]); err != nil {
				return err
			}
		}
	}
	return nil
}
