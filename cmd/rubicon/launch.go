package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/rubicon-rl/rubicon/trainer"
)

// launchGrace is how long processes may go on by themselves after one of them has failed, which they notice.
const launchGrace = 10 * time.Second

// launcher starts the processes of a run on this machine. Its names are torchrun's.
type launcher struct {
	nproc, nodes, node int
	addr               string
	port               int
	logs               string // folder; "": none
	restarts           int
	args               []string
	stdout, stderr     io.Writer
}

func launchCommand() *cobra.Command {
	l := launcher{nodes: 1, addr: "127.0.0.1"}
	cmd := &cobra.Command{
		Use:   "launch --nproc N [flags] -- train|sft ...",
		Short: "Start several processes that make one run",
		Long: "Start several processes on this machine that make one run. Each gets torchrun's environment (RANK, LOCAL_RANK, WORLD_SIZE, " +
			"MASTER_ADDR, MASTER_PORT). An interrupt stops all of them with a checkpoint; if one fails, all end. For several machines, " +
			"start it on each with --nnodes, --node-rank, --master-addr and --master-port.",
		RunE: func(cmd *cobra.Command, args []string) error {
			l.args, l.stdout, l.stderr = args, cmd.OutOrStdout(), cmd.ErrOrStderr()
			if err := l.check(); err != nil {
				return err
			}
			runtime.LockOSThread() // detach binds the processes to this thread
			signals := make(chan os.Signal, 4)
			signal.Notify(signals, stopSignals()...)
			defer signal.Stop(signals)
			return l.supervise(cmd.Context(), signals)
		},
	}
	f := cmd.Flags()
	f.SetInterspersed(false) // what follows train or sft is theirs, also without --
	f.IntVar(&l.nproc, "nproc", 0, "processes on this machine")
	f.IntVar(&l.nodes, "nnodes", l.nodes, "machines")
	f.IntVar(&l.node, "node-rank", 0, "number of this machine, from 0")
	f.StringVar(&l.addr, "master-addr", l.addr, "machine of rank 0")
	f.IntVar(&l.port, "master-port", 0, "free port there; 0, on one machine: any")
	f.StringVar(&l.logs, "log-dir", "", "folder for what each process prints, rank-N.log")
	f.IntVar(&l.restarts, "max-restarts", 0, "how often to start all again if one fails; needs --resume=auto")
	return cmd
}

func (l *launcher) check() error {
	resumes := slices.ContainsFunc(l.args, func(a string) bool { return a == "--resume=auto" || a == "checkpoint.resume=auto" })
	switch {
	case len(l.args) == 0:
		return errors.New("nothing to launch: say what, as in rubicon launch --nproc 2 -- train -c FILE")
	case l.nproc < 1:
		return errors.New("--nproc: set it to the number of processes on this machine")
	case l.nodes < 1 || l.node < 0 || l.node >= l.nodes:
		return fmt.Errorf("--node-rank %d of --nnodes %d: machines count from 0", l.node, l.nodes)
	case l.nodes > 1 && l.port == 0:
		return errors.New("--master-port: set it to a port that is free on the machine of rank 0, the same on all machines")
	case l.restarts > 0 && !resumes:
		return errors.New("--max-restarts: add --resume=auto to what is started, so that it goes on from its last checkpoint")
	case l.args[0] != "train" && l.args[0] != "sft":
		return fmt.Errorf("%s is made by one process: launch train or sft", l.args[0])
	}
	return nil
}

// supervise starts the processes, and again if they fail and may be.
func (l *launcher) supervise(ctx context.Context, signals <-chan os.Signal) error {
	for try := 1; ; try++ {
		err := l.once(ctx, signals)
		if err == nil || errors.Is(err, trainer.ErrInterrupted) || try > l.restarts {
			return err
		}
		fmt.Fprintf(l.stderr, "rubicon launch: %v; starting all again (%d of %d)\n", err, try, l.restarts)
	}
}

// ended is how a process has ended.
type ended struct {
	rank int
	err  error // nil: well
}

