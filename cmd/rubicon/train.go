package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rubicon-rl/rubicon/configs"
	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/policy"
	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/rewards/arco"
	"github.com/rubicon-rl/rubicon/trainer"
	"github.com/rubicon-rl/rubicon/trainer/track"
)

// runFlags are what train and sft take.
type runFlags struct {
	files  []string
	resume string
	dry    bool
	quiet  bool
	json   bool
	http   string
}

// add declares the flags; dry says what --dry-run does.
func (f *runFlags) add(cmd *cobra.Command, dry string) {
	addConfigFlag(cmd, &f.files)
	cmd.Flags().StringVar(&f.resume, "resume", "", "go on from a checkpoint: newest (also without a value), auto (start if there is none), or its path")
	cmd.Flags().Lookup("resume").NoOptDefVal = "newest"
	cmd.Flags().BoolVar(&f.dry, "dry-run", false, dry)
	cmd.Flags().BoolVarP(&f.quiet, "quiet", "q", false, "print nothing but errors, as track.progress=off")
	cmd.Flags().BoolVar(&f.json, "json", false, "print every line of metrics on stdout, as metrics.jsonl has it")
}

// runOptions are how a run is made, beside its configuration.
type runOptions struct {
	dry   bool
	lines io.Writer       // gets every line of metrics; nil: nobody
	stop  <-chan struct{} // closed: finish the step and save
	http  string          // address of the run's page; "": it has none
	peers peers
}

// with is o for one of several processes.
func (o runOptions) with(p peers) runOptions {
	o.peers = p
	return o
}

func (f *runFlags) options(cmd *cobra.Command) runOptions {
	o := runOptions{dry: f.dry, stop: interrupts(), http: f.http}
	if f.json {
		o.lines = cmd.OutOrStdout()
	}
	return o
}

// load reads the configuration; --resume is checkpoint.resume, --quiet is track.progress. w is told of notes.
func (f *runFlags) load(overrides []string, w io.Writer) (*configs.Config, error) {
	if f.quiet {
		overrides, w = append(overrides, "track.progress=off"), io.Discard
	}
	for _, o := range overrides {
		if f.resume == "newest" && !strings.Contains(o, "=") {
			return nil, fmt.Errorf("%s is not key=value; to resume from it, write --resume=%s", o, o)
		}
	}
	if f.resume != "" {
		overrides = append(overrides, "checkpoint.resume="+f.resume)
	}
	return loadConfig(f.files, overrides, w)
}

func trainCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "train -c FILE [key=value ...]",
		Short: "Train a policy with GRPO",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.load(args, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			o := f.options(cmd)
			if f.dry {
				if err := alone("a dry run is made"); err != nil {
					return err
				}
				return dryRun(cmd.Context(), c, o.stop)
			}
			return withPeers(cmd.Context(), c, o.stop, func(p peers) error { return train(cmd.Context(), c, o.with(p)) })
		},
	}
	f.add(cmd, "make one real step in a temporary folder, and print what the whole run will take and what you may regret")
	cmd.Flags().StringVar(&f.http, "http", "", "show the run as a web page at this address of this machine, such as :7700")
	return cmd
}

// train wires a GRPO run and makes it.
func train(ctx context.Context, c *configs.Config, o runOptions) (err error) {
	r, err := openTraining(c, o)
	if err != nil {
		return err
	}
	defer closing(&err, r.close)
	t, err := r.trainer(ctx)
	if err != nil {
		return err
	}
	defer closing(&err, t.Close)
	if err := r.announce(t.Plan()); err != nil {
		return err
	}
	hide, err := r.show(o)
	if err != nil {
		return err
	}
	defer hide()
	if err := t.Run(ctx); err != nil {
		return err
	}
	return r.summary(t)
}

