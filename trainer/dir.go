package trainer

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"

	"github.com/rubicon-rl/rubicon/configs"
)

// Dir is the folder of a run, held by one process at a time:
//
//	config.yaml  metrics.jsonl  completions/step_N.jsonl  eval/step_N.jsonl  checkpoints/step-N/  bad/step_N.json
type Dir struct {
	path, saved string
	lock        *flock.Flock
}

func newDir(c *configs.Config) *Dir {
	d := &Dir{path: c.OutputDir, saved: c.Checkpoint.Dir}
	if d.saved == "" {
		d.saved = d.join("checkpoints")
	}
	return d
}

// Used reports whether the run's folder holds something of a run, so that only one that resumes may go on in it.
func Used(c *configs.Config) bool { return newDir(c).used() }

// openDir makes the run's folder, or takes an existing one if the run is to be resumed.
func openDir(c *configs.Config) (*Dir, error) {
	d := newDir(c)
	if err := os.MkdirAll(d.path, 0o755); err != nil {
		return nil, fmt.Errorf("make the run's folder: %w", err)
	}
	d.lock = flock.New(d.join(".lock"))
	if held, err := d.lock.TryLock(); err != nil {
		return nil, fmt.Errorf("lock the run's folder: %w", err)
	} else if !held {
		return nil, fmt.Errorf("another process runs in %s: wait for it, or choose another output_dir", d.path)
	}
	if c.Checkpoint.Resume == "" && d.used() {
		return nil, errors.Join(fmt.Errorf("%s holds a run: go on with it by --resume, or choose another output_dir", d.path), d.close())
	}
	return d, nil
}

// used reports whether the folder holds something of a run; an empty log is that of a start that failed.
func (d *Dir) used() bool {
	log, err := os.Stat(d.metrics())
	steps, _ := stepFolders(d.saved)
	return err == nil && log.Size() > 0 || len(steps) > 0
}

func (d *Dir) join(elem ...string) string {
	return filepath.Join(append([]string{d.path}, elem...)...)
}

func (d *Dir) metrics() string { return d.join("metrics.jsonl") }

func (d *Dir) close() error { return d.lock.Unlock() }
