// Package llm asks language models questions: it is the judge of a run. A Client is a rewards.Judge on any Transport,
// a server that speaks OpenAI's protocol or a model in this process. It reads answers strictly and asks once more for a
// better one, tries again after failures that pass, keeps to limits and a budget, remembers answers on disk, and counts.
//
// Every question ends in one of three ways: an answer that its Check accepts; rewards.ErrNoAnswer, if this question has
// none; or another error, if no question can be answered now (the key is refused, the budget is spent, ctx has ended).
package llm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/rubicon-rl/rubicon/rewards"
)

// Client is a rewards.Judge. Make it with New, close it with Close.
type Client struct {
	o       Options
	tiers   map[rewards.Tier]*tier
	flights flights
	budget  *budget
	cache   *cache    // nil: none
	record  *recorder // nil: none
	replay  *replay   // nil: models answer
	closers []io.Closer
}

// New makes a Client and opens its files; no model is asked yet.
func New(o Options) (*Client, error) {
	o.Settings = o.Settings.over(DefaultOptions().Settings)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Sleep == nil {
		o.Sleep = sleep
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	c := &Client{o: o}
	if err := c.open(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *Client) open() (err error) {
	if c.o.Replay != "" {
		c.tiers = unconnected()
		c.replay, err = openReplay(c.o.Replay)
		return err
	}
	if c.tiers, err = c.connect(); err != nil {
		return err
	}
	if c.budget, err = openBudget(&c.o); err != nil {
		return err
	}
	c.closers = append(c.closers, c.budget)
	if c.o.Cache != "" {
		if c.cache, err = openCache(c.o.Cache, c.o.CacheBytes); err != nil {
			return fmt.Errorf("judge.cache %s: %w", c.o.Cache, err)
		}
		c.closers = append(c.closers, c.cache)
	}
	if c.o.Record != "" {
		if c.record, err = openRecorder(c.o.Record); err != nil {
			return err
		}
		c.closers = append(c.closers, c.record)
	}
	return nil
}

// Close closes the client's files and lets go of its connections. No question may be in work.
func (c *Client) Close() error {
	var faults []error
	for _, closer := range c.closers {
		faults = append(faults, closer.Close())
	}
	return errors.Join(faults...)
}

// Preflight reaches every model that some tier asks, with that tier's settings. Its error says what to set.
func (c *Client) Preflight(ctx context.Context) error {
	if c.replay != nil {
		return nil
	}
	type settings struct {
		lane              *lane
		temperature, topP float64
		maxTokens         int
	}
	seen := map[settings]bool{}
	for _, name := range tiers() {
		t := c.tiers[name]
		s := settings{t.lane, *t.Temperature, *t.TopP, t.MaxTokens}
		if seen[s] {
			continue
		}
		seen[s] = true
		if err := c.reach(ctx, t); err != nil {
			if _, own := c.o.Tiers[name]; own {
				return fmt.Errorf("judge.tiers.%s: %w", name, err)
			}
			return err
		}
	}
	return nil
}

// reach looks for a tier's model, with patience for a server that is busy, and then asks it something as any question does.
func (c *Client) reach(ctx context.Context, t *tier) error {
	jitter := random(c.o.Seed, 0)
	err := c.again(ctx, t, jitter, func() error {
		within, cancel := context.WithTimeout(ctx, t.Timeout)
		defer cancel()
		err := t.Transport.Preflight(within, t.Model)
		if _, ok := errors.AsType[*StatusError](err); err != nil && !ok {
			return final{err} // a wrong address stays wrong
		}
		return err
	})
	if err != nil {
		return err
	}
	call, err := c.call(t, &rewards.Question{User: "Reply with the one word: ready"})
	if err != nil {
		return err
	}
	_, err = c.send(ctx, t, call, jitter)
	switch {
	case errors.Is(err, ErrEmpty): // it replies, and there is nothing to be said
		return nil
	case errors.Is(err, rewards.ErrNoAnswer):
		return fmt.Errorf("trying the judge with temperature %v, top_p %v and max_tokens %d: %w; set what it takes", *t.Temperature, *t.TopP, t.MaxTokens, err)
	}
	return err
}
