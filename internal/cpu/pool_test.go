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

// clock stands still but for what is added to it.
type clock struct {
	ns, reads atomic.Int64
}

// now counts the reading after it has read, so that who waits for the count adds nothing to what is read.
func (c *clock) now() time.Time {
	ns := c.ns.Load()
	c.reads.Add(1)
	return time.Unix(0, ns)
}

// After a wait for a worker that did not run, the caller works alone for a while.
func TestPoolWorksAloneAfterAStall(t *testing.T) {
	const wait = 5 * time.Millisecond
	c := &clock{}
	p := newPool(2, time.Second)
	defer p.close()
	p.now = c.now
	p.run(&late{n: 2, wait: wait, clock: c})
	c.ns.Add(int64(backoff*wait) - 1)
	for range 20 {
		h := &helped{}
		if p.run(h); h.by.Load() != 0 {
			t.Fatal("a worker helped")
		}
	}
	c.ns.Add(1)
	p.run(&joined{n: 2})
}

// late is a task that ends when all workers have joined it; all but the caller then stay until the caller measures how
// long it waits, and for so long.
type late struct {
	n     int32
	wait  time.Duration
	clock *clock
	here  atomic.Int32
}

func (l *late) work(worker int) {
	l.here.Add(1)
	for l.here.Load() < l.n || worker > 0 && l.clock.reads.Load() == 0 {
		yield()
	}
	if worker > 0 {
		l.clock.ns.Add(int64(l.wait))
	}
}

// helped counts the workers other than the caller, for which it gives them some time.
type helped struct{ by atomic.Int32 }

func (h *helped) work(worker int) {
	if worker > 0 {
		h.by.Add(1)
		return
	}
	time.Sleep(10 * time.Microsecond)
}

// Workers join a task, also after they have parked.
func TestPoolWakesWorkers(t *testing.T) {
	p := newPool(3, -1)
	defer p.close()
	for range 20 {
		p.alone = time.Time{} // a busy machine may have stalled the last task
		p.run(&joined{n: 3})
		time.Sleep(100 * time.Microsecond)
	}
}
