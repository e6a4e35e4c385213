package main

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/rewards"
	rewardhttp "github.com/rubicon-rl/rubicon/rewards/http"
)

// The example must speak what the provider speaks.
func TestTheProviderUnderstandsTheExample(t *testing.T) {
	server := httptest.NewServer(handler("s3cret"))
	defer server.Close()
	t.Setenv("RUBICON_TEST_AUTH", "Bearer s3cret")
	p, err := rewardhttp.New(rewards.Run{}, map[string]any{"url": server.URL + "/score", "headers_env": map[string]any{"Authorization": "RUBICON_TEST_AUTH"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.(rewards.Preflighter).Preflight(t.Context()); err != nil {
		t.Fatal(err)
	}
	group := grpo.Group{Prompt: &grpo.Prompt{ID: "p"}, Completions: []*grpo.Completion{
		{Text: ""}, {Text: strings.Repeat("word ", 20)}, {Text: "and then", Truncated: true}}}
	scores, err := p.Score(t.Context(), 0, []grpo.Group{group})
	if err != nil {
		t.Fatal(err)
	}
	if scores[0].Value != 1 || scores[1].Value != 0.5 || !scores[2].Unscorable || scores[2].Reason != "cut off" {
		t.Errorf("%+v", scores)
	}
	t.Setenv("RUBICON_TEST_AUTH", "Bearer wrong")
	p, err = rewardhttp.New(rewards.Run{}, map[string]any{"url": server.URL + "/score", "headers_env": map[string]any{"Authorization": "RUBICON_TEST_AUTH"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.(rewards.Preflighter).Preflight(t.Context()); err == nil || !strings.Contains(err.Error(), "401 Unauthorized") {
		t.Errorf("error %v", err)
	}
}
