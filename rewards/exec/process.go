package exec

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	"runtime"
	"sync"
	"time"

	"github.com/rubicon-rl/rubicon/rewards/http/wire"
)

var (
	errEnded = errors.New("the command ended")
	errLate  = errors.New("no answer in time")
)

// drain is how long the output of a process that has ended is waited for: something that it left behind may hold the pipe.
const drain = 500 * time.Millisecond

// process is a running command. Its methods but kill are for one goroutine at a time.
type process struct {
	cmd    *osexec.Cmd
	in     *os.File
	out    *os.File
	err    *os.File
	lines  chan line     // of its standard output; closed at its end
	unread chan struct{} // closed when nobody will read lines any more
	forget sync.Once     // closes unread
	ended  chan struct{} // closed when the process has
	done   chan struct{} // closed when nothing of it runs any more
	stderr *stderr
}

// line is one line of output, or why there is none.
type line struct {
	text []byte
	err  error
}

// start starts cmd in a process group of its own. The process must be killed in the end, also if it ended by itself.
func start(cmd *osexec.Cmd, limit int, stderr *stderr) (*process, error) {
	p := &process{
		cmd: cmd, stderr: stderr, lines: make(chan line, 1), unread: make(chan struct{}), ended: make(chan struct{}), done: make(chan struct{}),
	}
	theirs, err := p.pipes()
	if err != nil {
		return nil, err
	}
	started := make(chan error)
	go p.run(limit, started)
	err = <-started
	closeAll(theirs)
	if err != nil {
		closeAll([]*os.File{p.in, p.out, p.err})
		return nil, err
	}
	return p, nil
}

// pipes connects the command's three streams; theirs are the command's ends.
func (p *process) pipes() (theirs []*os.File, err error) {
	var all []*os.File
	for range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(all)
			return nil, err
		}
		all = append(all, r, w)
	}
	p.in, p.out, p.err = all[1], all[2], all[4]
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = all[0], all[3], all[5]
	return []*os.File{all[0], all[3], all[5]}, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// run starts the command, says so, and stays until nothing of it is left. It keeps to one thread: on Linux the system kills
// the command when the thread that started it ends, and that must not happen before the run ends.
func (p *process) run(limit int, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ownGroup(p.cmd)
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	var readers sync.WaitGroup
	readers.Go(func() { p.readLines(limit) })
	readers.Go(func() { p.stderr.copy(p.err) })
	p.cmd.Wait() // how it ended stands in ProcessState
	killGroup(p.cmd)
	close(p.ended)
	late := time.Now().Add(drain)
	p.out.SetReadDeadline(late)
	p.err.SetReadDeadline(late)
	readers.Wait()
	closeAll([]*os.File{p.out, p.err})
	close(p.done)
}

// readLines passes the lines of standard output on. Blank ones do not count.
func (p *process) readLines(limit int) {
	defer close(p.lines)
	for r := bufio.NewReader(p.out); ; {
		text, err := readLine(r, limit)
		l := line{text, nil}
		switch {
		case errors.Is(err, errTooLong):
			l.err = fmt.Errorf("the command wrote a line of more than %d MiB, which begins %s: set max_line_mb", limit>>20, wire.Excerpt(text))
		case err != nil: // the end; half a line is none
			return
		case len(text) == 0:
			continue
		}
		select {
		case p.lines <- l:
		case <-p.unread:
			return
		}
		if l.err != nil {
			return
		}
	}
}

// exchange writes a request and waits for a line of reply. errEnded: the process has ended; errLate: there is no reply in time.
func (p *process) exchange(ctx context.Context, request []byte, timeout time.Duration) ([]byte, error) {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	p.in.SetWriteDeadline(time.Now().Add(timeout))
	stop := context.AfterFunc(ctx, func() { p.in.SetWriteDeadline(time.Unix(1, 0)) })
	defer stop()
	_, err := p.in.Write(request)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, errLate
	}
	// If the process takes no more input it may have said why, so that its output counts and not the failed write.
	select {
	case l, ok := <-p.lines:
		if !ok {
			return nil, errEnded
		}
		return l.text, l.err
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-timer.C:
		return nil, errLate
	}
}

// hangUp ends the process's standard input, which tells it to end. A nil process is fine.
func (p *process) hangUp() {
	if p != nil {
		p.in.Close()
	}
}

// wait waits until the process has ended, at most as long as ctx lasts, and leaves nothing of it. A nil process is fine.
func (p *process) wait(ctx context.Context) {
	if p == nil {
		return
	}
	select {
	case <-p.ended:
	case <-ctx.Done():
	}
	p.kill()
}

// kill ends the process and its group at once, if they still run, and waits until nothing of them is left.
func (p *process) kill() {
	p.forget.Do(func() { close(p.unread) })
	p.in.Close()
	select {
	case <-p.ended:
	default:
		killGroup(p.cmd)
	}
	<-p.done
}

// status tells how the process ended, after kill.
func (p *process) status() string { return p.cmd.ProcessState.String() }

var errTooLong = errors.New("line too long")

// readLine reads up to the end of a line, which is not part of the text. Text without such an end comes with an error.
func readLine(r *bufio.Reader, limit int) ([]byte, error) {
	var text []byte
	for {
		part, err := r.ReadSlice('\n')
		text = append(text, part...)
		switch {
		case len(text) > limit:
			return text, errTooLong
		case err == nil:
			return trimmed(text), nil
		case err != bufio.ErrBufferFull:
			return text, err
		}
	}
}
