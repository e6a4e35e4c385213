package dist_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rubicon-rl/rubicon/internal/dist"
	"github.com/rubicon-rl/rubicon/internal/dist/disttest"
)

// collectives are what every kind of group has to do, by hand calculation.
func collectives(ctx context.Context, g *dist.Group) error {
	for n := range 6 { // fewer values than ranks, too
		x := make([]float32, n)
		want := make([]float32, n)
		for i := range x {
			x[i] = float32((g.Rank() + 1) * (i + 1))
			want[i] = float32(g.World() * (g.World() + 1) / 2 * (i + 1)) // 1+2+...+N
		}
		if err := g.SumFloats(ctx, "a vector", x); err != nil {
			return err
		}
		if !slices.Equal(x, want) {
			return fmt.Errorf("sum %v, want %v", x, want)
		}
	}
	// 2^24 + 1 is 2^24 in float32: in the order of ranks the ones are lost, in another they are not.
	x := []float32{1}
	if g.Rank() == 0 {
		x[0] = 1 << 24
	}
	if err := g.SumFloats(ctx, "an order", x); err != nil || x[0] != 1<<24 {
		return fmt.Errorf("sum %v, want 2^24: not in the order of ranks: %w", x, err)
	}
	// Up to 18 MB, more than MPI is given at a time.
	all, err := dist.Gather(ctx, g, "names", strings.Repeat("x", g.Rank()*6_000_000))
	if err != nil {
		return err
	}
	for r, s := range all {
		if len(s) != r*6_000_000 {
			return fmt.Errorf("rank %d sent %d bytes", r, len(s))
		}
	}
	said, err := dist.Broadcast(ctx, g, "a word", fmt.Sprint("rank ", g.Rank()))
	if err != nil || said != "rank 0" {
		return fmt.Errorf("broadcast %q: %w", said, err)
	}
	return nil
}

func TestCollectives(t *testing.T) {
	for world := 1; world <= 4; world++ {
		if err := errors.Join(disttest.Each(world, func(g *dist.Group) error { return collectives(t.Context(), g) })...); err != nil {
			t.Errorf("%d goroutines: %v", world, err)
		}
		if err := errors.Join(overTCP(t, world, time.Minute, func(g *dist.Group) error { return collectives(t.Context(), g) })...); err != nil {
			t.Errorf("%d ranks over TCP: %v", world, err)
		}
	}
	if err := collectives(t.Context(), nil); err != nil {
		t.Errorf("alone: %v", err)
	}
}

// overTCP runs do as every rank of a group over TCP and returns the errors by rank.
func overTCP(t *testing.T, world int, timeout time.Duration, do func(g *dist.Group) error) []error {
	t.Helper()
	address := freeAddress(t)
	errs := make([]error, world)
	var all sync.WaitGroup
	for r := range world {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			link, err := dist.TCP(ctx, dist.Place{Rank: r, World: world, Address: address}, "test")
			if err != nil {
				errs[r] = err
				return
			}
			g := dist.NewGroup(link, timeout)
			errs[r] = do(g)
			g.Close(errs[r])
		})
	}
	all.Wait()
	return errs
}

func freeAddress(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// What goes wrong at one rank ends all, with its name: it fails, dies without a word, hangs, or is elsewhere.
func TestFailuresNameTheRank(t *testing.T) {
	hang := make(chan struct{})
	for name, c := range map[string]struct {
		timeout time.Duration
		third   func(g *dist.Group) error
		want    string // of what the others say
	}{
		"fails":          {time.Minute, func(*dist.Group) error { return errors.New("its disk is full") }, "rank 2: it has ended: its disk is full"},
		"dies":           {time.Minute, func(g *dist.Group) error { return g.Close(nil) }, "rank 2: its process has ended"},
		"hangs":          {time.Second, func(*dist.Group) error { <-hang; return nil }, "rank 2: it did not answer for 1s (dist.timeout)"},
		"elsewhere":      {time.Minute, func(g *dist.Group) error { _, err := dist.Gather(t.Context(), g, "rewards", 1); return err }, `rank 2: it is at "rewards, call 2"`},
		"another length": {time.Minute, func(g *dist.Group) error { return g.SumFloats(t.Context(), "gradient", make([]float32, 3)) }, "rank 2: it has another number of values"},
	} {
		t.Run(name, func(t *testing.T) {
			var left sync.WaitGroup
			left.Add(2)
			if name == "hangs" {
				go func() { left.Wait(); close(hang) }()
			}
			errs := overTCP(t, 3, c.timeout, func(g *dist.Group) error {
				if _, err := dist.Gather(t.Context(), g, "samples", 1); err != nil {
					return err
				}
				if g.Rank() == 2 {
					return c.third(g)
				}
				defer left.Done()
				return g.SumFloats(t.Context(), "gradient", make([]float32, 300))
			})
			for r, err := range errs[:2] {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("rank %d says %v, want %q", r, err, c.want)
				}
			}
		})
	}
}

