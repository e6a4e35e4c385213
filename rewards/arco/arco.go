package arco

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"sync"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/policy"
	"github.com/rubicon-rl/rubicon/policy/token"
	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/rewards/verify"
)

// Base is a language model that the rubric model can be made of.
type Base struct {
	Model     *policy.Model
	Tokenizer *token.Tokenizer
	EOS       []int32 // ids that end what it writes
	Moves     bool    // all its weights are trained
}

// Provider scores episodes by their reward R, and after sparse_steps steps each of their turns by the rubric model, which learns
// from the same episodes (ARCO). A completion that is no episode counts as one step.
type Provider struct {
	o       Options
	seed    uint64
	lock    sync.Locker      // of the run's device
	outcome rewards.Provider // gives R

	model  *Model
	own    *policy.Model // closed with the provider; nil: the base is the policy's
	judged map[uint64]held

	shown   sync.Mutex         // of what follows
	metrics map[string]float64 // of the last scoring
	learned map[string]float64 // of the last update
}

// held is an episode that was judged and not learned from yet.
type held struct {
	steps  []Judged
	reward float64
}

var (
	_ rewards.Provider = (*Provider)(nil)
	_ rewards.Learner  = (*Provider)(nil)
	_ rewards.Checker  = (*Provider)(nil)
	_ rewards.Saver    = (*Provider)(nil)
	_ rewards.Drawer   = (*Provider)(nil)
)

// New makes a provider from settings as a configuration file has them. Its model comes with Bind.
func New(run rewards.Run, settings map[string]any) (rewards.Provider, error) {
	o, err := decode(settings)
	if err != nil {
		return nil, fmt.Errorf("arco: %w", err)
	}
	p := &Provider{o: o, seed: run.Seed, lock: run.Lock, judged: map[uint64]held{}, metrics: map[string]float64{}}
	if p.lock == nil {
		p.lock = &sync.Mutex{}
	}
	if p.outcome, err = verify.New(run, o.Reward); err != nil {
		return nil, fmt.Errorf("arco: reward: %w", err)
	}
	return p, nil
}

// Bind makes the rubric model, of the policy's base or of the one that the option base names, which open loads on the run's device.
func (p *Provider) Bind(ctx context.Context, own Base, open func(ctx context.Context, path string) (Base, error)) error {
	if p.o.Base == "" && own.Moves {
		return errors.New("arco: all weights of the policy are trained, so that it is no base for a rubric model: set reward.options.base to a folder, or model.trainable to lora")
	}
	if p.o.Base != "" {
		var err error
		if own, err = open(ctx, p.o.Base); err != nil {
			return fmt.Errorf("arco: base %s: %w", p.o.Base, err)
		}
		p.own = own.Model
	}
	var err error
	if p.model, err = newModel(p.o, own, p.seed); err != nil {
		return fmt.Errorf("arco: rubric model: %w", err)
	}
	return nil
}

// Check implements rewards.Checker.
func (p *Provider) Check(row *grpo.Prompt) error {
	return p.outcome.(rewards.Checker).Check(row)
}

var errUnbound = errors.New("arco: the rubric model is not loaded yet")

// Score implements rewards.Provider.
func (p *Provider) Score(ctx context.Context, step int, groups []grpo.Group) ([]rewards.Score, error) {
	scores, err := p.outcome.Score(ctx, step, groups)
	if err != nil || step == rewards.HeldOut {
		return scores, err
	}
	if p.model == nil {
		return nil, errUnbound
	}
	episodes, keys := p.episodes(groups, scores)
	p.lock.Lock()
	defer p.lock.Unlock()
	judged, err := p.model.judge(ctx, episodes)
	if err != nil {
		return nil, fmt.Errorf("arco: %w", err)
	}
	for i, steps := range judged {
		if c := completion(groups, i); c.Episode != nil && c.Episode.Lost != "" {
			scores[i] = rewards.Unscorable(c.Episode.Lost)
		}
		if scores[i].Unscorable || len(steps) == 0 {
			continue
		}
		p.judged[keys[i]] = held{steps, episodes[i].Reward}
		scores[i].Parts = append(scores[i].Parts, parts(steps)...)
		if step >= p.o.SparseSteps {
			value(&scores[i], steps, completion(groups, i).Episode != nil)
		}
	}
	p.note(judged, scores, episodes, step)
	return scores, nil
}

// value gives each turn of an episode its score, or a completion that is none its only one.
func value(s *rewards.Score, steps []Judged, episode bool) {
	if !episode {
		s.Value = steps[0].Score()
		return
	}
	for _, j := range steps {
		s.Turns = append(s.Turns, j.Score())
	}
}

