package dist

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"
	"unsafe"
)

// MPI's library is opened at run time, without cgo. What differs between implementations is what their handles are: Open MPI
// (4, 5) has addresses of its own variables, MPICH and its kin (Intel MPI, MVAPICH) have numbers.
//
// Only calls between two ranks are used, and those that do not wait: so it is known whom a rank waits for, and for how long.

// abi is an MPI library that is open: its functions, and the values of its constants.
type abi struct {
	initThread, commRank, commSize, setErrhandler, isend, irecv, test, abort, finalize, errorString uintptr

	world, bytes, errorsReturn, ignoreStatus uintptr
}

// names of the functions of an MPI library, and where they go.
func (a *abi) names() map[string]*uintptr {
	return map[string]*uintptr{
		"MPI_Init_thread": &a.initThread, "MPI_Comm_rank": &a.commRank, "MPI_Comm_size": &a.commSize,
		"MPI_Comm_set_errhandler": &a.setErrhandler, "MPI_Isend": &a.isend, "MPI_Irecv": &a.irecv, "MPI_Test": &a.test,
		"MPI_Abort": &a.abort, "MPI_Finalize": &a.finalize, "MPI_Error_string": &a.errorString,
	}
}

const (
	funneled = 1       // MPI_THREAD_FUNNELED: the thread that begins makes all calls
	tagSize  = 1       // of a message that says how long the next one is
	tagBody  = 2       //
	maxBody  = 1 << 24 // bytes of one message; longer ones are cut, because counts are C's int
)

// mpi is a Link. Its goroutine is bound to the thread that makes all calls.
type mpi struct {
	*abi
	rank, size int
	jobs       chan func()
	held       [][]byte // memory that a transfer that was given up may still write to
}

// MPI connects this process with the others that an MPI launcher has started.
func MPI(p Place, getenv func(string) string) (Link, error) {
	restore := keepSignals()
	defer restore()
	a, path, err := openMPI(getenv)
	if err != nil {
		return nil, err
	}
	m := &mpi{abi: a, jobs: make(chan func())}
	go func() {
		runtime.LockOSThread()
		for job := range m.jobs {
			job()
		}
	}()
	if err := m.do(m.begin); err != nil {
		return nil, fmt.Errorf("start MPI (%s): %w", path, err)
	}
	if m.rank != p.Rank || m.size != p.World {
		return nil, fmt.Errorf("%s says that this is rank %d of %d, the launcher (%s) says %d of %d: the library is not the launcher's; name the right one in RUBICON_LIBMPI, or set dist.backend to tcp",
			path, m.rank, m.size, p.Launcher, p.Rank, p.World)
	}
	return m, nil
}

// do runs a job on MPI's thread.
func (m *mpi) do(job func() error) error {
	done := make(chan error)
	m.jobs <- func() { done <- job() }
	return <-done
}

func (m *mpi) begin() error {
	var n [1]int32
	if err := m.failed(invoke(m.initThread, 0, 0, funneled, uintptr(unsafe.Pointer(&n)))); err != nil {
		return err
	}
	if err := m.failed(invoke(m.setErrhandler, m.world, m.errorsReturn)); err != nil {
		return err
	}
	if err := m.failed(invoke(m.commRank, m.world, uintptr(unsafe.Pointer(&n)))); err != nil {
		return err
	}
	m.rank = int(n[0])
	err := m.failed(invoke(m.commSize, m.world, uintptr(unsafe.Pointer(&n))))
	m.size = int(n[0])
	return err
}

// failed is the error of MPI's return code; nil: none.
func (m *mpi) failed(code uintptr) error {
	if int32(code) == 0 {
		return nil
	}
	var text [8192]byte // more than any MPI_MAX_ERROR_STRING
	var n [1]int32
	if invoke(m.errorString, code, uintptr(unsafe.Pointer(&text)), uintptr(unsafe.Pointer(&n))) != 0 {
		return fmt.Errorf("MPI error %d", int32(code))
	}
	return errors.New(string(text[:n[0]]))
}

func (m *mpi) Rank() int  { return m.rank }
func (m *mpi) World() int { return m.size }

// Exchange implements Link: first the lengths, then the messages.
func (m *mpi) Exchange(ctx context.Context, send [][]byte) (got [][]byte, err error) {
	err = m.do(func() (err error) {
		lengths, sizes := make([][]byte, m.size), make([][]byte, m.size)
		for r := range lengths {
			lengths[r], sizes[r] = binary.LittleEndian.AppendUint64(nil, uint64(len(send[r]))), make([]byte, 8)
		}
		if err := m.swap(ctx, tagSize, lengths, sizes); err != nil {
			return err
		}
		got = make([][]byte, m.size)
		for r := range got {
			if r != m.rank {
				got[r] = make([]byte, binary.LittleEndian.Uint64(sizes[r]))
			}
		}
		return m.swap(ctx, tagBody, send, got)
	})
	if err == nil {
		got[m.rank] = send[m.rank]
	}
	return got, err
}

// transfer is a message on its way.
type transfer struct {
	rank    int
	request *[1]uint64 // an MPI_Request, which has four or eight bytes
}

// swap sends send[r] to every other rank r and fills get[r] with what it sends.
func (m *mpi) swap(ctx context.Context, tag uintptr, send, get [][]byte) error {
	m.held = append(append(m.held, send...), get...)
	var pending []transfer
	for r := range send {
		if r == m.rank {
			continue
		}
		for _, way := range []struct {
			fn uintptr
			b  []byte
		}{{m.irecv, get[r]}, {m.isend, send[r]}} {
			for b := way.b; len(b) > 0; b = b[min(len(b), maxBody):] {
				t := transfer{r, new([1]uint64)}
				code := invoke(way.fn, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(min(len(b), maxBody)), m.bytes, uintptr(r), tag, m.world, uintptr(unsafe.Pointer(t.request)))
				if err := m.failed(code); err != nil {
					return &RankError{r, err}
				}
				pending = append(pending, t)
			}
		}
	}
	if err := m.wait(ctx, pending); err != nil {
		return err
	}
	m.held = nil
	return nil
}

// wait waits for transfers, at first eagerly, then with pauses, because the processor may be wanted elsewhere.
func (m *mpi) wait(ctx context.Context, pending []transfer) error {
	for pause := time.Duration(0); len(pending) > 0; {
		var left []transfer
		for _, t := range pending {
			var arrived [1]int32
			if err := m.failed(invoke(m.test, uintptr(unsafe.Pointer(t.request)), uintptr(unsafe.Pointer(&arrived)), m.ignoreStatus)); err != nil {
				return &RankError{t.rank, err}
			}
			if arrived[0] == 0 {
				left = append(left, t)
			}
		}
		if len(left) == len(pending) {
			if ctx.Err() != nil {
				return &RankError{left[0].rank, context.Cause(ctx)}
			}
			time.Sleep(pause)
			pause = min(pause+2*time.Microsecond, time.Millisecond)
		}
		pending = left
	}
	return nil
}

// Abort implements Link: MPI ends all processes of the run, this one too, so that it says why.
func (m *mpi) Abort(cause *RankError) {
	fmt.Fprintln(os.Stderr, "rubicon: the run is ended by rank", m.rank, "because of", cause)
	_ = m.do(func() error { return m.failed(invoke(m.abort, m.world, 1)) })
}

// Close implements Link. MPI waits for the other ranks here.
func (m *mpi) Close() error {
	err := m.do(func() error { return m.failed(invoke(m.finalize)) })
	close(m.jobs)
	return err
}
