package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/rubicon-rl/rubicon/configs"
	"github.com/rubicon-rl/rubicon/internal/analyst"
	"github.com/rubicon-rl/rubicon/internal/llm"
	"github.com/rubicon-rl/rubicon/internal/local"
	"github.com/rubicon-rl/rubicon/policy"
	"github.com/rubicon-rl/rubicon/policy/token"
	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/rewards/audit"
	"github.com/rubicon-rl/rubicon/trainer"
)

// localURL is the judge.url that means the run's own base model.
const localURL = "local"

// localTimeout: a model in this process answers when it has computed the answer.
const localTimeout = 24 * time.Hour

// noCache is the judge.cache that means that no answers are kept.
const noCache = "none"

// judge is the language model that a run's reward asks. It is opened when a provider first asks for it.
type judge struct {
	cfg       configs.Judge
	seed      uint64
	dir       string    // the run's folder; "": there is none
	console   io.Writer // is told when a server begins to fail
	tokenizer *token.Tokenizer
	lock      sync.Locker // of the run's model
	moves     bool        // all weights are trained, so that there is no frozen base

	once   sync.Once
	client *llm.Client      // nil: nobody has asked for it
	local  *local.Transport // nil: no tier is the run's own model
	second *llm.Client      // the independent judge; nil: there is none
	audit  *audit.Judge     // of client by second
	err    error
}

// open is rewards.Run's Judge.
func (j *judge) open() (rewards.Judge, error) {
	j.once.Do(func() {
		var o llm.Options
		if o, j.err = j.options(); j.err == nil {
			j.client, j.err = llm.New(o)
		}
		if j.err == nil && j.dir != "" && j.cfg.Audit.Steps > 0 {
			j.err = j.openAudit(o)
		}
	})
	switch {
	case j.err != nil:
		return nil, fmt.Errorf("open the judge: %w", j.err)
	case j.audit != nil:
		return j.audit, nil
	}
	return j.client, nil
}

// auditPatience is how long a run tries to get an answer from the independent judge, which it can do without.
const auditPatience = time.Minute

// openAudit opens the independent judge with the options of the run's: what differs is the model, that there is no budget, and
// that a run does not wait for it.
func (j *judge) openAudit(o llm.Options) (err error) {
	if o.Settings, err = j.settings(j.cfg.Audit.JudgeModel); err != nil {
		return fmt.Errorf("judge.audit: %w", err)
	}
	o.Tiers, o.BudgetTokens, o.BudgetMoney, o.SpentFile, o.Record, o.Replay = nil, 0, 0, "", "", ""
	o.MaxElapsed, o.MaxOutage = min(o.MaxElapsed, auditPatience), 0
	if j.second, err = llm.New(o); err != nil {
		return fmt.Errorf("judge.audit: %w", err)
	}
	j.audit = audit.New(j.client, j.second, j.cfg.Audit.Samples, j.seed)
	return nil
}

func (j *judge) options() (o llm.Options, err error) {
	c := j.cfg
	o = llm.DefaultOptions()
	if o.Settings, err = j.settings(c.JudgeModel); err != nil {
		return o, err
	}
	o.ResponseFormat, o.SendSeed, o.MaxRetries, o.MaxFailures = c.ResponseFormat, c.SendSeed, c.MaxRetries, c.MaxFailures
	o.RetryMin, o.RetryMax, o.MaxElapsed = seconds(c.RetryMin), seconds(c.RetryMax), seconds(c.MaxElapsed)
	o.Cooldown, o.MaxOutage = seconds(c.Cooldown), seconds(c.MaxOutage)
	o.BudgetTokens, o.BudgetMoney = int64(c.BudgetTokens), c.BudgetMoney
	o.Cache, o.CacheBytes, o.Record, o.Replay, o.Seed = c.Cache, int64(c.CacheMB)<<20, c.Record, c.Replay, j.seed
	switch {
	case c.Cache == noCache || c.Replay != "":
		o.Cache = ""
	case c.Cache == "" && j.dir != "":
		o.Cache = filepath.Join(j.dir, "judge", "cache")
	}
	if j.dir != "" {
		o.SpentFile = filepath.Join(j.dir, "judge", "spent.json")
	}
	o.Notify = func(text string) { fmt.Fprintf(j.console, "note: %s\n", text) }
	o.Tiers = map[rewards.Tier]llm.Settings{}
	for _, tier := range slices.Sorted(maps.Keys(c.Tiers)) {
		if o.Tiers[rewards.Tier(tier)], err = j.settings(c.Tiers[tier]); err != nil {
			return o, fmt.Errorf("judge.tiers.%s: %w", tier, err)
		}
	}
	return o, nil
}

func (j *judge) settings(m configs.JudgeModel) (llm.Settings, error) {
	s := llm.Settings{
		URL: m.URL, Model: m.Model, Temperature: m.Temperature, TopP: m.TopP, MaxTokens: m.MaxTokens,
		PromptPrice: m.PromptPrice, CompletionPrice: m.CompletionPrice, Timeout: seconds(m.Timeout),
		MaxConcurrency: m.MaxConcurrency, RequestsPerMinute: m.RequestsPerMinute, TokensPerMinute: m.TokensPerMinute,
	}
	if m.APIKeyEnv != "" {
		if s.APIKey = os.Getenv(m.APIKeyEnv); s.APIKey == "" {
			return s, fmt.Errorf("api_key_env is %s, but that environment variable is empty: export it", m.APIKeyEnv)
		}
	}
	if m.URL == localURL && j.moves {
		return s, fmt.Errorf("url is local, which is the run's frozen base, but model.trainable is full: set it to lora, or judge.url to a server")
	}
	switch m.URL {
	case analyst.URL:
		s.URL, s.Transport = "", analyst.Transport{}
	case localURL:
		if j.local == nil {
			j.local = local.New(j.tokenizer)
			j.local.Lock = j.lock
		}
		s.URL, s.Transport, s.Timeout = "", j.local, localTimeout
	}
	return s, nil
}

func seconds(x float64) time.Duration { return time.Duration(x * float64(time.Second)) }

// bind gives a judge that is the run's own model that model, and tries it.
func (j *judge) bind(ctx context.Context, m *policy.Model) error {
	if j.local == nil {
		return nil
	}
	j.local.Bind(m)
	return j.preflight(ctx)
}

// preflight reaches the models that will be asked. A judge that is the run's own model is tried when that is there.
func (j *judge) preflight(ctx context.Context) error {
	if j.client == nil || j.local != nil && !j.local.Bound() {
		return nil
	}
	if err := j.client.Preflight(ctx); err != nil {
		return fmt.Errorf("judge: %w", err)
	}
	if j.second != nil {
		if err := j.second.Preflight(ctx); err != nil {
			return fmt.Errorf("judge.audit: %w", err)
		}
	}
	return nil
}

// meter is what the trainer logs of the judge; nil if nobody asks one.
func (j *judge) meter() rewards.Drawer {
	if j.client == nil {
		return nil
	}
	return j.client
}

// totals is what was asked so far; nil if nobody asks one.
func (j *judge) totals() map[string]float64 {
	if j.client == nil {
		return nil
	}
	return j.client.Totals()
}

func (j *judge) close() error {
	if j.client == nil {
		return nil
	}
	err := j.client.Close()
	if j.second != nil {
		err = errors.Join(err, j.second.Close())
	}
	return err
}

// auditor is what the trainer audits the judge by; nil: nothing.
func (j *judge) auditor() trainer.Auditor {
	if j.audit == nil {
		return nil
	}
	return j.audit
}