// trainer wires a GRPO run: data, reward, model, trainer.
func (r *openedRun) trainer(ctx context.Context) (*trainer.Trainer, error) {
	task, err := r.task(ctx)
	if err != nil {
		return nil, err
	}
	batching, err := r.Config.Batching(r.Group.World())
	if err != nil {
		return nil, err
	}
	if err := r.loadModel(ctx, grpoMemory(r.Config, batching, task.Prompts, task.HeldOut)); err != nil {
		return nil, err
	}
	if task.Reference, err = openReference(ctx, r.Config, r.Device, r.Model); err != nil {
		return nil, fmt.Errorf("reference policy: %w", err)
	}
	if task.Engine, err = r.engine(); err != nil {
		return nil, err
	}
	return trainer.New(r.Parts, task)
}

// task reads the data and opens the reward of a GRPO run.
func (r *openedRun) task(ctx context.Context) (task trainer.Task, err error) {
	c := r.Config
	if err := needsEpisodes(c); err != nil {
		return task, err
	}
	if task.Prompts, err = r.prompts(c.Data.TrainFiles, 0); err != nil {
		return task, fmt.Errorf("training data: %w", err)
	}
	if len(c.Eval.Files) > 0 {
		if task.HeldOut, err = r.prompts(c.Eval.Files, c.Eval.MaxRows); err != nil {
			return task, fmt.Errorf("held-out data: %w", err)
		}
	}
	task.Episodes = r.episodes
	task.Conversation = r.conversation()
	if r.Group.Rank() > 0 { // rank 0 scores for all
		return task, r.embedders.preflight(ctx)
	}
	steps, err := trainer.Steps(c, len(task.Prompts), r.Group.World())
	if err != nil {
		return task, err
	}
	if r.reward, err = r.openReward(c.OutputDir, steps); err != nil {
		return task, err
	}
	task.Provider, task.Name, task.Judge = r.reward.Provider, r.reward.name, r.reward.judge.meter()
	task.Auditor = r.reward.judge.auditor()
	if task.Benchmarks, err = openBenchmarks(c.Eval.Benchmarks, c.Eval.DataDir, r.reward.judge.open, judgeWords(c)); err != nil {
		return task, err
	}
	if err := reachJudge(ctx, task.Benchmarks, r.reward.judge); err != nil {
		return task, err
	}
	return task, r.check(ctx, task.Prompts, task.HeldOut)
}

// openedRun is what every kind of training has open. The model comes last: everything else is checked before its weights
// are read.
type openedRun struct {
	trainer.Parts
	shape  policy.Config                  // of the model
	stored func(name string) device.DType // types of its tensors; nil: what the shape says
	reward *reward                        // nil: the run has none

	embedders *embedders
	episodes  *trainer.Episodes // nil: completions have one turn
}

// openTraining opens a run that is going to make steps, with its trackers.
func openTraining(c *configs.Config, o runOptions) (*openedRun, error) {
	start, err := openTrackers(c, os.Getenv)
	if err != nil {
		return nil, err
	}
	r, err := openRun(c, o.stop, o.peers)
	if err != nil {
		return nil, err
	}
	if o.peers.place.Rank == 0 {
		r.Console.JSON = o.lines
		r.Track = func(step int) track.Trackers { return start(r.Console, step) }
	}
	return r, nil
}

