package llm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/rubicon-rl/rubicon/internal/suggest"
	"github.com/rubicon-rl/rubicon/rewards"
)

// Settings are what a tier may have of its own. In a tier, nil, "" and 0 take the default's value.
type Settings struct {
	Transport Transport // instead of a server, such as a model in this process
	URL       string    // of an OpenAI-compatible server
	// APIKey is for the server at URL. A tier with a URL of its own does not take the default's key, which is not meant
	// for that server.
	APIKey          string
	Model           string
	ResponseFormat  string        // auto, json_schema, json_object or none
	Temperature     *float64      // 0: greedy
	TopP            *float64      // 1: off
	MaxTokens       int           // of one reply
	PromptPrice     *float64      // money for a million tokens
	CompletionPrice *float64      // the same
	Timeout         time.Duration // of one request

	// Limits of a server; tiers with the same server, model and limits share them.
	MaxConcurrency    int // questions in work at once
	RequestsPerMinute int // 0: no limit
	TokensPerMinute   int // 0: no limit
}

// Options describe a Client. DefaultOptions fills all that has a default.
type Options struct {
	Settings                           // of every tier that has none of its own
	Tiers    map[rewards.Tier]Settings // what some tiers have of their own

	SendSeed    bool          // off for servers that refuse the field seed
	MaxRetries  int           // of a request, after failures that pass
	RetryMin    time.Duration // the first pause, on average; each next one is twice as long
	RetryMax    time.Duration // the longest pause, on average, unless the server asks for more
	MaxElapsed  time.Duration // no retry begins later than this after the first request
	MaxFailures int           // in a row, after which the server is left alone; 0: it never is
	Cooldown    time.Duration // how long it is left alone before one question tries it
	MaxOutage   time.Duration // how long questions wait for a server that is left alone; then none can be answered

	BudgetTokens int64   // 0: no limit
	BudgetMoney  float64 // 0: no limit
	SpentFile    string  // keeps what was spent over restarts; "": nothing does

	Cache      string // folder of answers that need not be asked for again; "": none
	CacheBytes int64  // of it
	Record     string // file to which questions and answers are added; "": none
	Replay     string // file that answers instead of a model; "": none

	Seed         uint64            // of sampling and of the pauses' jitter
	RoundTripper http.RoundTripper // to servers; nil: the network
	Notify       func(text string) // is told when a server begins to fail; nil: nobody is
	Now          func() time.Time  // nil: the clock
	// Sleep returns after d, or with an error when ctx ends; nil: by the clock.
	Sleep func(ctx context.Context, d time.Duration) error
}

// DefaultOptions lack a URL and a model.
func DefaultOptions() Options {
	zero, one := 0.0, 1.0
	return Options{
		Settings: Settings{
			ResponseFormat: formatAuto, Temperature: &zero, TopP: &one, MaxTokens: 2048, PromptPrice: &zero, CompletionPrice: &zero,
			Timeout: 2 * time.Minute, MaxConcurrency: 16,
		},
		SendSeed: true, MaxRetries: 5, RetryMin: time.Second, RetryMax: time.Minute, MaxElapsed: 10 * time.Minute,
		MaxFailures: 20, Cooldown: 30 * time.Second, MaxOutage: 5 * time.Minute,
		CacheBytes: 1 << 30,
	}
}

// tiers lists what a question's tier may be.
func tiers() []rewards.Tier {
	return []rewards.Tier{rewards.TierScore, rewards.TierAnalyze, rewards.TierSummarize, rewards.TierQuery, rewards.TierUpdate}
}

// over is s with what it leaves open taken from base.
func (s Settings) over(base Settings) Settings {
	if s.Transport == nil && s.URL == "" {
		s.Transport, s.URL, s.APIKey = base.Transport, base.URL, cmp.Or(s.APIKey, base.APIKey)
	}
	s.Model = cmp.Or(s.Model, base.Model)
	s.ResponseFormat = cmp.Or(s.ResponseFormat, base.ResponseFormat)
	s.Temperature = cmp.Or(s.Temperature, base.Temperature)
	s.TopP = cmp.Or(s.TopP, base.TopP)
	s.MaxTokens = cmp.Or(s.MaxTokens, base.MaxTokens)
	s.PromptPrice = cmp.Or(s.PromptPrice, base.PromptPrice)
	s.CompletionPrice = cmp.Or(s.CompletionPrice, base.CompletionPrice)
	s.Timeout = cmp.Or(s.Timeout, base.Timeout)
	s.MaxConcurrency = cmp.Or(s.MaxConcurrency, base.MaxConcurrency)
	s.RequestsPerMinute = cmp.Or(s.RequestsPerMinute, base.RequestsPerMinute)
	s.TokensPerMinute = cmp.Or(s.TokensPerMinute, base.TokensPerMinute)
	return s
}

