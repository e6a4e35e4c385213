package cpu

import (
	"sync/atomic"
	"testing"
	"time"
)

// counter counts how often each item is handled.
type counter struct{ hits []atomic.Int32 }

func (c *counter) do(_, i, j int) {
	for ; i < j; i++ {
		c.hits[i].Add(1)
	}
}

// Every item is handled once, whatever the workers do: spin, park at once, or wake up late.
func TestPoolHandlesEveryItemOnce(t *testing.T) {
	for _, spin := range []time.Duration{-1, 20 * time.Microsecond, time.Second} {
		for _, n := range []int{1, 2, 5} {
			p := newPool(n, spin)
			for run := range 300 {
				c := &counter{make([]atomic.Int32, 1+run%37)}
				l := &loop{body: c, n: len(c.hits), chunk: 1 + run%3}
				p.run(l)
				for i := range c.hits {
					if got := c.hits[i].Load(); got != 1 {
						t.Fatalf("spin %v, %d workers, run %d: item %d was handled %d times", spin, n, run, i, got)
					}
				}
				if run%50 == 0 {
					time.Sleep(50 * time.Microsecond) // let workers park
				}
			}
			p.close()
		}
	}
}

// joined is a task that ends only when all workers have joined it.
type joined struct {
	n    int32
	here atomic.Int32
}

func (j *joined) work(int) {
	j.here.Add(1)
	for j.here.Load() < j.n {
		yield()
	}
}

// Workers join a task, also after they have parked.
func TestPoolWakesWorkers(t *testing.T) {
	p := newPool(3, -1)
	defer p.close()
	for range 20 {
		p.run(&joined{n: 3})
		time.Sleep(100 * time.Microsecond)
	}
}
