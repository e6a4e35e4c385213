package trainer

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rubicon-rl/rubicon/policy"
)

// Engine samples in place of the run's own model, such as servers do (package remote).
type Engine interface {
	// Load makes it sample with the adapter in dir, whose name stands for its weights.
	Load(ctx context.Context, name, dir string) error
	// Generate samples as policy.Model.Generate does.
	Generate(ctx context.Context, reqs []policy.Request, p policy.SamplingParams) ([][]policy.Sample, error)
}

// external is an engine that samples the policy as it is at each call.
type external struct {
	Engine
	dir  string // of the adapters that the engine reads
	live string // name of the adapter that it samples with
}

// newExternal keeps the adapters in dir.
func newExternal(e Engine, dir string) (*external, error) {
	dir, err := filepath.Abs(dir)
	return &external{Engine: e, dir: dir}, err
}

// sample draws completions under an adapter set of m.
func (e *external) sample(ctx context.Context, m *policy.Model, adapter string, reqs []policy.Request, p policy.SamplingParams) ([][]policy.Sample, error) {
	if err := e.update(ctx, m, adapter); err != nil {
		return nil, fmt.Errorf("give the policy to the rollout engine: %w", err)
	}
	for i := range reqs {
		reqs[i].MaxTokens = min(p.MaxNewTokens, m.Config().MaxPositions-len(reqs[i].Prompt))
	}
	return e.Generate(ctx, reqs, p)
}

// update writes the adapter down, unless the engine has it already, and has the engine load it. Its name is a digest of its
// weights, so that an adapter of an earlier run, or of a step that is made again, cannot be taken for another.
func (e *external) update(ctx context.Context, m *policy.Model, adapter string) error {
	next := filepath.Join(e.dir, "next")
	if err := os.RemoveAll(next); err != nil { // of a run that was killed
		return err
	}
	if err := m.SaveAdapter(adapter, next); err != nil {
		return err
	}
	weights, err := os.ReadFile(filepath.Join(next, policy.AdapterWeightsName))
	if err != nil {
		return err
	}
	shape, err := os.ReadFile(filepath.Join(next, policy.AdapterConfigName))
	if err != nil {
		return err
	}
	name := fmt.Sprintf("rubicon-%x", sha256.Sum256(append(shape, weights...)))[:24]
	if name == e.live {
		return os.RemoveAll(next)
	}
	dir := filepath.Join(e.dir, name)
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.Rename(next, dir); err != nil {
		return err
	}
	if err := e.Load(ctx, name, dir); err != nil {
		return err
	}
	e.live = name
	return e.clear()
}

// clear removes all adapters but the one that is live, those of a run that was killed too.
func (e *external) clear() error {
	list, err := os.ReadDir(e.dir)
	for _, f := range list {
		if f.Name() != e.live {
			err = errors.Join(err, os.RemoveAll(filepath.Join(e.dir, f.Name())))
		}
	}
	return err
}