// check reports every fault of the options.
func (o *Options) check() error {
	faults := []error{o.Settings.check("judge")}
	for _, name := range slices.Sorted(maps.Keys(o.Tiers)) {
		if !slices.Contains(tiers(), name) {
			faults = append(faults, unknownTier(name))
			continue
		}
		faults = append(faults, o.Tiers[name].over(o.Settings).check("judge.tiers."+string(name)))
	}
	for _, c := range []struct {
		bad  bool
		text string
	}{
		{o.MaxRetries < 0, "set judge.max_retries >= 0"},
		{o.RetryMin <= 0 || o.RetryMax < o.RetryMin, "set judge.retry_min > 0 and judge.retry_max >= judge.retry_min"},
		{o.MaxElapsed <= 0, "set judge.max_elapsed > 0"},
		{o.MaxFailures < 0, "set judge.max_failures >= 0"},
		{o.Cooldown <= 0 || o.MaxOutage < 0, "set judge.cooldown > 0 and judge.max_outage >= 0"},
		{o.BudgetTokens < 0, "set judge.budget_tokens >= 0"},
		{!(o.BudgetMoney >= 0), "set judge.budget_money >= 0"},
		{o.BudgetMoney > 0 && !o.priced(), "judge.budget_money counts nothing without prices: set judge.prompt_price and judge.completion_price"},
		{o.Cache != "" && o.CacheBytes < 1<<20, "set judge.cache_mb >= 1"},
		{o.Record != "" && o.Replay != "", "set judge.record or judge.replay, not both"},
	} {
		if c.bad {
			faults = append(faults, errors.New(c.text))
		}
	}
	return errors.Join(faults...)
}

// priced tells whether anything costs money.
func (o *Options) priced() bool {
	return slices.ContainsFunc(tiers(), func(name rewards.Tier) bool {
		s := o.Tiers[name].over(o.Settings)
		return *s.PromptPrice > 0 || *s.CompletionPrice > 0
	})
}

// check reports every fault of complete settings; at is their place in the configuration.
func (s Settings) check(at string) error {
	var faults []error
	for _, c := range []struct {
		bad  bool
		text string
	}{
		{!(*s.Temperature >= 0 && *s.Temperature <= 2), "temperature between 0 and 2"},
		{!(*s.TopP > 0 && *s.TopP <= 1), "top_p above 0 and up to 1"},
		{s.MaxTokens < 1, "max_tokens >= 1"},
		{!price(*s.PromptPrice), "prompt_price >= 0"},
		{!price(*s.CompletionPrice), "completion_price >= 0"},
		{s.Timeout <= 0, "timeout > 0"},
		{s.MaxConcurrency < 1, "max_concurrency >= 1"},
		{s.RequestsPerMinute < 0, "requests_per_minute >= 0"},
		{s.TokensPerMinute < 0, "tokens_per_minute >= 0"},
		{!slices.Contains([]string{formatAuto, formatSchema, formatObject, formatNone}, s.ResponseFormat),
			"response_format to auto, json_schema, json_object or none"},
	} {
		if c.bad {
			faults = append(faults, fmt.Errorf("set %s.%s", at, c.text))
		}
	}
	return errors.Join(faults...)
}

func price(x float64) bool { return x >= 0 && !math.IsInf(x, 0) }

// unknownTier is the error for a tier that there is not.
func unknownTier(name rewards.Tier) error {
	known := make([]string, 0, len(tiers()))
	for _, t := range tiers() {
		known = append(known, string(t))
	}
	if best := suggest.Nearest(string(name), known); best != "" {
		return fmt.Errorf("unknown tier %q: did you mean %q?", name, best)
	}
	return fmt.Errorf("unknown tier %q: use one of %q", name, known)
}
