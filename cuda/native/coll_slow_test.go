//go:build slow && linux && (amd64 || arm64) && !nocuda && !nodl

package native

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/rubicon-rl/rubicon/cuda/driver"
)

// rank is a process of a group: RANK of WORLD_SIZE. Rank 0 prints the group's name, the others read it. TEST_DIES is the rank
// that ends before the second collective; TEST_WAIT how long the others wait.
func rank() error {
	runtime.LockOSThread()
	at, err := strconv.Atoi(os.Getenv("RANK"))
	if err != nil {
		return err
	}
	world, err := strconv.Atoi(os.Getenv("WORLD_SIZE"))
	if err != nil {
		return err
	}
	d, n, err := openRank(os.Getenv(fakeFile))
	if err != nil {
		return err
	}
	id, err := meet(n, at)
	if err != nil {
		return err
	}
	g, err := n.Join(d, id, at, world)
	if err != nil {
		return err
	}
	if g.Rank() != at || g.World() != world || n.Version() != "2.23.4" {
		return fmt.Errorf("rank %d of %d, NCCL %s", g.Rank(), g.World(), n.Version())
	}
	return collectives(&process{d: d, g: g, rank: at, world: world})
}

func openRank(lib string) (*Driver, *NCCL, error) {
	env := machine(map[string]string{"RUBICON_LIBCUDA": lib, "RUBICON_NCCL": lib})
	c, err := Load(env)
	if err != nil {
		return nil, nil, err
	}
	list, err := c.Devices()
	if err != nil {
		return nil, nil, err
	}
	mine, err := Choose(list, os.Getenv("LOCAL_RANK"))
	if err != nil {
		return nil, nil, err
	}
	d, err := c.Open(mine)
	if err != nil {
		return nil, nil, err
	}
	n, err := OpenNCCL(env)
	return d, n, err
}

func meet(n *NCCL, rank int) (id ID, err error) {
	if rank == 0 {
		if id, err = n.NewID(); err == nil {
			fmt.Println(hex.EncodeToString(id.Bytes[:]))
		}
		return id, err
	}
	line, err := bufio.NewReader(os.Stdin).ReadString('\n')
	if err != nil {
		return id, err
	}
	_, err = hex.Decode(id.Bytes[:], []byte(strings.TrimSpace(line)))
	return id, err
}

// process is this rank's device in a group.
type process struct {
	d           *Driver
	g           *Coll
	s           driver.Stream
	rank, world int
}

// big is more elements than the fake moves at once.
const big = 300_000

func collectives(p *process) (err error) {
	if p.s, err = p.d.NewStream(); err != nil {
		return err
	}
	for _, check := range []func() error{p.allReduce, p.broadcast, p.allGather, p.reduceScatter} {
		if err := check(); err != nil {
			return err
		}
		if os.Getenv("TEST_DIES") == strconv.Itoa(p.rank) {
			os.Exit(3)
		}
	}
	return errors.Join(p.g.Close(), p.d.CloseStream(p.s), p.d.Close())
}

// run puts values in memory of n elements, makes a call on it and returns the memory.
func (p *process) run(values []float32, n int, call func(driver.Ptr) error) ([]float32, error) {
	at, err := p.d.Alloc(int64(4 * n))
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	for _, v := range values {
		bits := math.Float32bits(v)
		b.Write([]byte{byte(bits), byte(bits >> 8), byte(bits >> 16), byte(bits >> 24)})
	}
	if err := p.d.CopyIn(at, b.Bytes(), p.s); err != nil {
		return nil, err
	}
	if err := call(at); err != nil {
		return nil, err
	}
	wait := time.Minute
	if w := os.Getenv("TEST_WAIT"); w != "" {
		if wait, err = time.ParseDuration(w); err != nil {
			return nil, err
		}
	}
	ctx, stop := context.WithTimeout(context.Background(), wait)
	defer stop()
	if err := p.g.Wait(ctx, p.s); err != nil {
		return nil, err
	}
	out := make([]byte, 4*n)
	if err := errors.Join(p.d.CopyOut(out, at, p.s), p.d.SyncStream(p.s), p.d.Free(at)); err != nil {
		return nil, err
	}
	got := make([]float32, n)
	for i := range got {
		got[i] = float32(element(out, i, driver.F32))
	}
	return got, nil
}

// same compares with what f gives for each element.
func same(what string, got []float32, f func(i int) float32) error {
	for i, v := range got {
		if v != f(i) {
			return fmt.Errorf("%s: element %d is %g, want %g", what, i, v, f(i))
		}
	}
	return nil
}

// own is what a rank holds at an element: whole numbers, whose sums are exact.
func own(rank, i int) float32 { return float32((rank + 1) * (i%97 - 48)) }

func (p *process) own(n int) []float32 {
	values := make([]float32, n)
	for i := range values {
		values[i] = own(p.rank, i)
	}
	return values
}

// total is the ranks' sum at an element.
func (p *process) total(i int) float32 { return float32(p.world*(p.world+1)/2) * own(0, i) }

func (p *process) allReduce() error {
	got, err := p.run(p.own(big), big, func(at driver.Ptr) error { return p.g.AllReduce(at, big, driver.F32, p.s) })
	if err != nil {
		return err
	}
	return same("all-reduce", got, p.total)
}

func (p *process) broadcast() error {
	root := p.world - 1
	got, err := p.run(p.own(big), big, func(at driver.Ptr) error { return p.g.Broadcast(at, big, driver.F32, root, p.s) })
	if err != nil {
		return err
	}
	return same("broadcast", got, func(i int) float32 { return own(root, i) })
}

func (p *process) allGather() error {
	const n = 1000
	got, err := p.run(p.own(n), n*(p.world+1), func(at driver.Ptr) error { return p.g.AllGather(at+4*n, at, n, driver.F32, p.s) })
	if err != nil {
		return err
	}
	return same("all-gather", got[n:], func(i int) float32 { return own(i/n, i%n) })
}

func (p *process) reduceScatter() error {
	const n = 1000
	got, err := p.run(p.own(n*p.world), n*(p.world+1), func(at driver.Ptr) error {
		return p.g.ReduceScatter(at+driver.Ptr(4*n*p.world), at, n, driver.F32, p.s)
	})
	if err != nil {
		return err
	}
	return same("reduce-scatter", got[n*p.world:], func(i int) float32 { return p.total(p.rank*n + i) })
}
