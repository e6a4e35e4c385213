package llm

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rubicon-rl/rubicon/rewards"
)

// spender is a fake whose every reply costs 1000 tokens in and 200 out.
func spender() fake {
	return func(context.Context, *Call) (*Reply, error) {
		return &Reply{Text: "ok", PromptTokens: 1000, CompletionTokens: 200}, nil
	}
}

func TestBudget(t *testing.T) {
	in, out := 3.0, 15.0 // 1000 * 3/1e6 + 200 * 15/1e6 = 0.006 for a reply
	for name, c := range map[string]struct {
		change func(*Options)
		want   int // answers before the budget is spent
		set    string
	}{
		"tokens": {func(o *Options) { o.BudgetTokens = 3000 }, 3, "judge.budget_tokens"}, // 1200, 2400, 3600
		"money":  {func(o *Options) { o.BudgetMoney = 0.011 }, 2, "judge.budget_money"},  // 0.006, 0.012
	} {
		o := options(spender())
		o.PromptPrice, o.CompletionPrice = &in, &out
		o.SpentFile = filepath.Join(t.TempDir(), "run", "spent.json")
		o.Cache = t.TempDir()
		c.change(&o)
		ask := func(first, n int) (answers int, err error) {
			judge := client(t, o)
			for i := first; i < first+n && err == nil; i++ {
				if _, err = judge.Ask(t.Context(), different(i)); err == nil {
					answers++
				}
			}
			return answers, err
		}
		if n, err := ask(0, 1); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		// A new client goes on from what the first one spent, and does not pay again for what it knows.
		n, err := ask(0, 10)
		if n != c.want || !errors.Is(err, ErrBudget) || errors.Is(err, rewards.ErrNoAnswer) || !strings.Contains(err.Error(), c.set) {
			t.Errorf("%s: %d answers, %v", name, n, err)
		}
		want := Spent{PromptTokens: int64(1000 * c.want), CompletionTokens: int64(200 * c.want), Money: 0.006 * float64(c.want)}
		judge := client(t, o)
		if got := judge.Spent(); got.PromptTokens != want.PromptTokens || got.CompletionTokens != want.CompletionTokens || math.Abs(got.Money-want.Money) > 1e-12 {
			t.Errorf("%s: spent %+v, want %+v", name, got, want)
		}
		if err := judge.SetSpent(Spent{}); err != nil {
			t.Fatal(err)
		}
		if _, err := judge.Ask(t.Context(), different(100)); err != nil {
			t.Errorf("%s: after SetSpent: %v", name, err)
		}
		if got, want := client(t, o).Spent(), judge.Spent(); got != want || got.PromptTokens != 1000 {
			t.Errorf("%s: the file says %+v, want %+v", name, got, want)
		}
	}
}

// A failed call that was paid counts, and so do the tokens of a server that does not count them.
func TestSpentOfOddReplies(t *testing.T) {
	replies := []*Reply{{PromptTokens: 7, CompletionTokens: 1}, nil, {Text: "eleven byte"}}
	n := 0
	o := options(fake(func(context.Context, *Call) (*Reply, error) {
		n++
		if n < 3 {
			return replies[n-1], errors.New("broken")
		}
		return replies[2], nil
	}))
	c := client(t, o)
	if _, err := c.Ask(t.Context(), different(0)); err != nil {
		t.Fatal(err)
	}
	// "question 0" is 10 bytes, 3 tokens at four bytes each; the answer is 11 bytes, 3 tokens.
	if got, want := c.Spent(), (Spent{PromptTokens: 7 + 3, CompletionTokens: 1 + 3}); got != want {
		t.Errorf("spent %+v, want %+v", got, want)
	}
}

