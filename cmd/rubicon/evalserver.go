package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rubicon-rl/rubicon/configs"
	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/internal/llm"
	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/trainer"
	"github.com/rubicon-rl/rubicon/trainer/env"
	"github.com/rubicon-rl/rubicon/trainer/eval"
)

// served answers benchmarks by the server of section eval.server.
type served struct {
	cfg      *configs.Config
	episodes *trainer.Episodes // nil: questions have one turn
	console  io.Writer
	way      http.RoundTripper // to the server; nil: the network
}

func (m *measuring) served() (*served, error) {
	p := &served{cfg: m.Config, episodes: m.episodes, console: m.Console}
	for _, b := range m.all {
		if err := p.takes(b.Setting(m.Config).Generation); err != nil {
			return nil, fmt.Errorf("benchmark %s: %w", b.Name, err)
		}
	}
	return p, nil
}

// takes refuses settings that OpenAI's protocol has no fields for.
func (p *served) takes(s eval.Sampling) error {
	if s.TopK != 0 || s.MinP != 0 || s.RepetitionPenalty != 1 || len(s.Stop) > 0 {
		return errors.New("eval.top_k, min_p, repetition_penalty and stop cannot be asked of a server in OpenAI's protocol: leave them, and eval.official_sampling where it sets them, at their defaults")
	}
	return nil
}

// client is opened for every sampling, since its settings are the client's; most is the longest reply in tokens.
func (p *served) client(s eval.Sampling, most int) (*llm.Client, error) {
	server := p.cfg.Eval.Server
	j := &judge{seed: uint64(p.cfg.Seed), console: p.console}
	settings, err := j.settings(configs.JudgeModel{
		URL: server.URL, Model: server.Model, APIKeyEnv: server.APIKeyEnv, Timeout: server.Timeout,
		MaxConcurrency: server.MaxConcurrency, MaxTokens: most, Temperature: &s.Temperature, TopP: &s.TopP,
	})
	if err != nil {
		return nil, err
	}
	o := llm.DefaultOptions()
	o.Settings, o.Seed, o.MaxElapsed, o.RoundTripper = settings, uint64(p.cfg.Seed), time.Hour, p.way
	o.Notify = func(text string) { fmt.Fprintf(p.console, "note: %s\n", serverWords.Replace(text)) }
	return llm.New(o)
}

// Answer implements eval.Policy. A question that the server refuses by its status (too long, or against its rules) has no answer; whatever else
// goes wrong for good is an error, and so is a server that refuses all of them.
func (p *served) Answer(ctx context.Context, asks []eval.Ask, s eval.Sampling, deliver func(i int, a eval.Answer) error) (err error) {
	turn := s.MaxTokens
	if p.episodes != nil && len(asks) > 0 && asks[0].Item.Task && p.episodes.MaxTurnLength > 0 {
		turn = min(turn, p.episodes.MaxTurnLength)
	}
	client, err := p.client(s, turn)
	if err != nil {
		return serverFault{err}
	}
	defer closing(&err, client.Close)
	if err := client.Preflight(ctx); err != nil {
		return serverFault{err}
	}
	refused := make([]error, len(asks))
	g, ctx := errgroup.WithContext(ctx)
	for i, ask := range asks {
		g.Go(func() error {
			c := dialogue{client: client, sample: ask.Repeat + ask.Try<<16, left: s.MaxTokens}
			a, err := p.one(ctx, &c, ask.Item)
			if status, ok := errors.AsType[*llm.StatusError](err); ok && errors.Is(err, rewards.ErrNoAnswer) && status.Code < 500 {
				refused[i] = fmt.Errorf("question %s: %w", ask.Item.Key, status)
				return nil
			}
			if err != nil {
				return serverFault{fmt.Errorf("question %s: %w", ask.Item.Key, err)}
			}
			return deliver(i, a)
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if len(asks) > 0 && !slices.Contains(refused, nil) {
		return fmt.Errorf("eval.server refuses all %d questions, the first one: %w", len(asks), refused[0])
	}
	for i, why := range refused {
		if why == nil {
			continue
		}
		fmt.Fprintf(p.console, "note: the server refuses %v; that counts as answered by nothing\n", why)
		if err := deliver(i, eval.Answer{Finish: eval.Refused}); err != nil {
			return err
		}
	}
	return nil
}

// one has a question answered, in several turns if it is a task.
func (p *served) one(ctx context.Context, c *dialogue, item *eval.Item) (a eval.Answer, err error) {
	if p.episodes == nil || !item.Task {
		a.Text, a.Finish, err = c.say(ctx, item.Messages)
		a.Tokens = c.tokens
		return a, err
	}
	game, now, err := p.episodes.Env.Reset(ctx, &grpo.Prompt{ID: item.Key, Messages: item.Messages, Columns: item.Row})
	if err != nil {
		return a, err
	}
	if now.Tools != nil {
		return a, errors.New("env.kind tools is played by the run's own model only: leave eval.server.url or env.kind empty")
	}
	a.Messages = now.Messages
	talk := now.Messages
	for !now.Done {
		said, _, err := c.say(ctx, talk)
		if err != nil {
			return a, err
		}
		if c.tokens >= c.left { // of the whole episode; a turn that is cut off is played as it is
			a.Finish, a.Turns = eval.CutOff, append(a.Turns, grpo.Step{Said: said, Kind: trainer.CutOff})
			break
		}
		if now, err = game.Step(ctx, said); err != nil {
			return a, err
		}
		step := grpo.Step{Said: said, Action: now.Action, Kind: string(now.Kind), Observation: observed(now)}
		a.Turns = append(a.Turns, step)
		talk = append(append(talk[:len(talk):len(talk)], grpo.Message{Role: "assistant", Content: said}), now.Messages...)
		a.Text, a.Finish = game.Answer(), eval.Stopped
	}
	a.Tokens = c.tokens
	return a, nil
}

// observed is an observation as text.
func observed(o env.Observation) string {
	var texts []string
	for _, m := range o.Messages {
		texts = append(texts, m.Content)
	}
	return strings.Join(texts, "\n")
}

// dialogue is a conversation with the server.
type dialogue struct {
	client *llm.Client
	sample int
	left   int // tokens that the policy may say in an episode
	tokens int // that it has said
}

// say has the conversation continued.
func (c *dialogue) say(ctx context.Context, messages []grpo.Message) (text, finish string, err error) {
	list := make([]llm.Message, len(messages))
	for i, m := range messages {
		list[i] = llm.Message{Role: m.Role, Content: m.Content}
	}
	reply, err := c.client.Chat(ctx, list, c.sample)
	if err != nil {
		return "", "", err
	}
	c.tokens += reply.CompletionTokens
	if reply.Truncated {
		return reply.Text, eval.CutOff, nil
	}
	return reply.Text, eval.Stopped, nil
}

// serverFault words an error of the judge's client, which speaks of section judge, for section eval.server.
type serverFault struct{ error }

func (e serverFault) Error() string { return "eval.server: " + serverWords.Replace(e.error.Error()) }

func (e serverFault) Unwrap() error { return e.error }

var serverWords = strings.NewReplacer("judge.", "eval.server.", "the judge", "the server")
