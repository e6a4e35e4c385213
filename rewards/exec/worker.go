package exec

import (
	"context"
	"fmt"
	"io"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/rewards/http/wire"
)

// worker keeps one process of the command: it is started when there is something to ask, and replaced when it has failed.
type worker struct {
	program string
	args    []string // the program's name first
	env     []string
	dir     string // the run's folder; "": none
	number  int
	timeout time.Duration
	limit   int      // of a reply, bytes
	process *process // nil: none runs
}

// failure is the end or the silence of a process. Another one may do better.
type failure struct{ text string }

func (f *failure) Error() string { return f.text }

// ask puts one request to the process and returns its line of reply. After an error the process is gone.
func (w *worker) ask(ctx context.Context, request []byte) (reply []byte, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if w.process == nil {
		if w.process, err = w.start(); err != nil {
			return nil, err
		}
	}
	if reply, err = w.process.exchange(ctx, request, w.timeout); err != nil {
		err = w.drop(err)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return reply, err
}

// read takes a reply apart. A process that gives wrong ones is not asked again.
func (w *worker) read(b wire.Batch, reply []byte) ([]rewards.Score, error) {
	scores, err := b.Decode(reply)
	if err != nil {
		return nil, w.drop(err)
	}
	return scores, nil
}

// drop kills the process. It adds to err what the process wrote last to standard error.
func (w *worker) drop(err error) error {
	p := w.process
	w.process = nil
	if err == errEnded { // its output has; it may still be on its way out
		ctx, cancel := context.WithTimeout(context.Background(), drain)
		defer cancel()
		p.wait(ctx)
	} else {
		p.kill()
	}
	switch err {
	case errEnded:
		return &failure{fmt.Sprintf("the command ended (%s) without an answer%s", p.status(), p.stderr.last())}
	case errLate:
		return &failure{fmt.Sprintf("the command gave no answer within %v (timeout)%s", w.timeout, p.stderr.last())}
	}
	return fmt.Errorf("%w%s", err, p.stderr.last())
}

// start starts the command.
func (w *worker) start() (*process, error) {
	log, err := w.openLog()
	if err != nil {
		return nil, fmt.Errorf("open the command's log: %w", err)
	}
	name := strings.Join(w.args, " ")
	if r := []rune(name); len(r) > 60 {
		name = "…" + string(r[len(r)-60:])
	}
	cmd := &osexec.Cmd{Path: w.program, Args: w.args, Env: w.env}
	p, err := start(cmd, w.limit, &stderr{log: log, prefix: fmt.Sprintf("[%s #%d] ", name, w.number)})
	if err != nil {
		log.Close()
		return nil, fmt.Errorf("start the command %q: %w", w.args, err)
	}
	return p, nil
}

// openLog opens what the standard error of the command is copied to.
func (w *worker) openLog() (io.WriteCloser, error) {
	if w.dir == "" {
		return keepOpen{os.Stderr}, nil
	}
	if err := os.MkdirAll(w.dir, 0o755); err != nil {
		return nil, err
	}
	return os.OpenFile(filepath.Join(w.dir, "exec.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
}

// keepOpen is a writer that stays open.
type keepOpen struct{ io.Writer }

func (keepOpen) Close() error { return nil }
