package trainer

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/rubicon-rl/rubicon/configs"
	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/internal/dist"
	"github.com/rubicon-rl/rubicon/policy"
	"github.com/rubicon-rl/rubicon/policy/token"
	"github.com/rubicon-rl/rubicon/rewards"
)

// Rollouts samples completions of a policy and has them scored, in training and in evaluation alike.
type Rollouts struct {
	Config    *configs.Config
	Model     *policy.Model
	Adapter   string
	Tokenizer *token.Tokenizer
	Provider  rewards.Provider
	Name      string      // of the provider, in metrics
	Lock      sync.Locker // as in Parts
	Episodes  *Episodes   // nil: completions have one turn
	Group     *dist.Group // shares the prompts; its rank 0 alone has the provider
	external  *external   // samples in place of Model; nil: Model does
}

// asking runs f, which may use the model for a judge of its own.
func (r *Rollouts) asking(f func() error) error {
	if r.Lock != nil {
		r.Lock.Unlock()
		defer r.Lock.Lock()
	}
	return f()
}

// Sample draws n completions for each prompt, of which each rank samples a part. The run's seed, stream and the prompt's ID name
// their random numbers, so that it does not matter who samples what.
func (r *Rollouts) Sample(ctx context.Context, prompts []*grpo.Prompt, n int, s configs.Sampling, stream ...uint64) ([]grpo.Group, error) {
	from, to := r.Group.Share(len(prompts))
	mine, err := r.sample(ctx, prompts[from:to], n, s, stream...)
	if err != nil || r.Group.World() == 1 {
		return mine, err
	}
	completions := make([][]*grpo.Completion, len(mine))
	for i, g := range mine {
		completions[i] = g.Completions
	}
	all, err := dist.Gather(ctx, r.Group, "samples", completions)
	if err != nil {
		return nil, err
	}
	groups := make([]grpo.Group, len(prompts))
	for i, c := range slices.Concat(all...) {
		groups[i] = grpo.Group{Prompt: prompts[i], Completions: c}
	}
	return groups, nil
}

func (r *Rollouts) sample(ctx context.Context, prompts []*grpo.Prompt, n int, s configs.Sampling, stream ...uint64) ([]grpo.Group, error) {
	reqs := make([]policy.Request, len(prompts))
	for i, p := range prompts {
		key := append([]uint64{uint64(r.Config.Seed)}, stream...)
		reqs[i] = policy.Request{Prompt: p.Tokens, N: n, Stream: append(key, promptKey(p))}
	}
	params := r.sampling(s)
	var games [][]*played
	if e := r.Episodes; e != nil {
		var err error
		if games, err = e.begin(ctx, prompts, reqs, s, params.Decode); err != nil {
			return nil, err
		}
		if e.MaxTurnLength > 0 {
			params.MaxNewTokens = min(params.MaxNewTokens, e.MaxTurnLength)
		}
	}
	samples, err := r.generate(ctx, reqs, params)
	if err != nil {
		return nil, err
	}
	groups := make([]grpo.Group, len(prompts))
	for i, p := range prompts {
		groups[i].Prompt = p
		for k, s := range samples[i] {
			c := &grpo.Completion{
				Tokens: s.Tokens, LogP: s.LogP, Filtered: s.Filtered,
				Text: r.Tokenizer.Decode(s.Tokens, true), Truncated: s.Finish == "length",
			}
			if games != nil {
				games[i][k].record(c, s)
			}
			groups[i].Completions = append(groups[i].Completions, c)
		}
	}
	return groups, nil
}

// generate samples on the run's model, or on the engine that does so in its place.
func (r *Rollouts) generate(ctx context.Context, reqs []policy.Request, p policy.SamplingParams) ([][]policy.Sample, error) {
	if r.external != nil {
		return r.external.sample(ctx, r.Model, r.Adapter, reqs, p)
	}
	return r.Model.Generate(ctx, reqs, policy.GenerateOptions{
		Adapter: r.Adapter, MaxBatch: r.Config.Rollout.MaxBatch, KVTokens: r.Config.Rollout.KVTokens, SamplingParams: p,
	})
}

func (r *Rollouts) sampling(s configs.Sampling) policy.SamplingParams {
	greedy := s.Temperature == 0
	if greedy {
		s.Temperature = 1 // of the log-probabilities that are noted
	}
	return policy.SamplingParams{
		Temperature: float32(s.Temperature), Greedy: greedy, TopK: s.TopK, TopP: float32(s.TopP), MinP: float32(s.MinP),
		RepetitionPenalty: float32(s.RepetitionPenalty), MaxNewTokens: s.MaxCompletionLength, Stop: s.Stop,
		EOS: EOS(r.Model.Config(), r.Tokenizer), Decode: func(ids []int32) string { return r.Tokenizer.Decode(ids, true) },
	}
}

// EOS is the set of ids that end a completion: the model's and the tokenizer's.
func EOS(c policy.Config, t *token.Tokenizer) []int32 {
	ids := slices.Clone(c.EOS)
	if id := t.EOS(); id >= 0 && !slices.Contains(ids, id) {
		ids = append(ids, id)
	}
	return ids
}

// Scored is what a provider says of a batch, beside the Rewards that it set.
type Scored struct {
	Columns    []grpo.Column
	Details    map[*grpo.Completion]Detail
	Unscorable float64            // share of completions that could not be scored
	Criteria   map[string]float64 // criteria/NAME/mean and /std: credit of each part of the scores
}

