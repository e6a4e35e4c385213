package trainer

import (
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/rewards"
)

// buffer is a generation batch in use: the rows of the groups that are trained on, shuffled and cut into micro-batches,
// which are gone through num_iterations times.
type buffer struct {
	Groups    []grpo.Group // all that were sampled
	Kept      []int        // those of Groups that are trained on: all but what dynamic sampling drops
	Perm      []int        // row i of the batch is row Perm[i] of the kept groups
	Used      int          // micro-steps served
	Serves    int          // micro-steps that it serves in all
	SampledAt int          // optimiser steps made when it was sampled

	micro  [][]grpo.Row
	tokens float64 // trained tokens of the whole batch
}

func (b *buffer) spent() bool { return b.Used == b.Serves }

// kept are the groups that are trained on.
func (b *buffer) kept() []grpo.Group {
	groups := make([]grpo.Group, len(b.Kept))
	for i, k := range b.Kept {
		groups[i] = b.Groups[k]
	}
	return groups
}

// next returns the micro-batch whose turn it is.
func (b *buffer) next() []grpo.Row {
	rows := b.micro[b.Used%len(b.micro)]
	b.Used++
	return rows
}

// layOut cuts the rows of b's kept groups into micro-batches.
func (t *Trainer) layOut(b *buffer) (err error) {
	rows := grpo.Rows(t.Config.GRPO, b.kept())
	b.tokens = float64(grpo.NumItems(rows))
	b.micro, err = grpo.Split(rows, t.batching.StepsPerGeneration, b.Perm)
	return err
}

// savedBuffer is a buffer on disk: prompts by their place in the training data. gob keeps every bit.
type savedBuffer struct {
	Prompts                 []int
	Completions             [][]*grpo.Completion
	Kept, Perm              []int
	Used, Serves, SampledAt int
}

const bufferFile = "generation.gob"

// save writes what a GRPO run adds to a checkpoint: the generation batch if it is not used up, the provider's state, and the
// entropy controller's.
func (t *Trainer) save(dir string) error {
	if err := errors.Join(t.saveProvider(dir), t.saveEntropy(dir)); err != nil || t.buffer.spent() {
		return err
	}
	at := make(map[*grpo.Prompt]int, len(t.Prompts))
	for i := range t.Prompts {
		at[&t.Prompts[i]] = i
	}
	b := savedBuffer{Kept: t.buffer.Kept, Perm: t.buffer.Perm, Used: t.buffer.Used, Serves: t.buffer.Serves, SampledAt: t.buffer.SampledAt}
	for _, g := range t.buffer.Groups {
		b.Prompts = append(b.Prompts, at[g.Prompt])
		b.Completions = append(b.Completions, g.Completions)
	}
	f, err := os.Create(filepath.Join(dir, bufferFile))
	if err != nil {
		return err
	}
	return errors.Join(gob.NewEncoder(f).Encode(b), f.Close())
}

func (t *Trainer) load(dir string) error {
	if err := errors.Join(t.use(t.state.Stage), LoadProvider(t.rollouts.Provider, dir), t.loadEntropy(dir)); err != nil {
		return err
	}
	f, err := os.Open(filepath.Join(dir, bufferFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	var b savedBuffer
	if err := gob.NewDecoder(f).Decode(&b); err != nil {
		return fmt.Errorf("%s: %w", bufferFile, err)
	}
	if b.Serves != t.batching.MicroSteps() {
		return fmt.Errorf("it is in the middle of a generation batch that serves %d micro-steps, here one serves %d: set optim.per_device_train_batch_size so that its product with the number of processes is what it was", b.Serves, t.batching.MicroSteps())
	}
	outside := func(k int) bool { return k < 0 || k >= len(b.Prompts) }
	if len(b.Completions) != len(b.Prompts) || slices.ContainsFunc(b.Kept, outside) {
		return fmt.Errorf("%s: %d groups of %d prompts, of which %v are trained on", bufferFile, len(b.Completions), len(b.Prompts), b.Kept)
	}
	t.buffer = buffer{Kept: b.Kept, Perm: b.Perm, Used: b.Used, Serves: b.Serves, SampledAt: b.SampledAt}
	for i, p := range b.Prompts {
		if p < 0 || p >= len(t.Prompts) {
			return fmt.Errorf("%s: prompt %d is not in the training data", bufferFile, p)
		}
		t.buffer.Groups = append(t.buffer.Groups, grpo.Group{Prompt: &t.Prompts[p], Completions: b.Completions[i]})
	}
	return t.layOut(&t.buffer)
}

const entropyFile = "entropy_ctrl_state.json" // TRL's name

func (t *Trainer) saveEntropy(dir string) error {
	if !t.Config.GRPO.UseAdaptiveEntropy {
		return nil
	}
	return writeJSON(filepath.Join(dir, entropyFile), &t.entropy)
}

func (t *Trainer) loadEntropy(dir string) error {
	if !t.Config.GRPO.UseAdaptiveEntropy {
		return nil
	}
	b, err := os.ReadFile(filepath.Join(dir, entropyFile))
	if err != nil {
		return err
	}
	return json.Unmarshal(b, &t.entropy)
}

const providerDir = "provider"

func (t *Trainer) saveProvider(dir string) error {
	s, ok := t.rollouts.Provider.(rewards.Saver)
	if !ok {
		return nil
	}
	dir = filepath.Join(dir, providerDir)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	return s.Save(dir)
}

// LoadProvider gives p the state that it has in a checkpoint, if it is one that has a state.
func LoadProvider(p rewards.Provider, checkpoint string) error {
	s, ok := p.(rewards.Saver)
	if !ok {
		return nil
	}
	dir := filepath.Join(checkpoint, providerDir)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is of a run whose reward keeps no state: was reward.kind another then?", checkpoint)
	}
	return s.Load(dir)
}
