package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rubicon-rl/rubicon/configs"
	"github.com/rubicon-rl/rubicon/internal/llm"
	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/trainer/eval"
)

// served answers benchmarks by a server of section eval.server.
type served struct {
	cfg     *configs.Config
	console io.Writer
}

// client opens the client of the server for answers that are sampled as s says.
func (p *served) client(s eval.Sampling) (*llm.Client, error) {
	if s.TopK != 0 || s.MinP != 0 || s.RepetitionPenalty != 1 || len(s.Stop) > 0 {
		return nil, errors.New("top_k, min_p, repetition_penalty and stop cannot be asked of a server in OpenAI's protocol: leave them at their defaults in section eval, and official_sampling off for benchmarks that have them")
	}
	server := p.cfg.Eval.Server
	j := &judge{cfg: configs.Judge{}, seed: uint64(p.cfg.Seed), console: p.console}
	settings, err := j.settings(configs.JudgeModel{
		URL: server.URL, Model: server.Model, APIKeyEnv: server.APIKeyEnv, Timeout: server.Timeout,
		MaxConcurrency: server.MaxConcurrency, MaxTokens: s.MaxTokens, Temperature: &s.Temperature, TopP: &s.TopP,
	})
	if err != nil {
		return nil, err
	}
	o := llm.DefaultOptions()
	o.Settings, o.Seed, o.MaxElapsed = settings, uint64(p.cfg.Seed), time.Hour
	o.Notify = func(text string) { fmt.Fprintf(p.console, "note: %s\n", text) }
	return llm.New(o)
}

// Answer implements eval.Policy. A question that the server refuses, as too long or for its content, is delivered as refused; a server that
// refuses all of them is an error.
func (p *served) Answer(ctx context.Context, asks []eval.Ask, s eval.Sampling, deliver func(i int, a eval.Answer) error) error {
	client, err := p.client(s)
	if err == nil {
		err = client.Preflight(ctx)
	}
	if err != nil {
		return fmt.Errorf("eval.server: %w", err)
	}
	refused := make([]error, len(asks))
	g, within := errgroup.WithContext(ctx)
	for i, a := range asks {
		g.Go(func() error {
			answer, err := ask(within, client, a)
			if errors.Is(err, rewards.ErrNoAnswer) {
				refused[i] = fmt.Errorf("question %s: %w", a.Item.Key, err)
				return nil
			}
			if err != nil {
				return err
			}
			return deliver(i, answer)
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if !slices.Contains(refused, nil) {
		return fmt.Errorf("eval.server refuses all %d questions, the first with: %w", len(asks), refused[0])
	}
	for i, why := range refused {
		if why == nil {
			continue
		}
		fmt.Fprintf(p.console, "note: %v\n", why)
		if err := deliver(i, eval.Answer{Finish: eval.Refused}); err != nil {
			return err
		}
	}
	return nil
}

// ask asks one question.
func ask(ctx context.Context, client *llm.Client, a eval.Ask) (eval.Answer, error) {
	var messages []llm.Message
	for _, m := range a.Item.Messages {
		messages = append(messages, llm.Message{Role: m.Role, Content: m.Content})
	}
	reply, err := client.Chat(ctx, messages, a.Repeat)
	if err != nil {
		return eval.Answer{}, err
	}
	finish := eval.Stopped
	if reply.Truncated {
		finish = eval.CutOff
	}
	return eval.Answer{Text: reply.Text, Finish: finish, Tokens: reply.CompletionTokens}, nil
}
