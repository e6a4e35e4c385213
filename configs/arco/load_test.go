package arco_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/configs"
	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/rewards/arco"
	"github.com/rubicon-rl/rubicon/trainer/env"
)

// Every combination that README.md names loads, and its reward and environment take the options.
func TestCombinations(t *testing.T) {
	files, err := filepath.Glob("*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, dataset := range []string{"hotpotqa.yaml", "2wiki.yaml", "musique.yaml"} {
		for _, backbone := range []string{"qwen3-4b.yaml", "llama-3.2-3b.yaml"} {
			for _, last := range files {
				c, _, err := configs.Load([]string{"arco.yaml", dataset, backbone, last}, nil, nil)
				if err != nil {
					t.Fatalf("%s, %s, %s: %v", dataset, backbone, last, err)
				}
				if _, err := env.NewQA(env.Run{}, c.Env.Options); err != nil {
					t.Errorf("%s: %v", dataset, err)
				}
				if c.Reward.Kind != "arco" {
					continue
				}
				options := c.Reward.Options
				if strings.HasPrefix(last, "width-") && options["k"] == 3 {
					t.Errorf("%s changes nothing", last)
				}
				if _, err := arco.New(rewards.Run{}, options); err != nil {
					t.Errorf("%s, %s, %s: %v", dataset, backbone, last, err)
				}
				tried++
			}
		}
	}
	if tried < 6*10 {
		t.Errorf("%d combinations", tried)
	}
}
