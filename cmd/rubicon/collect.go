package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/rubicon-rl/rubicon/configs"
	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/rewards/arco"
)

func collectCommand() *cobra.Command {
	var f runFlags
	o := collection{samples: 3, k: arco.Default().K, metric: "em"}
	cmd := &cobra.Command{
		Use:   "collect -c FILE -o FILE [key=value ...]",
		Short: "Have teachers play an environment and annotate the steps, for ARCO's warm-ups",
		Long: `Has a language model (judge, tier score) play the environment on the training rows, and another (tier update) annotate every
step of each episode with criteria and scores. Each episode is a line: sft --target rubric learns from its steps, sft from the messages
of those that succeeded (--policy). Episodes that are there already are not made again.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := loadConfig(f.files, args, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			return o.run(cmd.Context(), c)
		},
	}
	cmd.Flags().StringArrayVarP(&f.files, "config", "c", nil, "configuration file; a later one wins key by key")
	cmd.Flags().StringVarP(&o.out, "out", "o", "", "file of all episodes")
	cmd.Flags().StringVar(&o.policy, "policy", "", "file of the conversations of the episodes that succeeded")
	cmd.Flags().IntVar(&o.samples, "n", o.samples, "episodes of each row")
	cmd.Flags().IntVar(&o.k, "k", o.k, "criteria for each step; 0: no annotation")
	cmd.Flags().StringVar(&o.metric, "reward", o.metric, "outcome of the environment that is the reward")
	return cmd
}

// collection is what collect makes.
type collection struct {
	out, policy, metric string
	samples, k          int

	judge rewards.Judge
	r     *openedRun

	mu   sync.Mutex // of what is written
	file *os.File
}

// collected is a line of the file.
type collected struct {
	ID       string             `json:"id"`
	Task     string             `json:"task"`
	Reward   float64            `json:"reward"`
	Outcome  map[string]float64 `json:"outcome"`
	Messages []grpo.Message     `json:"messages"`
	Tools    json.RawMessage    `json:"tools,omitempty"` // for the chat template
	Steps    []collectedStep    `json:"steps"`
}

type collectedStep struct {
	Action      string    `json:"action"`
	Observation string    `json:"observation"`
	Criteria    []string  `json:"criteria,omitempty"`
	Scores      []float64 `json:"scores,omitempty"`
}

func (o *collection) run(ctx context.Context, c *configs.Config) (err error) {
	if o.out == "" || o.samples < 1 || o.k < 0 {
		return errors.New("set -o to a file, --n to 1 or more and --k to 0 or more")
	}
	if c.Env.Kind == "" {
		return errors.New("env.kind is not set: name the environment that is played")
	}
	if o.r, err = openRun(c, nil, peers{}); err != nil {
		return err
	}
	defer closing(&err, o.r.close)
	prompts, err := o.r.prompts(c.Data.TrainFiles, 0)
	if err != nil {
		return fmt.Errorf("training data: %w", err)
	}
	if err := o.mend(); err != nil {
		return err
	}
	done, err := o.done()
	if err != nil {
		return err
	}
	if len(done) == len(prompts)*o.samples {
		return o.finish()
	}
	judge := &judge{cfg: c.Judge, seed: uint64(c.Seed), console: o.r.Console, tokenizer: o.r.Tokenizer, lock: o.r.Lock}
	defer closing(&err, judge.close)
	if o.judge, err = judge.open(); err != nil {
		return err
	}
	if err := judge.preflight(ctx); err != nil {
		return err
	}
	if o.file, err = os.OpenFile(o.out, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644); err != nil {
		return err
	}
	defer closing(&err, o.file.Close)
	if err := o.play(ctx, prompts, done); err != nil {
		return err
	}
	return o.finish()
}

// done are the episodes that the file has.
func (o *collection) done() (map[string]bool, error) {
	all, err := o.read()
	done := map[string]bool{}
	for _, e := range all {
		done[e.ID] = true
	}
	return done, err
}

func (o *collection) read() ([]collected, error) {
	f, err := os.Open(o.out)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []collected
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 64<<20)
	for n := 1; lines.Scan(); n++ {
		var e collected
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("%s, line %d: %w: remove that line", o.out, n, err)
		}
		all = append(all, e)
	}
	return all, lines.Err()
}

// mend cuts off a last line that a killed process did not finish.
func (o *collection) mend() error {
	b, err := os.ReadFile(o.out)
	if errors.Is(err, fs.ErrNotExist) || err == nil && (len(b) == 0 || b[len(b)-1] == '\n') {
		return nil
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(o.r.Console, "note: the last line of %s was not finished: its episode is made again\n", o.out)
	return os.Truncate(o.out, int64(bytes.LastIndexByte(b, '\n')+1))
}

// play makes the missing episodes, several at a time; the judge bounds how many questions are in flight.
func (o *collection) play(ctx context.Context, prompts []grpo.Prompt, done map[string]bool) error {
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(max(1, o.r.Config.Judge.MaxConcurrency))
	for i := range prompts {
		for sample := range o.samples {
			id := fmt.Sprintf("%s/%d", prompts[i].ID, sample)
			if done[id] {
				continue
			}
			work.Go(func() error {
				e, err := o.episode(ctx, &prompts[i], id, sample)
				if errors.Is(err, rewards.ErrNoAnswer) {
					fmt.Fprintf(o.r.Console, "note: left out episode %s: %v\n", id, err)
					return nil
				}
				if err != nil {
					return fmt.Errorf("episode %s: %w", id, err)
				}
				o.mu.Lock()
				defer o.mu.Unlock()
				return json.NewEncoder(o.file).Encode(e)
			})
		}
	}
	return work.Wait()
}

// episode plays one and has it annotated.
func (o *collection) episode(ctx context.Context, row *grpo.Prompt, id string, sample int) (*collected, error) {
	game, now, err := o.r.episodes.Env.Reset(ctx, row)
	if err != nil {
		return nil, err
	}
	e := &collected{ID: id, Task: now.Messages[len(now.Messages)-1].Content, Messages: now.Messages, Tools: now.Tools}
	seen := arco.Episode{ID: id, Task: e.Task}
	var tools []arco.Line
	if now.Tools != nil { // the policy gets them by its chat template
		tools = []arco.Line{{Role: "system", Text: `To call a tool, reply with <tool_call>{"name": ..., "arguments": {...}}</tool_call>. The tools are:` + "\n" + string(now.Tools)}}
	}
	for !now.Done {
		lines := slices.Clone(tools)
		for _, m := range e.Messages {
			lines = append(lines, arco.Line{Role: m.Role, Text: m.Content})
		}
		said, err := arco.Act(ctx, o.judge, lines, sample)
		if err != nil {
			return nil, err
		}
		if now, err = game.Step(ctx, said); err != nil {
			return nil, err
		}
		text := ""
		for _, m := range now.Messages {
			text += m.Content
		}
		e.Messages = append(append(e.Messages, grpo.Message{Role: "assistant", Content: said}), now.Messages...)
		e.Steps = append(e.Steps, collectedStep{Action: now.Action, Observation: text})
		seen.Steps = append(seen.Steps, arco.Move{Action: now.Action, Observation: text})
	}
	e.Outcome = game.Outcome()
	reward, known := e.Outcome[o.metric]
	if !known {
		return nil, fmt.Errorf("the environment tells no %q: set --reward to one of its outcomes", o.metric)
	}
	e.Reward, seen.Reward = reward, reward
	if o.k == 0 {
		return e, nil
	}
	marks, err := arco.Annotate(ctx, o.judge, seen, o.k)
	if err != nil {
		return nil, err
	}
	for k, m := range marks {
		e.Steps[k].Criteria, e.Steps[k].Scores = m.Criteria, m.Scores
	}
	return e, nil
}

// finish writes the conversations that the policy is to learn from, and says what there is.
func (o *collection) finish() error {
	all, err := o.read()
	if err != nil {
		return err
	}
	successes := 0
	var b []byte
	for _, e := range all {
		if e.Reward <= 0.5 {
			continue
		}
		successes++
		line, err := json.Marshal(struct {
			ID       string          `json:"id"`
			Messages []grpo.Message  `json:"messages"`
			Tools    json.RawMessage `json:"tools,omitempty"`
		}{e.ID, e.Messages, e.Tools})
		if err != nil {
			return err
		}
		b = append(append(b, line...), '\n')
	}
	fmt.Fprintf(o.r.Console, "%d episodes in %s, %d of them successes\n", len(all), o.out, successes)
	if o.policy == "" {
		return nil
	}
	return os.WriteFile(o.policy, b, 0o644)
}