// Ranks of different runs, and two of the same rank, are told apart; a stranger does not disturb.
func TestTCPRefuses(t *testing.T) {
	meet := func(t *testing.T, second dist.Place, run string) error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		address := freeAddress(t)
		second.Address = address
		go func() {
			if c, err := net.Dial("tcp", address); err == nil {
				fmt.Fprint(c, "GET / HTTP/1.0\r\n\r\n")
				c.Close()
			}
			if link, err := dist.TCP(ctx, second, run); err == nil {
				link.Close()
			}
		}()
		link, err := dist.TCP(ctx, dist.Place{Rank: 0, World: 2, Address: address}, "a")
		if err == nil {
			link.Close()
		}
		return err
	}
	for _, c := range []struct {
		second dist.Place
		run    string
		want   string
	}{
		{dist.Place{Rank: 1, World: 3}, "a", `rank 1: it belongs to run "a" of 3`},
		{dist.Place{Rank: 1, World: 2}, "b", `rank 1: it belongs to run "b" of 2, this is run "a" of 2`},
	} {
		if err := meet(t, c.second, c.run); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	if err := meet(t, dist.Place{Rank: 1, World: 2}, "a"); err != nil {
		t.Errorf("a stranger came first: %v", err)
	}
}

func TestFind(t *testing.T) {
	for name, c := range map[string]struct {
		env  map[string]string
		want dist.Place
		err  string
	}{
		"alone":    {nil, dist.Place{World: 1}, ""},
		"torchrun": {map[string]string{"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "MASTER_ADDR": "node0", "MASTER_PORT": "29500"}, dist.Place{3, 4, 1, "torchrun's environment", false, "node0:29500"}, ""},
		"torchrun's own store": {map[string]string{"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "::1", "MASTER_PORT": "29500", "TORCHELASTIC_USE_AGENT_STORE": "True"},
			dist.Place{0, 2, 0, "torchrun's environment", false, "[::1]:29501"}, ""},
		"Open MPI":           {map[string]string{"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_RANK": "1"}, dist.Place{1, 2, 1, "Open MPI", true, ""}, ""},
		"MPICH":              {map[string]string{"PMI_RANK": "1", "PMI_SIZE": "2", "MPI_LOCALRANKID": "0"}, dist.Place{1, 2, 0, "PMI", true, ""}, ""},
		"Slurm":              {map[string]string{"SLURM_PROCID": "5", "SLURM_NTASKS": "8", "SLURM_STEP_NUM_TASKS": "8", "SLURM_LOCALID": "1"}, dist.Place{5, 8, 1, "Slurm", false, ""}, ""},
		"Slurm batch script": {map[string]string{"SLURM_PROCID": "0", "SLURM_NTASKS": "8"}, dist.Place{World: 1}, ""},
		"no number":          {map[string]string{"RANK": "x", "WORLD_SIZE": "2"}, dist.Place{}, `RANK is "x"`},
		"rank too high":      {map[string]string{"RANK": "2", "WORLD_SIZE": "2"}, dist.Place{}, `RANK is "2"`},
		"no port":            {map[string]string{"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "a"}, dist.Place{}, `MASTER_PORT is ""`},
	} {
		got, err := dist.Find(func(k string) string { return c.env[k] })
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %+v, %v; want %+v, %q", name, got, err, c.want, c.err)
		}
	}
}
