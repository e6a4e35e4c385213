package llm

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/rubicon-rl/rubicon/rewards"
)

// The kinds of things that an account counts.
const (
	calls            = iota // requests
	failures                // requests that failed
	retries                 // requests that were repeated after a failure
	repairs                 // questions asked again because of an unusable reply
	cacheHits               // questions answered without a call of their own
	lost                    // questions without an answer
	promptTokens            // of all requests
	completionTokens        // of all requests
	cost                    // money
	kinds
)

// tally is a number of each kind.
type tally [kinds]float64

func (n *tally) add(o tally) {
	for i := range n {
		n[i] += o[i]
	}
}

// put writes the numbers under their names.
func (n *tally) put(prefix string, m map[string]float64) {
	names := [kinds]string{"calls", "errors", "retries", "repairs", "cache_hits", "unanswered", "prompt_tokens", "completion_tokens", "cost"}
	for i, name := range names {
		m[prefix+name] = n[i]
	}
}

// maxLatencies bounds how many latencies an account holds; beyond it the latest count.
const maxLatencies = 1 << 14

// account is what a tier has used.
type account struct {
	mu     sync.Mutex
	used   bool
	recent tally     // since it was last taken
	before tally     // until then
	times  []float64 // seconds of the recent requests that succeeded
	nTimes int
}

// use notes that the tier was asked something.
func (a *account) use() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.used = true
}

func (a *account) count(kind int, n float64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.recent[kind] += n
}

// request counts a request that took so long.
func (a *account) request(err error, took time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.recent[calls]++
	if err != nil {
		a.recent[failures]++
		return
	}
	if len(a.times) < maxLatencies {
		a.times = append(a.times, took.Seconds())
	} else {
		a.times[a.nTimes%maxLatencies] = took.Seconds()
	}
	a.nTimes++
}

// take returns what was counted since it was last called.
func (a *account) take() (n tally, times []float64, used bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n, times = a.recent, a.times
	a.before.add(n)
	a.recent, a.times, a.nTimes = tally{}, nil, 0
	return n, times, a.used
}

// total returns what was ever counted.
func (a *account) total() (n tally, used bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n = a.before
	n.add(a.recent)
	return n, a.used
}

// Metrics returns what was counted since it was last called: judge/calls, errors, retries, repairs, cache_hits, unanswered,
// prompt_tokens, completion_tokens, cost (money), and latency_p50 and latency_p95 (seconds of a request that succeeded, if
// there was one). Once several tiers were asked, there is judge/TIER/... for each of them as well.
func (c *Client) Metrics() map[string]float64 {
	var all tally
	var times []float64
	perTier := map[rewards.Tier]map[string]float64{}
	for _, name := range tiers() {
		n, took, used := c.tiers[name].account.take()
		if !used {
			continue
		}
		all.add(n)
		times = append(times, took...)
		m := map[string]float64{}
		n.put("judge/"+string(name)+"/", m)
		quantiles("judge/"+string(name)+"/", took, m)
		perTier[name] = m
	}
	m := map[string]float64{}
	all.put("judge/", m)
	quantiles("judge/", times, m)
	if len(perTier) > 1 {
		for _, part := range perTier {
			for name, value := range part {
				m[name] = value
			}
		}
	}
	return m
}

// Totals returns the same counts since the client was made, for all tiers together.
func (c *Client) Totals() map[string]float64 {
	var all tally
	for _, name := range tiers() {
		n, _ := c.tiers[name].account.total()
		all.add(n)
	}
	m := map[string]float64{}
	all.put("judge/", m)
	return m
}

// quantiles writes the median and the 95th percentile by nearest rank.
func quantiles(prefix string, times []float64, m map[string]float64) {
	if len(times) == 0 {
		return
	}
	slices.Sort(times)
	rank := func(p float64) float64 { return times[int(math.Ceil(p*float64(len(times))))-1] }
	m[prefix+"latency_p50"], m[prefix+"latency_p95"] = rank(0.5), rank(0.95)
}
