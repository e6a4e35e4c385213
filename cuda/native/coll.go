package native

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unsafe"

	"github.com/rubicon-rl/rubicon/cuda/driver"
)

// Functions of NCCL.
const (
	fCollVersion = iota
	fCollUniqueID
	fCollInit
	fCollDestroy
	fCollAbort
	fCollAsyncError
	fCollAllReduce
	fCollBroadcast
	fCollAllGather
	fCollReduceScatter
)

func collNames() []string {
	return []string{
		fCollVersion: "ncclGetVersion", fCollUniqueID: "ncclGetUniqueId", fCollInit: "ncclCommInitRank", fCollDestroy: "ncclCommDestroy",
		fCollAbort: "ncclCommAbort", fCollAsyncError: "ncclCommGetAsyncError",
		fCollAllReduce: "ncclAllReduce", fCollBroadcast: "ncclBroadcast", fCollAllGather: "ncclAllGather", fCollReduceScatter: "ncclReduceScatter",
	}
}

// NCCL is the library of collectives.
type NCCL struct {
	*library
	version string
}

// OpenNCCL opens it.
func OpenNCCL(e Env) (*NCCL, error) {
	w := wanted{
		what: "NCCL", override: "RUBICON_NCCL", sonames: []string{"libnccl.so.2"}, wheels: []string{"nccl/lib"},
		hint: "python3 -m pip install nvidia-nccl-cu12 (nvidia-nccl-cu13 for CUDA 13), or set RUBICON_NCCL to the file",
	}
	l, err := w.load(e, collNames(), collError)
	if err != nil {
		return nil, err
	}
	v := new(int32)
	if err := l.call(fCollVersion, uintptr(unsafe.Pointer(v))); err != nil {
		return nil, fmt.Errorf("%s: %w", l.path, err)
	}
	return &NCCL{l, fmt.Sprintf("%d.%d.%d", *v/10000, *v%10000/100, *v%100)}, nil
}

// Path is NCCL's file.
func (n *NCCL) Path() string { return n.path }

// Version is its version, as "2.23.4".
func (n *NCCL) Version() string { return n.version }

// ID names a group of processes. One makes it and gives it to the others.
type ID struct{ Bytes [128]byte }

// NewID makes the name of a new group.
func (n *NCCL) NewID() (ID, error) {
	id := new(ID)
	err := n.call(fCollUniqueID, uintptr(unsafe.Pointer(id)))
	return *id, err
}

// Coll is one rank of a group. Before Close or Abort, calls may hang because another rank is dead; Wait does not.
type Coll struct {
	nccl        *NCCL
	driver      *Driver
	comm        uintptr
	rank, world int
}

var _ driver.Coll = (*Coll)(nil)

// Join enters a group of so many processes. It returns when all of them have.
func (n *NCCL) Join(d *Driver, id ID, rank, world int) (*Coll, error) {
	var join func(comm *uintptr, world int32, id ID, rank int32) int32
	bind(&join, n.fn[fCollInit])
	comm := new(uintptr)
	if code := join(comm, int32(world), id, int32(rank)); code != 0 {
		return nil, fmt.Errorf("rank %d of %d: %w", rank, world, collError("ncclCommInitRank", int(code)))
	}
	return &Coll{nccl: n, driver: d, comm: *comm, rank: rank, world: world}, nil
}

// Rank implements driver.Coll.
func (c *Coll) Rank() int { return c.rank }

// World implements driver.Coll.
func (c *Coll) World() int { return c.world }

var errAborted = errors.New("the group of ranks has ended: start all of them again, from the last checkpoint")

//go:uintptrescapes
func (c *Coll) call(f int, a ...uintptr) error {
	if c.comm == 0 {
		return errAborted
	}
	if err := c.nccl.call(f, a...); err != nil {
		return fmt.Errorf("rank %d of %d: %w", c.rank, c.world, err)
	}
	return nil
}

// collType is ncclDataType_t.
func collType(t driver.Type) uintptr {
	if t == driver.BF16 {
		return 9
	}
	return 7
}

const collSum = 0 // ncclRedOp_t

// AllReduce implements driver.Coll.
func (c *Coll) AllReduce(p driver.Ptr, n int, t driver.Type, s driver.Stream) error {
	return c.call(fCollAllReduce, uintptr(p), uintptr(p), uintptr(n), collType(t), collSum, c.comm, uintptr(s))
}

// Broadcast implements driver.Coll.
func (c *Coll) Broadcast(p driver.Ptr, n int, t driver.Type, root int, s driver.Stream) error {
	return c.call(fCollBroadcast, uintptr(p), uintptr(p), uintptr(n), collType(t), uintptr(root), c.comm, uintptr(s))
}

// AllGather implements driver.Coll.
func (c *Coll) AllGather(dst, src driver.Ptr, n int, t driver.Type, s driver.Stream) error {
	return c.call(fCollAllGather, uintptr(src), uintptr(dst), uintptr(n), collType(t), c.comm, uintptr(s))
}

// ReduceScatter implements driver.Coll.
func (c *Coll) ReduceScatter(dst, src driver.Ptr, n int, t driver.Type, s driver.Stream) error {
	return c.call(fCollReduceScatter, uintptr(src), uintptr(dst), uintptr(n), collType(t), collSum, c.comm, uintptr(s))
}

// pollInterval is how long Wait sleeps between two looks.
const pollInterval = 200 * time.Microsecond

// Wait waits for everything in s, collectives with it. If another rank fails, or ctx ends first, it aborts the group, so that
// it comes back whatever the others do; the group is then of no use any more.
func (c *Coll) Wait(ctx context.Context, s driver.Stream) error {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		done, err := c.driver.idle(s)
		if err == nil && !done {
			err = c.fault()
		}
		if err != nil {
			return errors.Join(err, c.Abort())
		}
		if done {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("rank %d of %d waited in vain for the other ranks, one of which is dead or far behind: %w",
				c.rank, c.world, context.Cause(ctx)), c.Abort())
		case <-tick.C:
		}
	}
}

// fault is what has gone wrong in a collective that is under way.
func (c *Coll) fault() error {
	const inProgress = 7
	code := new(int32)
	if err := c.call(fCollAsyncError, c.comm, uintptr(unsafe.Pointer(code))); err != nil {
		return err
	}
	if *code == 0 || *code == inProgress {
		return nil
	}
	return fmt.Errorf("rank %d of %d: %w", c.rank, c.world, collError("a collective", int(*code)))
}

// Abort implements driver.Coll.
func (c *Coll) Abort() error { return c.leave(fCollAbort) }

// Close implements driver.Coll.
func (c *Coll) Close() error { return c.leave(fCollDestroy) }

func (c *Coll) leave(f int) error {
	if c.comm == 0 {
		return nil
	}
	err := c.call(f, c.comm)
	c.comm = 0
	return err
}