func openRun(c *configs.Config, stop <-chan struct{}, p peers) (*openedRun, error) {
	lock := &deviceLock{}
	r := &openedRun{Parts: trainer.Parts{Config: c, Console: newConsole(c), Stop: stop, Lock: lock, Group: p.group}}
	if p.place.Rank > 0 {
		r.Console.W, r.Console.Live = io.Discard, false
	}
	r.Now = r.Console.Now
	files, err := openFiles(c.Model.Path)
	if err != nil {
		return nil, err
	}
	defer files.close()
	if r.shape, err = files.config(); err != nil {
		return nil, fmt.Errorf("model %s: %w", c.Model.Path, err)
	}
	r.stored = files.stored(r.shape)
	if r.Tokenizer, err = files.tokenizer(); err != nil {
		return nil, fmt.Errorf("tokenizer of %s: %w", c.Model.Path, err)
	}
	if n := r.Tokenizer.VocabSize(); n > r.shape.Vocab {
		return nil, fmt.Errorf("the tokenizer of %s has %d tokens, the model only %d: it belongs to another model", c.Model.Path, n, r.shape.Vocab)
	}
	r.embedders = &embedders{
		cfg: c.Embedder, seed: uint64(c.Seed), tokenizer: r.Tokenizer, lock: r.Lock, moves: c.Model.Trainable == "full", opened: map[string]rewards.Embedder{},
	}
	if r.episodes, err = r.openEpisodes(); err != nil {
		return nil, err
	}
	r.Device, err = openDevice(c, r.Console)
	lock.dev = r.Device
	return r, err
}

// loadModel reads the weights, if the run fits, and bounds the cache of keys and values to what the plan gives it.
func (r *openedRun) loadModel(ctx context.Context, memory policy.PlanOptions) (err error) {
	memory.Stored = r.stored
	kvTokens, err := planMemory(r.shape, memory, r.Device, r.Console)
	if err != nil {
		return err
	}
	if kvTokens > 0 {
		r.Config.Rollout.KVTokens = kvTokens
	}
	if r.Model, r.Adapter, err = openModel(ctx, r.Config, r.Device); err == nil && r.reward != nil {
		err = r.bind(ctx)
	}
	return err
}

// bind gives what is the run's own model, or is made of it, that model: a judge, an embedder, a rubric model.
func (r *openedRun) bind(ctx context.Context) error {
	r.embedders.bind(r.Model)
	if p, ok := r.reward.Provider.(*arco.Provider); ok {
		if c := r.Config; c.Env.Kind != "" && c.GRPO.KLInReward && c.NeedsReference() {
			return errors.New("grpo.kl_in_reward: the advantages of turns that arco values are made of those values, not of the reward, so that the KL would be lost: set it to false")
		}
		own := arco.Base{Model: r.Model, Tokenizer: r.Tokenizer, EOS: trainer.EOS(r.shape, r.Tokenizer), Moves: r.Config.Model.Trainable == "full"}
		if err := p.Bind(ctx, own, r.openBase); err != nil {
			return err
		}
	}
	return r.reward.judge.bind(ctx, r.Model)
}

// openBase loads another language model beside the policy.
func (r *openedRun) openBase(ctx context.Context, path string) (base arco.Base, err error) {
	files, err := openFiles(path)
	if err != nil {
		return base, err
	}
	defer closing(&err, files.close)
	if base.Tokenizer, err = files.tokenizer(); err != nil {
		return base, err
	}
	if base.Model, _, err = loadFrozen(ctx, r.Device, modelFlags{model: path, dtype: r.Config.Model.WeightDType()}); err != nil {
		return base, err
	}
	base.EOS = trainer.EOS(base.Model.Config(), base.Tokenizer)
	return base, nil
}

func (r *openedRun) close() (err error) {
	if r.reward != nil {
		err = r.reward.close()
	}
	err = errors.Join(err, r.embedders.close())
	if r.Model != nil {
		err = errors.Join(err, r.Model.Close())
	}
	return errors.Join(err, r.Device.Close())
}

// announce prints what the run is going to do.
func (r *openedRun) announce(plan string) error {
	params, err := r.Model.Params(r.Adapter)
	if err != nil {
		return err
	}
	total := r.shape.Size()
	fmt.Fprintf(r.Console, "model      %s, %s parameters, %s trainable (%.2f%%)\n%s", r.Config.Model.Path, count(total), count(params.Len),
		100*float64(params.Len)/float64(total), plan)
	return nil
}

// summary shows how the run went; rank 0 does.
func (r *openedRun) summary(t interface{ Summary(io.Writer) error }) error {
	if r.Group.Rank() > 0 {
		return nil
	}
	return t.Summary(r.Console)
}
