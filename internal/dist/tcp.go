package dist

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// tcp is a Link of one connection for each pair of ranks. They meet at the address of rank 0, which tells everybody where the
// others listen.
type tcp struct {
	rank  int
	conns []net.Conn // by rank; nil: this one
}

// patience is how long Abort tries to tell the others.
const patience = 2 * time.Second

// hello is what a rank says when it connects to another one.
type hello struct {
	Run         string // all ranks have the same
	Rank, World int
	Listen      string // where it is met itself
}

// TCP connects this rank with the others of its run, whose rank 0 is met at address; run is to be the same on all. It waits
// for them until ctx ends.
func TCP(ctx context.Context, p Place, run string) (Link, error) {
	t := &tcp{rank: p.Rank, conns: make([]net.Conn, p.World)}
	meet := t.join
	if p.Rank == 0 {
		meet = t.lead
	}
	if err := meet(ctx, p.Address, hello{Run: run, Rank: p.Rank, World: p.World}); err != nil {
		return nil, errors.Join(fmt.Errorf("meet the other ranks at %s: %w", p.Address, err), t.Close())
	}
	return t, nil
}

// lead waits for all other ranks and tells each where the others listen.
func (t *tcp) lead(ctx context.Context, address string, me hello) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); host != "localhost" && !ip.IsLoopback() {
		host = "" // the name may be that of a service in front of this machine
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return err
	}
	defer l.Close()
	where := make([]string, me.World)
	err = t.accept(ctx, l, me, me.World-1, where)
	if err != nil {
		return err
	}
	for r := 1; r < me.World; r++ {
		if err := tell(t.conns[r], where); err != nil {
			return &RankError{r, err}
		}
	}
	return nil
}

// join goes to rank 0, and from there to the ranks below this one; those above come.
func (t *tcp) join(ctx context.Context, address string, me hello) error {
	lead, err := dial(ctx, address)
	if err != nil {
		return &RankError{0, err}
	}
	t.conns[0] = lead
	host, _, err := net.SplitHostPort(lead.LocalAddr().String())
	if err != nil {
		return err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return err
	}
	defer l.Close()
	me.Listen = l.Addr().String()
	var where []string
	stop := closeAtEnd(ctx, lead)
	defer stop()
	if err := errors.Join(tell(lead, me), hear(lead, &where)); err != nil {
		return &RankError{0, fmt.Errorf("it did not let this rank in: %w", err)}
	}
	for r := 1; r < me.Rank; r++ {
		if t.conns[r], err = dial(ctx, where[r]); err != nil {
			return &RankError{r, err}
		}
		if err := tell(t.conns[r], me); err != nil {
			return &RankError{r, err}
		}
	}
	return t.accept(ctx, l, me, me.World-1-me.Rank, make([]string, me.World))
}

// accept takes the connections of n ranks and notes where they listen. Who is none of them is turned away.
func (t *tcp) accept(ctx context.Context, l net.Listener, me hello, n int, where []string) error {
	stop := closeAtEnd(ctx, l)
	defer stop()
	for n > 0 {
		c, err := l.Accept()
		if err != nil {
			return errors.Join(context.Cause(ctx), fmt.Errorf("%d of %d ranks have not come: %w", n, me.World, err))
		}
		var h hello
		c.SetDeadline(time.Now().Add(10 * time.Second)) // who says nothing must not keep the others out
		err = hear(c, &h)
		c.SetDeadline(time.Time{})
		switch {
		case err != nil:
			c.Close()
			continue
		case h.Run != me.Run || h.World != me.World:
			return errors.Join(&RankError{h.Rank, fmt.Errorf("it belongs to run %q of %d, this is run %q of %d", h.Run, h.World, me.Run, me.World)}, c.Close())
		case h.Rank <= me.Rank || h.Rank >= me.World || t.conns[h.Rank] != nil:
			return errors.Join(&RankError{h.Rank, errors.New("there is one already: two processes have the same rank")}, c.Close())
		}
		t.conns[h.Rank], where[h.Rank] = c, h.Listen
		n--
	}
	return nil
}

// dial tries until ctx ends: the other may not be there yet.
func dial(ctx context.Context, address string) (net.Conn, error) {
	for {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err == nil {
			return c, nil
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// closeAtEnd closes c when ctx ends, unless stop is called before.
func closeAtEnd(ctx context.Context, c io.Closer) (stop func() bool) {
	return context.AfterFunc(ctx, func() { c.Close() })
}

func (t *tcp) Rank() int  { return t.rank }
func (t *tcp) World() int { return len(t.conns) }

// Exchange implements Link: it reads and writes all connections at the same time. The first failure ends it.
func (t *tcp) Exchange(ctx context.Context, send [][]byte) ([][]byte, error) {
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(within, func() {
		for _, c := range t.conns {
			if c != nil {
				c.SetDeadline(time.Unix(1, 0))
			}
		}
	})
	var once sync.Once
	var first error
	failed := func(r int, err error) {
		once.Do(func() {
			if ctx.Err() != nil { // why the connection was given up
				err = context.Cause(ctx)
			}
			cause := &RankError{r, err}
			errors.As(err, &cause)
			first = cause
		})
		cancel()
	}
	got := make([][]byte, len(t.conns))
	got[t.rank] = send[t.rank]
	var all sync.WaitGroup
	for r, c := range t.conns {
		if c == nil {
			continue
		}
		all.Go(func() {
			if err := write(c, uint64(len(send[r])), send[r]); err != nil && !errors.Is(err, errGone) {
				failed(r, err) // if the other has ended, reading finds out why
			}
		})
		all.Go(func() {
			var err error
			if got[r], err = read(c); err != nil {
				failed(r, err)
			}
		})
	}
	all.Wait()
	if !stop() && first == nil {
		first = context.Cause(ctx)
	}
	return got, first
}

// Abort implements Link.
func (t *tcp) Abort(cause *RankError) {
	for _, c := range t.conns {
		if c == nil {
			continue
		}
		c.SetDeadline(time.Now().Add(patience))
		if write(c, abortLength, nil) == nil {
			_ = tell(c, lastWord{cause.Rank, cause.Err.Error()})
		}
	}
}

// Close implements Link.
func (t *tcp) Close() error {
	for _, c := range t.conns {
		if c != nil {
			c.Close()
		}
	}
	return nil
}
