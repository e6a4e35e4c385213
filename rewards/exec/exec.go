// Package exec scores completions by a command of the user's own. The command is started once and runs as long as the run:
// it reads one request a line from its standard input and answers each with one line on its standard output. Package wire
// has the messages; a request holds a batch of completions.
//
//	reward:
//	  kind: exec
//	  options: {command: [python3, scripts/trl_reward.py, "rewards:correct"], columns: [answer]}
//
// The command ends when its standard input does. What it writes to standard error goes to exec.log in the run's folder (to
// the run's standard error if there is no folder), and the last of it into error messages. A command that ends or does
// not answer in time is started anew and asked again, a few times; then the batch is unscorable. A reply that breaks the
// format ends the run.
package exec

import (
	"context"
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	"time"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/internal/options"
	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/rewards/http/wire"
)

// Options are the provider's settings.
type Options struct {
	Command   []string     `json:"command"`     // program and arguments; no shell reads them
	Env       []string     `json:"env"`         // environment variables that it gets beside PATH, HOME and the like
	Workers   int          `json:"workers"`     // processes, each of which scores one batch at a time
	BatchSize int          `json:"batch_size"`  // completions in a request; a prompt's group is cut only if it alone is larger
	Columns   wire.Columns `json:"columns"`     // data columns to send; absent: all of them
	Timeout   float64      `json:"timeout"`     // seconds for one request; the first one's include the command's start
	Restart   int          `json:"restart"`     // times that a request is put to a new process when one ended or was late
	MaxLineMB int          `json:"max_line_mb"` // longest reply, MiB
}

// Default are the settings that New starts from.
func Default() Options {
	return Options{Workers: 1, BatchSize: 64, Timeout: 60, Restart: 2, MaxLineMB: 16}
}

// needed are the environment variables that programs need to start.
var needed = []string{"PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR", "TEMP", "SYSTEMROOT", "LD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV"}

// grace is how long a command may take to end after its standard input has.
const grace = 2 * time.Second

// Provider scores by a command. It keeps no state.
type Provider struct {
	o     Options
	idle  chan *worker // those that have no request in hand
	grace time.Duration
}

var (
	_ rewards.Provider    = (*Provider)(nil)
	_ rewards.Checker     = (*Provider)(nil)
	_ rewards.Preflighter = (*Provider)(nil)
)

// New makes a provider from settings as a configuration file has them. The command is looked up but not started yet.
func New(run rewards.Run, settings map[string]any) (rewards.Provider, error) {
	o := Default()
	if err := options.Decode(settings, &o); err != nil {
		return nil, fmt.Errorf("exec: %w", err)
	}
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("exec: %w", err)
	}
	program, err := osexec.LookPath(o.Command[0])
	if err != nil {
		return nil, fmt.Errorf("exec: command: %w: set its first entry to a program that can be run", err)
	}
	env, err := environment(o.Env)
	if err != nil {
		return nil, fmt.Errorf("exec: %w", err)
	}
	p := &Provider{o: o, idle: make(chan *worker, o.Workers), grace: grace}
	for i := range o.Workers {
		p.idle <- &worker{
			program: program, args: o.Command, env: env, dir: run.Dir, number: i,
			timeout: time.Duration(o.Timeout * float64(time.Second)), limit: o.MaxLineMB << 20,
		}
	}
	return p, nil
}

func (o *Options) validate() error {
	switch {
	case len(o.Command) == 0 || o.Command[0] == "":
		return errors.New("command is not set: give a list of the program and its arguments")
	case o.Workers < 1 || o.BatchSize < 1 || o.MaxLineMB < 1:
		return errors.New("workers, batch_size and max_line_mb must be at least 1")
	case !(o.Timeout > 0):
		return fmt.Errorf("timeout is %v: give seconds above 0", o.Timeout)
	case o.Restart < 0:
		return errors.New("restart must not be negative")
	}
	return nil
}

// environment is what a command gets of the run's own: what programs need, and what the user names. The run's keys and
// tokens stay with it.
func environment(named []string) ([]string, error) {
	env := []string{} // nil would mean all of it
	for _, name := range needed {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	for _, name := range named {
		value, ok := os.LookupEnv(name)
		if !ok {
			return nil, fmt.Errorf("env names %s, which is not set: set it, or take it out of env", name)
		}
		env = append(env, name+"="+value)
	}
	return env, nil
}

// Score implements rewards.Provider.
func (p *Provider) Score(ctx context.Context, step int, groups []grpo.Group) ([]rewards.Score, error) {
	scores, err := wire.Score(ctx, wire.Cut(step, groups, p.o.BatchSize), p.o.Workers, p.ask)
	if err != nil {
		return nil, fmt.Errorf("exec: %w", err)
	}
	return scores, nil
}

// Check implements rewards.Checker: the row must have the columns that are to be sent.
func (p *Provider) Check(row *grpo.Prompt) error {
	if err := p.o.Columns.Check(row); err != nil {
		return fmt.Errorf("exec: %w", err)
	}
	return nil
}

// Preflight implements rewards.Preflighter: it starts the command and puts a request without items to it, once, which
// wants an empty list of results.
func (p *Provider) Preflight(ctx context.Context) error {
	probe := wire.Probe()
	request, err := probe.Encode(p.o.Columns)
	if err != nil {
		return fmt.Errorf("exec: %w", err)
	}
	w, err := p.take(ctx)
	if err != nil {
		return fmt.Errorf("exec: %w", err)
	}
	defer func() { p.idle <- w }()
	reply, err := w.ask(ctx, request)
	if err == nil {
		_, err = w.read(probe, reply)
	}
	if err != nil {
		return fmt.Errorf("exec: the command %q was started and given a request without items to try it: %w; set command, env and timeout", p.o.Command, err)
	}
	return nil
}

// Close ends the commands: their standard input ends, and what still runs a little later is killed. Nothing may be scored
// afterwards.
func (p *Provider) Close() error {
	var all []*worker
	for range p.o.Workers {
		w := <-p.idle
		w.process.hangUp() // all of them before the first is waited for
		all = append(all, w)
	}
	patience, cancel := context.WithTimeout(context.Background(), p.grace)
	defer cancel()
	for _, w := range all {
		w.process.wait(patience)
		w.process = nil
		p.idle <- w
	}
	return nil
}

// take waits for a worker that has nothing to do.
func (p *Provider) take(ctx context.Context) (*worker, error) {
	select {
	case w := <-p.idle:
		return w, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// ask has one batch scored.
func (p *Provider) ask(ctx context.Context, b wire.Batch) ([]rewards.Score, error) {
	request, err := b.Encode(p.o.Columns)
	if err != nil {
		return nil, err
	}
	w, err := p.take(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { p.idle <- w }()
	for restarts := 0; ; restarts++ {
		reply, err := w.ask(ctx, request)
		var failed *failure
		switch {
		case err == nil:
			return w.read(b, reply)
		case !errors.As(err, &failed):
			return nil, b.Wrap(err)
		case restarts == p.o.Restart:
			return b.Unscorable(failed.Error()), nil
		}
	}
}
