package trainer

import (
	"context"
	"fmt"
	"slices"

	"github.com/rubicon-rl/rubicon/configs"
	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/policy"
	"github.com/rubicon-rl/rubicon/trainer/env"
)

// Episodes is how completions of several turns are sampled.
type Episodes struct {
	Env           env.Environment
	Conversation  Conversation
	MaxTurnLength int // tokens; 0: what is left of the episode's
	Retries       int // further tries of a turn at which the environment fails, before the episode is given up
}

// CutOff is the kind of a step that no observation followed, because the episode had no tokens left.
const CutOff = "cut"

// failed is the kind of a step at which the environment failed.
const failed = "failed"

// played is an episode that is being played.
type played struct {
	*Episodes
	episode env.Episode
	decode  func(ids []int32) string
	steps   []grpo.Step
	over    bool   // the environment said so
	lost    string // why it was given up
}

// begin makes an episode for each of n samples of every prompt, and has the requests ask them.
func (e *Episodes) begin(ctx context.Context, prompts []*grpo.Prompt, reqs []policy.Request, s configs.Sampling, decode func([]int32) string) ([][]*played, error) {
	games := make([][]*played, len(prompts))
	for i, p := range prompts {
		for range reqs[i].N {
			episode, _, err := e.Env.Reset(ctx, p)
			if err != nil {
				return nil, fmt.Errorf("prompt %s: %w", p.ID, err)
			}
			games[i] = append(games[i], &played{Episodes: e, episode: episode, decode: decode})
		}
		reqs[i].MaxTokens = s.MaxCompletionLength
		reqs[i].Reply = func(ctx context.Context, sample int, turn []int32, _ string) (policy.Reply, error) {
			return games[i][sample].reply(ctx, turn)
		}
	}
	return games, nil
}

// reply plays a turn.
func (p *played) reply(ctx context.Context, turn []int32) (policy.Reply, error) {
	said := p.decode(turn)
	o, err := p.step(ctx, said)
	if ctx.Err() != nil {
		return policy.Reply{}, ctx.Err()
	}
	if err != nil { // the others go on without this episode
		p.lost, p.over = "the environment failed: "+err.Error(), true
		p.steps = append(p.steps, grpo.Step{Said: said, Kind: failed})
		return policy.Reply{}, nil
	}
	step := grpo.Step{Said: said, Action: o.Action, Kind: string(o.Kind), Verdict: o.Verdict}
	for i, m := range o.Messages {
		if i > 0 {
			step.Observation += "\n"
		}
		step.Observation += m.Content
	}
	p.steps = append(p.steps, step)
	if p.over = o.Done; p.over {
		return policy.Reply{}, nil
	}
	ended := len(turn) > 0 && slices.Contains(p.Conversation.EOS, turn[len(turn)-1])
	ids, err := p.Conversation.Following(o.Messages, ended)
	return policy.Reply{Tokens: ids}, err
}

// step plays what was said, several times if the environment fails.
func (p *played) step(ctx context.Context, said string) (o env.Observation, err error) {
	for try := 0; try <= p.Retries && ctx.Err() == nil; try++ {
		if o, err = p.episode.Step(ctx, said); err == nil {
			return o, nil
		}
	}
	return o, err
}

// record notes on c, which was sampled as s, what happened.
func (p *played) record(c *grpo.Completion, s policy.Sample) {
	c.Mask = make([]bool, len(s.Tokens))
	for i, turn := range s.Turns {
		for t := turn.Start; t < turn.End; t++ {
			c.Mask[t] = true
		}
		if i == len(p.steps) {
			p.steps = append(p.steps, grpo.Step{Said: p.decode(s.Tokens[turn.Start:turn.End]), Kind: CutOff})
		}
		p.steps[i].Start, p.steps[i].End = turn.Start, turn.End
	}
	c.Truncated = !p.over
	c.Episode = &grpo.Episode{Steps: p.steps, Outcome: p.episode.Outcome(), Lost: p.lost}
}

// episodeMetrics are the means of what the environment says of episodes, and of their turns, and the share of episodes that were lost.
func episodeMetrics(groups []grpo.Group) map[string]float64 {
	sums, counts := map[string]float64{}, map[string]float64{}
	add := func(name string, v float64) {
		sums[name] += v
		counts[name]++
	}
	for _, g := range groups {
		for _, c := range g.Completions {
			switch e := c.Episode; {
			case e == nil:
			case e.Lost != "":
				add("lost_frac", 1)
			default:
				add("lost_frac", 0)
				add("turns", float64(len(e.Steps)))
				for name, v := range e.Outcome {
					add(name, v)
				}
			}
		}
	}
	out := map[string]float64{}
	for name, sum := range sums {
		out["episode/"+name] = sum / counts[name]
	}
	return out
}
