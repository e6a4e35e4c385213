package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/rubicon-rl/rubicon/configs"
	"github.com/rubicon-rl/rubicon/internal/llm"
	"github.com/rubicon-rl/rubicon/internal/local"
	"github.com/rubicon-rl/rubicon/policy"
	"github.com/rubicon-rl/rubicon/policy/token"
	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/rubricmem"
)

// embedders are what a run's reward or environment compares texts by, each opened when it is first asked for.
type embedders struct {
	cfg       configs.Embedder
	seed      uint64
	tokenizer *token.Tokenizer
	lock      sync.Locker // of the run's model
	moves     bool        // all weights are trained, so that there is no frozen base

	opened map[string]rewards.Embedder
	local  *local.Embedder
	shut   []func() error
}

// open is rewards.Run's Embedder.
func (e *embedders) open(name string) (rewards.Embedder, error) {
	if name == "lexical" {
		return rubricmem.Lexical(), nil
	}
	if own, ok := e.opened[name]; ok {
		return own, nil
	}
	own, err := e.make(name)
	if err != nil {
		return nil, err
	}
	e.opened[name] = own
	return own, nil
}

func (e *embedders) make(name string) (rewards.Embedder, error) {
	switch name {
	case "policy":
		if e.moves {
			return nil, errors.New("it is the run's frozen base, but model.trainable is full: take lexical, minilm or openai")
		}
		e.local = local.NewEmbedder(e.tokenizer)
		e.local.Lock = e.lock
		return e.local, nil
	case "minilm":
		if e.cfg.Path == "" {
			return nil, errors.New("embedder.path is not set: name the sentence-transformers folder (scripts/fetch-minilm.sh gets one)")
		}
		own, shut, err := openMiniLM(e.cfg.Path)
		if err != nil {
			return nil, err
		}
		e.shut = append(e.shut, shut)
		return own, nil
	case "openai":
		own, err := e.openai()
		if err != nil {
			return nil, err
		}
		e.shut = append(e.shut, own.Close)
		return own, nil
	}
	return nil, fmt.Errorf("embedder %q is unknown: use lexical, policy, minilm or openai", name)
}

func (e *embedders) openai() (*llm.Embedder, error) {
	c := e.cfg
	if c.URL == "" || c.Model == "" {
		return nil, errors.New("embedder.url or embedder.model is not set: give the server's URL, up to and with /v1, and its model's name")
	}
	o := llm.DefaultOptions()
	o.Seed = e.seed
	o.Settings = llm.Settings{
		URL: c.URL, Model: c.Model, Timeout: seconds(c.Timeout), MaxConcurrency: c.MaxConcurrency, RequestsPerMinute: c.RequestsPerMinute,
	}
	if c.APIKeyEnv != "" {
		if o.APIKey = os.Getenv(c.APIKeyEnv); o.APIKey == "" {
			return nil, fmt.Errorf("embedder.api_key_env is %s, but that environment variable is empty: export it", c.APIKeyEnv)
		}
	}
	return llm.NewEmbedder(o, c.Dimensions)
}

// bind gives an embedder that is the run's own model that model.
func (e *embedders) bind(m *policy.Model) {
	if e.local != nil {
		e.local.Bind(m)
	}
}

// preflight embeds a word by what is not the run's model, so that a wrong URL or name is known before anything is sampled.
func (e *embedders) preflight(ctx context.Context) error {
	if own, ok := e.opened["openai"]; ok {
		if _, err := own.Embed(ctx, []string{"rubric"}); err != nil {
			return fmt.Errorf("embedder openai: %w", err)
		}
	}
	return nil
}

func (e *embedders) close() error {
	var err error
	for _, shut := range e.shut {
		err = errors.Join(err, shut())
	}
	return err
}