// completion is the i-th of all.
func completion(groups []grpo.Group, i int) *grpo.Completion {
	for _, g := range groups {
		if i < len(g.Completions) {
			return g.Completions[i]
		}
		i -= len(g.Completions)
	}
	return nil
}

// parts show the criteria of every step with their scores, as credits.
func parts(steps []Judged) []rewards.Part {
	var out []rewards.Part
	for t, j := range steps {
		for k, s := range j.Scores {
			out = append(out, rewards.Part{Name: fmt.Sprintf("step%d/%d", t+1, k+1), Credit: (s + 1) / 2, Reason: j.Criteria[k], Local: true})
		}
	}
	return out
}

// Unparted is the inverse of what Score puts in the parts of a score: criteria and scores of every step.
func Unparted(list []rewards.Part) []Step {
	var out []Step
	for _, p := range list {
		var t, k int
		if n, _ := fmt.Sscanf(p.Name, "step%d/%d", &t, &k); n < 2 || t < 1 || t > len(out)+1 {
			continue
		}
		if t > len(out) {
			out = append(out, Step{})
		}
		out[t-1].Criteria = append(out[t-1].Criteria, p.Reason)
		out[t-1].Scores = append(out[t-1].Scores, 2*p.Credit-1)
	}
	return out
}

// episodes are what the rubric model sees of completions, with keys that name them.
func (p *Provider) episodes(groups []grpo.Group, scores []rewards.Score) ([]Episode, []uint64) {
	var list []Episode
	var keys []uint64
	for _, g := range groups {
		for _, c := range g.Completions {
			e := Episode{ID: g.Prompt.ID, Task: task(g.Prompt), Reward: scores[len(list)].Value}
			if c.Episode == nil {
				e.Steps = []Move{{Action: c.Text}}
			} else {
				for _, s := range c.Episode.Steps {
					e.Steps = append(e.Steps, Move{said(s), s.Observation, s.Verdict})
				}
			}
			list, keys = append(list, e), append(keys, keyOf(g.Prompt, c))
		}
	}
	return list, keys
}

// said is a step's action as the environment understood it, or what was said.
func said(s grpo.Step) string {
	if s.Action != "" {
		return s.Action
	}
	return s.Said
}

// task is what the policy was asked.
func task(p *grpo.Prompt) string {
	if n := len(p.Messages); n > 0 {
		return p.Messages[n-1].Content
	}
	return p.Text
}

// keyOf names a completion by what it is: equal ones are judged alike.
func keyOf(p *grpo.Prompt, c *grpo.Completion) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %s", len(p.ID), p.ID)
	binary.Write(h, binary.LittleEndian, c.Tokens) // a hash takes all
	return h.Sum64()
}

// Learn implements rewards.Learner: one update of the rubric model on the episodes of the step. A gradient that is not finite moves
// nothing and is counted.
func (p *Provider) Learn(_ context.Context, _ int, groups []grpo.Group) error {
	var list [][]Judged
	var goals []float64
	var keys []uint64
	for _, g := range groups {
		for _, c := range g.Completions {
			key := keyOf(g.Prompt, c)
			if h, there := p.judged[key]; there {
				list, goals, keys = append(list, h.steps), append(goals, h.reward), append(keys, key)
			}
		}
	}
	if len(list) > 0 && !p.o.Frozen {
		p.lock.Lock()
		defer p.lock.Unlock()
		m, err := p.model.learn(list, goals)
		switch {
		case errors.Is(err, errNotFinite): // moves nothing, and the episodes are spent
			m = map[string]float64{"skipped": 1}
		case err != nil:
			return fmt.Errorf("arco: %w", err)
		default:
			m["skipped"] = 0
		}
		p.shown.Lock()
		p.learned = m
		p.shown.Unlock()
	}
	for _, key := range keys {
		delete(p.judged, key)
	}
	return nil
}

// Save implements rewards.Saver.
func (p *Provider) Save(dir string) error {
	if p.model == nil {
		return errUnbound
	}
	if err := p.model.save(dir, p.judged); err != nil {
		return fmt.Errorf("arco: save: %w", err)
	}
	return nil
}

// Load implements rewards.Saver.
func (p *Provider) Load(dir string) (err error) {
	if p.model == nil {
		return errUnbound
	}
	if p.judged, err = p.model.load(dir); err != nil {
		return fmt.Errorf("arco: load %s: %w", dir, err)
	}
	return nil
}

// Close frees the rubric model.
func (p *Provider) Close() error {
	if p.model != nil {
		p.model.close()
	}
	if p.own != nil {
		return p.own.Close()
	}
	return nil
}
