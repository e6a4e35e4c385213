package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rubicon-rl/rubicon/configs"
	"github.com/rubicon-rl/rubicon/internal/llm"
	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/trainer"
	"github.com/rubicon-rl/rubicon/trainer/eval"
)

// served answers benchmarks by a server of section eval.server.
type served struct{ client *llm.Client }

// newServed opens the client of the server.
func newServed(c *configs.Config, console io.Writer) (*served, error) {
	s := trainer.BenchmarkSampling(c)
	if s.TopK != 0 || s.MinP != 0 || s.RepetitionPenalty != 1 || len(s.Stop) > 0 {
		return nil, errors.New("eval.top_k, min_p, repetition_penalty and stop cannot be asked of a server in OpenAI's protocol: leave them at their defaults")
	}
	j := &judge{cfg: configs.Judge{}, seed: uint64(c.Seed), console: console}
	settings, err := j.settings(configs.JudgeModel{
		URL: c.Eval.Server.URL, Model: c.Eval.Server.Model, APIKeyEnv: c.Eval.Server.APIKeyEnv, Timeout: c.Eval.Server.Timeout,
		MaxConcurrency: c.Eval.Server.MaxConcurrency, MaxTokens: s.MaxTokens, Temperature: &s.Temperature, TopP: &s.TopP,
	})
	if err != nil {
		return nil, fmt.Errorf("eval.server: %w", err)
	}
	o := llm.DefaultOptions()
	o.Settings, o.Seed, o.MaxElapsed = settings, uint64(c.Seed), time.Hour
	o.Notify = func(text string) { fmt.Fprintf(console, "note: %s\n", text) }
	client, err := llm.New(o)
	if err != nil {
		return nil, fmt.Errorf("eval.server: %w", err)
	}
	return &served{client}, nil
}

// Answer implements eval.Policy.
func (p *served) Answer(ctx context.Context, asks []eval.Ask, _ eval.Sampling, deliver func(i int, a eval.Answer) error) error {
	if err := p.client.Preflight(ctx); err != nil {
		return fmt.Errorf("eval.server: %w", err)
	}
	g, ctx := errgroup.WithContext(ctx)
	for i, a := range asks {
		g.Go(func() error {
			var messages []llm.Message
			for _, m := range a.Item.Messages {
				messages = append(messages, llm.Message{Role: m.Role, Content: m.Content})
			}
			reply, err := p.client.Chat(ctx, messages, a.Repeat)
			switch {
			case errors.Is(err, rewards.ErrNoAnswer):
				return fmt.Errorf("question %s: the server refuses it: %w", a.Item.Key, err)
			case err != nil:
				return err
			}
			finish := "stop"
			if reply.Truncated {
				finish = "length"
			}
			return deliver(i, eval.Answer{Text: reply.Text, Finish: finish, Tokens: reply.CompletionTokens})
		})
	}
	return g.Wait()
}
