package grpo

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"
)

// What ARCO's own code makes of 60 batches with random settings (testdata/SOURCE.md).
func TestTurnAdvantagesAreARCOs(t *testing.T) {
	f, err := os.Open("testdata/arco_dense_advantages.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<20)
	rows := 0
	for ; lines.Scan(); rows++ {
		var r struct {
			Cfg struct {
				Signal   string  `json:"dense_signal_mode"`
				Baseline string  `json:"dense_baseline_mode"`
				Bucket   string  `json:"dense_bucket_mode"`
				Gamma    float64 `json:"dense_gamma"`
				LOO      bool    `json:"dense_bucket_leave_one_out"`
				Fallback bool    `json:"dense_bucket_fallback_to_global"`
				Scale    float64 `json:"dense_reward_scale"`
			}
			Trajectories []struct {
				Steps []struct {
					Action string
					Score  float64
				}
			}
			Buckets    [][]string
			Advantages [][]float64
		}
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		c := Default()
		c.TurnReturn, c.TurnGamma, c.TurnScale = strings.TrimSuffix(r.Cfg.Signal, "_return"), r.Cfg.Gamma, r.Cfg.Scale
		c.TurnLeaveOneOut, c.TurnFallbackToGlobal = r.Cfg.LOO, r.Cfg.Fallback
		c.TurnBaseline = map[string]string{"position_bucket": "position", "global_batch": "batch"}[r.Cfg.Baseline]
		c.TurnBucket = map[string]string{"search_terminal": "search", "step_index": "turn", "global": "all"}[r.Cfg.Bucket]
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		var episodes [][]Step
		for _, trajectory := range r.Trajectories {
			steps := []Step{}
			for _, s := range trajectory.Steps {
				steps = append(steps, Step{Action: s.Action, Value: s.Score})
			}
			episodes = append(episodes, steps)
		}
		for i, got := range c.TurnAdvantages(episodes) {
			if len(got) != len(r.Advantages[i]) {
				t.Fatalf("row %d: %v, official %v", rows, got, r.Advantages[i])
			}
			buckets := c.buckets(episodes[i])
			for k, a := range got {
				if math.Abs(a-r.Advantages[i][k]) > 1e-12 {
					t.Errorf("row %d, episode %d, turn %d (%s): %v, official %v (%s)", rows, i, k, buckets[k], a, r.Advantages[i][k], r.Buckets[i][k])
				}
			}
		}
	}
	if rows != 60 {
		t.Errorf("%d rows", rows)
	}
}

// A completion that could not be scored has no values, moves nothing, and takes nothing from the others; a group with values has signal
// though its rewards are equal.
func TestTurnsBesideAnUnscorable(t *testing.T) {
	valued := func() *Completion {
		return &Completion{Rewards: []float64{0}, Episode: &Episode{Valued: true, Steps: []Step{{Value: 1}, {Value: 2}}}}
	}
	lost := &Completion{Rewards: []float64{math.NaN()}, Episode: &Episode{Steps: []Step{{}, {}}}}
	groups := []Group{{Prompt: &Prompt{}, Completions: []*Completion{valued(), lost}}, {Prompt: &Prompt{}, Completions: []*Completion{lost, lost}}}
	if err := SetTurnAdvantages(Default(), groups); err != nil {
		t.Fatal(err)
	}
	if len(groups[0].Completions[0].Turns) != 2 || lost.Turns != nil {
		t.Errorf("turns %v and %v", groups[0].Completions[0].Turns, lost.Turns)
	}
	signal, err := HasSignal([]Column{{Name: "r", Weight: 1}}, groups)
	if err != nil || !signal[0] || signal[1] {
		t.Errorf("signal %v, error %v", signal, err)
	}
}
