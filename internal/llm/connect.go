package llm

import (
	"fmt"

	"github.com/rubicon-rl/rubicon/rewards"
)

// tier is a class of questions: its settings, the way to its model, and its account.
type tier struct {
	Settings
	lane    *lane
	account account
}

// unconnected makes tiers that only count.
func unconnected() map[rewards.Tier]*tier {
	m := map[rewards.Tier]*tier{}
	for _, name := range tiers() {
		m[name] = &tier{}
	}
	return m
}

// endpoint is where a tier's questions go.
type endpoint struct {
	given            rewards.Tier // the tier that brought its own Transport; "": none did
	url, key, format string
}

// shared is what tiers have in common if they share a lane.
type shared struct {
	endpoint
	model                         string
	concurrency, requests, tokens int
}

// connect makes the tiers, each with a transport and a lane that it may share with others.
func (c *Client) connect() (map[rewards.Tier]*tier, error) {
	made, transports, lanes := map[rewards.Tier]*tier{}, map[endpoint]Transport{}, map[shared]*lane{}
	for _, name := range tiers() {
		s := c.o.Tiers[name].over(c.o.Settings)
		to := c.endpoint(name, &s)
		if s.Transport == nil && transports[to] == nil {
			server, err := c.server(&s)
			if err != nil {
				return nil, fmt.Errorf("judge, tier %s: %w", name, err)
			}
			transports[to] = server
		}
		if s.Transport == nil {
			s.Transport = transports[to]
		}
		common := shared{to, s.Model, s.MaxConcurrency, s.RequestsPerMinute, s.TokensPerMinute}
		if lanes[common] == nil {
			lanes[common] = newLane(&c.o, &s)
		}
		made[name] = &tier{Settings: s, lane: lanes[common]}
	}
	return made, nil
}

// endpoint tells where the questions of a tier with the complete settings s go. A given Transport is told by the tier that
// brought it, since it may be of a type that cannot be compared.
func (c *Client) endpoint(name rewards.Tier, s *Settings) endpoint {
	switch {
	case s.Transport == nil:
		return endpoint{url: s.URL, key: s.APIKey, format: s.ResponseFormat}
	case c.o.Tiers[name].Transport != nil:
		return endpoint{given: name}
	}
	return endpoint{}
}

// server makes the transport to a server, which the client closes.
func (c *Client) server(s *Settings) (Transport, error) {
	server, err := NewOpenAI(OpenAIOptions{
		URL: s.URL, APIKey: s.APIKey, ResponseFormat: s.ResponseFormat, SendSeed: c.o.SendSeed, RoundTripper: c.o.RoundTripper,
	})
	if err != nil {
		return nil, err
	}
	c.closers = append(c.closers, server)
	return server, nil
}