// once starts the processes and waits for all of them.
func (l *launcher) once(ctx context.Context, signals <-chan os.Signal) error {
	all, done, err := l.start(ctx)
	if err != nil {
		return err
	}
	var failed error
	interrupted := false
	var kill <-chan time.Time
	for left := len(all); left > 0; {
		select {
		case s := <-signals:
			for _, c := range all {
				_ = forward(c.Process, s) // it may have ended
			}
		case <-kill:
			for _, c := range all {
				_ = c.Process.Kill()
			}
		case e := <-done:
			left--
			var exit *exec.ExitError
			switch {
			case e.err == nil:
			case errors.As(e.err, &exit) && exit.ExitCode() == exitInterrupted:
				interrupted = true
			case failed == nil:
				failed = fmt.Errorf("rank %d failed: %w", e.rank, e.err)
				kill = time.After(launchGrace)
			}
		}
	}
	if failed == nil && interrupted {
		return trainer.ErrInterrupted
	}
	return failed
}

// start starts the processes; done says when each has ended.
func (l *launcher) start(ctx context.Context) ([]*exec.Cmd, <-chan ended, error) {
	port := l.port
	if port == 0 {
		var err error
		if port, err = freePort(l.addr); err != nil {
			return nil, nil, err
		}
	}
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	var shared sync.Mutex
	done := make(chan ended, l.nproc)
	var all []*exec.Cmd
	for local := range l.nproc {
		c := exec.CommandContext(ctx, self, l.args...)
		rank := l.node*l.nproc + local
		c.Env = append(os.Environ(), l.environment(local, port)...)
		detach(c)
		c.WaitDelay = launchGrace
		closeLog, err := l.output(c, rank, &shared)
		if err == nil {
			err = c.Start()
		}
		if err != nil {
			for _, c := range all {
				_ = c.Process.Kill()
			}
			return nil, nil, fmt.Errorf("start rank %d: %w", rank, err)
		}
		all = append(all, c)
		go func() {
			err := c.Wait()
			done <- ended{rank, errors.Join(err, closeLog())}
		}()
	}
	return all, done, nil
}

// environment is what a process is told of its place. Processes on one machine share its processors.
func (l *launcher) environment(local, port int) []string {
	env := []string{
		fmt.Sprint("RANK=", l.node*l.nproc+local), fmt.Sprint("LOCAL_RANK=", local),
		fmt.Sprint("WORLD_SIZE=", l.nodes*l.nproc), fmt.Sprint("LOCAL_WORLD_SIZE=", l.nproc),
		"MASTER_ADDR=" + l.addr, fmt.Sprint("MASTER_PORT=", port),
	}
	if os.Getenv("GOMAXPROCS") == "" {
		env = append(env, fmt.Sprint("GOMAXPROCS=", max(1, runtime.NumCPU()/l.nproc)))
	}
	return env
}

// freePort is a port of this machine that nobody listens at.
func freePort(host string) (int, error) {
	s, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	_, port, err := net.SplitHostPort(s.Addr().String())
	if err := errors.Join(err, s.Close()); err != nil {
		return 0, err
	}
	return strconv.Atoi(port)
}

// output connects what a process prints: the first one's as it is, the others' with their rank before each line.
func (l *launcher) output(c *exec.Cmd, rank int, shared *sync.Mutex) (closeLog func() error, err error) {
	c.Stdout, c.Stderr = l.stdout, l.stderr
	if rank > 0 {
		prefix := fmt.Sprintf("[rank %d] ", rank)
		c.Stdout, c.Stderr = &prefixed{w: l.stdout, prefix: prefix, shared: shared}, &prefixed{w: l.stderr, prefix: prefix, shared: shared}
	}
	if l.logs == "" {
		return func() error { return nil }, nil
	}
	if err := os.MkdirAll(l.logs, 0o755); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(filepath.Join(l.logs, fmt.Sprintf("rank-%d.log", rank)), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	c.Stdout, c.Stderr = io.MultiWriter(c.Stdout, log), io.MultiWriter(c.Stderr, log)
	return log.Close, nil
}

// prefixed writes whole lines with a prefix.
type prefixed struct {
	w      io.Writer
	prefix string
	shared *sync.Mutex // of all that write to w
	line   strings.Builder
}

func (p *prefixed) Write(b []byte) (int, error) {
	for rest := string(b); ; {
		line, after, whole := strings.Cut(rest, "\n")
		p.line.WriteString(line)
		if !whole {
			return len(b), nil
		}
		p.shared.Lock()
		_, err := fmt.Fprintln(p.w, p.prefix+p.line.String())
		p.shared.Unlock()
		p.line.Reset()
		if err != nil {
			return 0, err
		}
		rest = after
	}
}
