package main

import (
	"fmt"
	"os"
	"slices"

	"github.com/rubicon-rl/rubicon/internal/remote"
	"github.com/rubicon-rl/rubicon/trainer"
)

// engine is who samples in place of the run's model; nil: nobody does.
func (r *openedRun) engine() (trainer.Engine, error) {
	s := r.Config.Rollout.Server
	if r.Config.Rollout.Engine != "openai" {
		return nil, nil
	}
	o := remote.Options{
		URLs: slices.Clone(s.URLs), Timeout: seconds(s.Timeout), MaxConcurrency: s.MaxConcurrency, MaxRetries: s.MaxRetries,
		Notify: func(text string) { fmt.Fprintf(r.Console, "note: %s\n", text) },
	}
	if s.APIKeyEnv != "" {
		if o.APIKey = os.Getenv(s.APIKeyEnv); o.APIKey == "" {
			return nil, fmt.Errorf("rollout.server.api_key_env is %s, but that environment variable is empty: export it", s.APIKeyEnv)
		}
	}
	return remote.New(o)
}