// Detail is what a provider says of a completion beside its value.
type Detail struct {
	Reason string
	Parts  []rewards.Part
}

// Score sets Rewards of every completion to what the provider says. If more than reward.max_unscorable of them could
// not be scored, it asks again, reward.score_retries times, and then gives up with ErrUnscored.
func (r *Rollouts) Score(ctx context.Context, step int, groups []grpo.Group) (Scored, error) {
	for try := 0; ; try++ {
		out, err := r.scoreOnce(ctx, step, groups)
		if err != nil || out.Unscorable <= r.Config.Reward.MaxUnscorable {
			return out, err
		}
		if try == r.Config.Reward.ScoreRetries {
			return Scored{}, fmt.Errorf("%.0f%% of the completions %w (reward.max_unscorable is %v), the first because: %s",
				100*out.Unscorable, ErrUnscored, r.Config.Reward.MaxUnscorable, firstReason(groups, out.Details))
		}
	}
}

// firstReason says why the first unscorable completion is.
func firstReason(groups []grpo.Group, details map[*grpo.Completion]Detail) string {
	for _, g := range groups {
		for _, c := range g.Completions {
			if c.Unscorable() {
				return details[c].Reason
			}
		}
	}
	return ""
}

func (r *Rollouts) scoreOnce(ctx context.Context, step int, groups []grpo.Group) (Scored, error) {
	var scores []rewards.Score
	err := r.asking(func() (err error) {
		scores, err = r.Provider.Score(ctx, step, groups)
		return err
	})
	if err != nil {
		return Scored{}, err
	}
	var rows []*grpo.Completion
	for _, g := range groups {
		rows = append(rows, g.Completions...)
	}
	if len(scores) != len(rows) {
		return Scored{}, fmt.Errorf("%s gave %d scores for %d completions", r.Name, len(scores), len(rows))
	}
	out := Scored{Details: make(map[*grpo.Completion]Detail, len(rows))}
	itself := grpo.Column{Name: r.Name, Weight: r.Config.Reward.Weight}
	out.Columns = []grpo.Column{itself}
	for i, c := range rows {
		if c.Episode != nil && c.Episode.Lost != "" && !scores[i].Unscorable {
			scores[i] = lost(scores[i], c.Episode.Lost)
		}
		s := scores[i]
		columns := columnsOf(s, itself)
		if i == 0 {
			out.Columns = columns
		}
		if !slices.Equal(columns, out.Columns) {
			return Scored{}, fmt.Errorf("%s gave columns %v for one completion and %v for another", r.Name, out.Columns, columns)
		}
		c.Rewards = valuesOf(s)
		if c.Unscorable() {
			out.Unscorable++
		}
		if s.Turns != nil {
			if err := noteTurns(c, s.Turns); err != nil {
				return Scored{}, fmt.Errorf("%s: %w", r.Name, err)
			}
		}
		out.Details[c] = Detail{s.Reason, s.Parts}
	}
	out.Unscorable /= math.Max(float64(len(rows)), 1)
	out.Criteria = criteria(scores)
	return out, nil
}

// lost is a score of an episode that the environment could not play to its end: it says nothing of the policy.
func lost(s rewards.Score, reason string) rewards.Score {
	out := rewards.Unscorable(reason)
	for _, c := range s.Columns {
		c.Value = math.NaN()
		out.Columns = append(out.Columns, c)
	}
	return out
}

// noteTurns notes the values that a provider gives the turns of an episode.
func noteTurns(c *grpo.Completion, values []float64) error {
	if c.Episode == nil || len(values) != len(c.Episode.Steps) {
		return fmt.Errorf("a score has values for %d turns, which the completion has not", len(values))
	}
	for i, v := range values {
		c.Episode.Steps[i].Value = v
	}
	c.Episode.Valued = true
	return nil
}

// criteria are mean and standard deviation of the credit that each part gives, over the scores that have it. Parts that
// belong to one prompt alone are left out.
func criteria(scores []rewards.Score) map[string]float64 {
	credits := map[string][]float64{}
	for _, s := range scores {
		for _, p := range s.Parts {
			if !p.Local {
				credits[p.Name] = append(credits[p.Name], p.Credit)
			}
		}
	}
	out := map[string]float64{}
	for name, v := range credits {
		sum, squares := 0.0, 0.0
		for _, x := range v {
			sum += x
		}
		mean := sum / float64(len(v))
		for _, x := range v {
			squares += (x - mean) * (x - mean)
		}
		out["criteria/"+name+"/mean"] = mean
		out["criteria/"+name+"/std"] = math.Sqrt(squares / math.Max(float64(len(v)-1), 1))
	}
	return out
}

// columnsOf are the reward functions behind a score: the provider's parts, or the provider itself.
func columnsOf(s rewards.Score, itself grpo.Column) []grpo.Column {
	if s.Columns == nil {
		return []grpo.Column{itself}
	}
	var out []grpo.Column
	for _, c := range s.Columns {
		out = append(out, grpo.Column{Name: c.Name, Weight: itself.Weight * c.Weight})
	}
	return out
}

func valuesOf(s rewards.Score) []float64 {
	switch {
	case s.Columns == nil && s.Unscorable:
		return []float64{math.NaN()}
	case s.Columns == nil:
		return []float64{s.Value}
	}
	var out []float64
	for _, c := range s.Columns {
		out = append(out, c.Value)
	}
	return out
}
