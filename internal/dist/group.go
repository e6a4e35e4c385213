// Package dist lets the processes of one run, its ranks, exchange what they have computed. A Group does so over a Link: TCP
// (no installation), MPI (opened at run time), or nothing at all for a run of one process.
//
// All ranks make the same calls in the same order. What comes back depends on what was sent and never on timing: sums are
// made in the order of ranks, and every rank gets the same bits.
package dist

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"math"
	"time"
)

// Link carries bytes between the ranks of a group.
type Link interface {
	Rank() int
	World() int
	// Exchange sends send[i] to rank i and returns what every rank sent to this one, [World]; its own part comes back as it
	// is. It ends with ctx. An error that another rank is the cause of is a *RankError.
	Exchange(ctx context.Context, send [][]byte) ([][]byte, error)
	// Abort tells the other ranks, as far as they can still be reached, that the run ends and which rank is the cause.
	Abort(cause *RankError)
	Close() error
}

// RankError says which rank a collective failed at.
type RankError struct {
	Rank int
	Err  error
}

func (e *RankError) Error() string { return fmt.Sprintf("rank %d: %v", e.Rank, e.Err) }

func (e *RankError) Unwrap() error { return e.Err }

// Group is the ranks of a run. nil is a run of one process, whose collectives do nothing. Not safe for concurrent use.
type Group struct {
	link    Link
	timeout time.Duration
	calls   int // collectives so far
}

// NewGroup makes a group of what link connects. A collective that takes longer than timeout fails, naming a rank that it
// waits for.
func NewGroup(link Link, timeout time.Duration) *Group { return &Group{link: link, timeout: timeout} }

// Rank is the number of this process, from 0.
func (g *Group) Rank() int {
	if g == nil {
		return 0
	}
	return g.link.Rank()
}

// World is the number of processes.
func (g *Group) World() int {
	if g == nil {
		return 1
	}
	return g.link.World()
}

// Share is this rank's part [from, to) of n things in a row.
func (g *Group) Share(n int) (from, to int) { return share(n, g.Rank(), g.World()) }

func share(n, rank, world int) (from, to int) { return n * rank / world, n * (rank + 1) / world }

// Close ends the group; err is why, nil if its work is done. The other ranks are told of it.
func (g *Group) Close(err error) error {
	if g == nil {
		return nil
	}
	if err != nil {
		cause := &RankError{g.Rank(), fmt.Errorf("it has ended: %w", err)}
		errors.As(err, &cause)
		g.link.Abort(cause)
	}
	return g.link.Close()
}

// SumFloats adds the vectors x of all ranks up, in the order of ranks; every rank gets the sum in x. what names it in errors.
func (g *Group) SumFloats(ctx context.Context, what string, x []float32) error {
	if g.World() == 1 {
		return nil
	}
	send := make([][]byte, g.World())
	for r := range send {
		from, to := share(len(x), r, g.World())
		send[r] = floatBytes(x[from:to])
	}
	parts, err := g.exchange(ctx, what, send)
	if err != nil {
		return err
	}
	from, to := g.Share(len(x))
	sum := make([]float32, to-from)
	for r, p := range parts {
		if len(p) != 4*len(sum) {
			return g.failed(what, &RankError{r, errors.New("it has another number of values")})
		}
		eachFloat(p, func(i int, v float32) { sum[i] += v })
	}
	b := floatBytes(sum)
	for r := range send {
		send[r] = b
	}
	if parts, err = g.exchange(ctx, what, send); err != nil {
		return err
	}
	for r, p := range parts {
		from, to := share(len(x), r, g.World())
		if len(p) != 4*(to-from) {
			return g.failed(what, &RankError{r, errors.New("it has another number of values")})
		}
		eachFloat(p, func(i int, v float32) { x[from+i] = v })
	}
	return nil
}

// Gather returns the values of all ranks, in their order, to every rank. what names them in errors.
func Gather[T any](ctx context.Context, g *Group, what string, v T) ([]T, error) {
	if g.World() == 1 {
		return []T{v}, nil
	}
	b, err := encode(v)
	if err != nil {
		return nil, g.failed(what, err)
	}
	send := make([][]byte, g.World())
	for r := range send {
		send[r] = b
	}
	parts, err := g.exchange(ctx, what, send)
	if err != nil {
		return nil, err
	}
	all := make([]T, len(parts))
	for r, p := range parts {
		if r == g.Rank() {
			all[r] = v
		} else if err := decode(p, &all[r]); err != nil {
			return nil, g.failed(what, &RankError{r, err})
		}
	}
	return all, nil
}

// Broadcast returns the value of rank 0 to every rank. what names it in errors.
func Broadcast[T any](ctx context.Context, g *Group, what string, v T) (T, error) {
	if g.World() == 1 {
		return v, nil
	}
	send := make([][]byte, g.World())
	if g.Rank() == 0 {
		b, err := encode(v)
		if err != nil {
			return v, g.failed(what, err)
		}
		for r := range send {
			send[r] = b
		}
	}
	parts, err := g.exchange(ctx, what, send)
	if err != nil || g.Rank() == 0 {
		return v, err
	}
	var got T
	if err := decode(parts[0], &got); err != nil {
		return v, g.failed(what, &RankError{0, err})
	}
	return got, nil
}

// exchange is Link's, under the time limit, with a check that all ranks are in the same call.
func (g *Group) exchange(ctx context.Context, what string, send [][]byte) ([][]byte, error) {
	g.calls++
	head := fmt.Sprintf("%s, call %d\n", what, g.calls)
	framed := make([][]byte, len(send))
	for r, b := range send {
		framed[r] = append(append(make([]byte, 0, len(head)+len(b)), head...), b...)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, g.timeout, fmt.Errorf("it did not answer for %v (dist.timeout)", g.timeout))
	defer cancel()
	parts, err := g.link.Exchange(ctx, framed)
	if err != nil {
		return nil, g.failed(what, err)
	}
	for r, p := range parts {
		theirs, body, _ := bytes.Cut(p, []byte("\n"))
		if string(theirs) != head[:len(head)-1] {
			return nil, g.failed(what, &RankError{r, fmt.Errorf("it is at %.100q, this rank at %q: the ranks have come apart", theirs, head[:len(head)-1])})
		}
		parts[r] = body
	}
	return parts, nil
}

func (g *Group) failed(what string, err error) error { return fmt.Errorf("exchange %s: %w", what, err) }

func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	err := gob.NewEncoder(&b).Encode(v)
	return b.Bytes(), err
}

func decode(b []byte, v any) error { return gob.NewDecoder(bytes.NewReader(b)).Decode(v) }

func floatBytes(x []float32) []byte {
	b := make([]byte, 0, 4*len(x))
	for _, v := range x {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

// eachFloat calls do with the values that floatBytes wrote.
func eachFloat(b []byte, do func(i int, v float32)) {
	for i := range len(b) / 4 {
		do(i, math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])))
	}
}