func TestMetrics(t *testing.T) {
	now := time.Unix(0, 0)
	script := []struct {
		took time.Duration
		text string
		err  error
	}{
		{1 * time.Second, `{"ok": true}`, nil},      // question 0
		{9 * time.Second, "", errors.New("broken")}, // question 1: a failure,
		{2 * time.Second, `{"okay": true}`, nil},    // a reply that fails its Check,
		{3 * time.Second, `{"ok": true}`, nil},      // the second one
		{4 * time.Second, `no`, nil},                // the other tier: unanswered
		{5 * time.Second, `no`, nil},
	}
	one, two := 1.0, 2.0
	o := options(fake(func(context.Context, *Call) (*Reply, error) {
		s := script[0]
		script = script[1:]
		now = now.Add(s.took)
		if s.err != nil {
			return nil, s.err
		}
		return &Reply{Text: s.text, PromptTokens: 1e6, CompletionTokens: 5e5}, nil
	}))
	o.Now = func() time.Time { return now }
	o.PromptPrice, o.CompletionPrice, o.Cache = &one, &two, t.TempDir()
	c := client(t, o)
	ask := func(tier rewards.Tier, user string) {
		q := verdict
		q.Tier, q.User = tier, user
		_, _ = c.Ask(t.Context(), q)
	}
	ask(rewards.TierScore, "0")
	ask(rewards.TierScore, "1")
	ask(rewards.TierScore, "0")
	first := map[string]float64{
		"judge/calls": 4, "judge/errors": 1, "judge/retries": 1, "judge/repairs": 1, "judge/cache_hits": 1, "judge/unanswered": 0,
		"judge/prompt_tokens": 3e6, "judge/completion_tokens": 1.5e6, "judge/cost": 6, // 3 replies of 1 * 1 + 0.5 * 2
		"judge/latency_p50": 2, "judge/latency_p95": 3, // of 1, 2, 3
	}
	if got := c.Metrics(); !reflect.DeepEqual(got, first) {
		t.Errorf("got %v\nwant %v", got, first)
	}
	ask(rewards.TierUpdate, "2")
	second := c.Metrics()
	for name, want := range map[string]float64{
		"judge/calls": 2, "judge/unanswered": 1, "judge/repairs": 1, "judge/latency_p50": 4, "judge/latency_p95": 5,
		"judge/update/calls": 2, "judge/update/unanswered": 1, "judge/update/cost": 4, "judge/update/latency_p95": 5,
		"judge/score/calls": 0, "judge/score/cost": 0,
	} {
		if got, ok := second[name]; !ok || got != want {
			t.Errorf("%s = %v, want %v", name, got, want)
		}
	}
	if _, ok := second["judge/score/latency_p50"]; ok {
		t.Error("a latency without a request")
	}
	if got := c.Totals(); got["judge/calls"] != 6 || got["judge/cost"] != 10 || got["judge/unanswered"] != 1 {
		t.Errorf("totals %v", got)
	}
}

// What cannot be counted must not be spent.
func TestSpentFileFails(t *testing.T) {
	o := options(spender())
	o.SpentFile = filepath.Join(t.TempDir(), "spent.json")
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil { // a disk that fails
		t.Fatal(err)
	}
	if _, err := c.Ask(t.Context(), different(0)); !errors.Is(err, os.ErrClosed) || errors.Is(err, rewards.ErrNoAnswer) {
		t.Errorf("got %v", err)
	}
}

func TestQuantiles(t *testing.T) {
	var times []float64
	for i := 20; i > 0; i-- {
		times = append(times, float64(i))
	}
	m := map[string]float64{}
	quantiles("", times, m)
	// By nearest rank: the 10th and the 19th of 20.
	if want := map[string]float64{"latency_p50": 10, "latency_p95": 19}; !reflect.DeepEqual(m, want) {
		t.Errorf("got %v, want %v", m, want)
	}
}

// A client that nobody asks for metrics must not grow.
func TestLatenciesAreBounded(t *testing.T) {
	var a account
	for i := range maxLatencies + 10 {
		a.request(nil, time.Duration(i)*time.Second)
	}
	n, times, _ := a.take()
	if n[calls] != maxLatencies+10 || len(times) != maxLatencies || times[9] != maxLatencies+9 || times[10] != 10 {
		t.Errorf("%v calls, %d latencies, %v", n[calls], len(times), times[9:11])
	}
}
