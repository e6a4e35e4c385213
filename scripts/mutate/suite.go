package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// The suite (TestMutant of package cuda) finds the kernels and their mutant under these names.
const (
	originalFile = "RUBICON_MUTATE_ORIGINAL"
	mutantFile   = "RUBICON_MUTATE_MUTANT"
)

// suite is the built conformance suite of one file of kernels.
type suite struct {
	dir, text, binary, match string
	limit                    time.Duration
}

// A mutant that takes so many times as long as the kernels is taken to hang.
const (
	patience      = 10
	leastPatience = 10 * time.Second
)

// verdict is what became of a mutant.
type verdict int

const (
	untried verdict = iota // the run was stopped before
	survived
	failed // a case, or the simulator
	hung
)

// build compiles the suite and runs it on the kernels as they are, which have to pass.
func build(ctx context.Context, dir, text string, ops []string) (*suite, error) {
	s := &suite{dir: dir, text: text, binary: filepath.Join(dir, "suite"), limit: time.Hour}
	s.match = "TestMutant/.*/^(" + strings.Join(ops, "|") + ")(#|$)" // the cases of one operation are numbered
	out, err := exec.CommandContext(ctx, "go", "test", "-c", "-tags", "mutate", "-o", s.binary, "./cuda").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("build the suite: %w\n%s", err, out)
	}
	if err := os.WriteFile(s.path("original"), []byte(text), 0o600); err != nil {
		return nil, err
	}
	start := time.Now()
	v, out, err := s.try(ctx, "unchanged", text)
	if err != nil {
		return nil, err
	}
	if v != survived {
		return nil, fmt.Errorf("the cases fail without a change, so they can tell nothing:\n%s", out)
	}
	s.limit = max(leastPatience, patience*time.Since(start))
	return s, nil
}

func (s *suite) path(name string) string { return filepath.Join(s.dir, name+".ptx") }

// try runs the cases on changed kernels.
func (s *suite) try(ctx context.Context, name, text string) (verdict, []byte, error) {
	path := s.path(name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return 0, nil, err
	}
	defer os.Remove(path)
	limited, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	c := exec.CommandContext(limited, s.binary, "-test.failfast", "-test.run", s.match)
	c.Env = append(os.Environ(), originalFile+"="+s.path("original"), mutantFile+"="+path)
	out, err := c.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return 0, nil, ctx.Err()
	case limited.Err() != nil:
		return hung, out, nil
	case errors.As(err, &exit):
		return failed, out, nil
	}
	return survived, out, err
}

// tryAll reports what becomes of mutants, with an error of those that were tried before it.
func (s *suite) tryAll(ctx context.Context, ms []mutant, jobs int) ([]verdict, error) {
	became := make([]verdict, len(ms))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(jobs)
	for i, m := range ms {
		g.Go(func() error {
			var err error
			became[i], _, err = s.try(ctx, fmt.Sprint("mutant", i), m.apply(s.text))
			return err
		})
	}
	return became, g.Wait()
}
