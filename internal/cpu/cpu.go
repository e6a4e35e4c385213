package cpu

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// Options say how a device is opened. The zero value takes all processors and the best tier.
type Options struct {
	Threads int // 0 or more than GOMAXPROCS: GOMAXPROCS
	// BFloat16 rounds the activations that enter a product with a weight kept in bfloat16 to bfloat16; sums are float32
	// in any case. It is faster where the machine multiplies bfloat16 directly.
	BFloat16 bool
	// Tier is "amx", "avx512", "avx2" or "portable"; "": the best that the machine has.
	Tier string
	// Spin is how long an idle worker waits for work before it sleeps. It costs a processor's time, but waking a
	// worker costs more than many an operation. 0: one millisecond; negative: none.
	Spin time.Duration
}

// defaultSpin bridges what happens between two operations of a model, not the wait for a reward.
const defaultSpin = time.Millisecond

// tier is a set of kernels by name.
type tier struct {
	name string
	make func(bf16 bool) *kernels
}

// cpu is the device. One goroutine at a time uses it.
type cpu struct {
	k         *kernels
	pool      *pool
	err       error
	limit     int64 // of allocated, 0 if unknown
	allocated int64
	release   map[any]func() // what frees each live memory and weight
	shared    arena          // scratch of the calling goroutine
	workers   []worker
	loop      loop
	ops
}

// ops are the operations' own state, kept so that calling them allocates nothing.
type ops struct {
	pack      packTask
	split     splitTask
	main, aux product
	linear    linear
	norm      rmsNorm
	normGrad  rmsNormGrad
	rotary    rotary
	gate      swiglu
	attention attention
	head      head
	rows      rowsTask
	load      loadTask
	sample    sampleTask
	adam      adamTask
	squares   squares
	drop      dropTask
	columns   columnSums
}

// New opens a device on the CPU. It fails if the tier is unknown or not to be had on this machine.
func New(o Options) (device.Device, error) {
	k, err := choose(o.Tier, o.BFloat16)
	if err != nil {
		return nil, err
	}
	threads := runtime.GOMAXPROCS(0)
	if o.Threads > 0 {
		threads = min(threads, o.Threads)
	}
	if o.Spin == 0 {
		o.Spin = defaultSpin
	}
	d := &cpu{
		k: k, pool: newPool(threads, o.Spin), workers: make([]worker, threads),
		limit: memoryLimit(), release: map[any]func(){},
	}
	return d, nil
}

// choose returns the kernels of a tier, the best for "".
func choose(name string, bf16 bool) (*kernels, error) {
	have := ""
	for _, t := range tiers() {
		if name == "" || name == t.name {
			return t.make(bf16), nil
		}
		have += " " + t.name
	}
	return nil, fmt.Errorf("cpu: tier %q is not available on this machine; it has:%s", name, have)
}

func (d *cpu) Info() device.Info {
	plural := "s"
	if d.pool.n == 1 {
		plural = ""
	}
	arithmetic := ""
	if d.k.pieces == 1 || d.k.round {
		arithmetic = ", bfloat16 products"
	}
	return device.Info{
		Name:    fmt.Sprintf("cpu (%s%s, %d thread%s)", d.k.name, arithmetic, d.pool.n, plural),
		Threads: d.pool.n, Memory: d.limit, Invariant: true,
	}
}

func (d *cpu) Sync() error { return d.err }
func (d *cpu) Err() error  { return d.err }

var errClosed = errors.New("the device is closed")

// Close ends the workers and frees all memory. It returns the sticky error, if there is one; later operations are errors.
func (d *cpu) Close() error {
	if errors.Is(d.err, errClosed) {
		return nil
	}
	err := d.err
	d.pool.close()
	for _, free := range d.release {
		free()
	}
	d.shared.release()
	for i := range d.workers {
		d.workers[i].release()
	}
	*d = cpu{k: d.k, pool: d.pool, limit: d.limit, err: fmt.Errorf("cpu: %w", errClosed)}
	return err
}

// ok makes err sticky unless there is an error already, and reports whether there is none.
func (d *cpu) ok(err error) bool {
	if d.err == nil && err != nil {
		d.err = fmt.Errorf("cpu: %w", err)
	}
	return d.err == nil
}

// each runs body over [0, n), on several workers if there are more than chunk items.
func (d *cpu) each(n, chunk int, body ranged) {
	switch {
	case d.err != nil || n == 0:
	case n <= chunk || d.pool.n == 1:
		body.do(0, 0, n)
	default:
		d.loop.body, d.loop.n, d.loop.chunk = body, n, chunk
		d.loop.next.Store(0)
		d.pool.run(&d.loop)
		d.loop.body = nil
	}
}

// grain is the number of elements that an elementwise task has at least; it takes some 3 µs, several times what sharing
// costs.
const grain = 16384

// rowChunk is how many rows of so many elements make a task.
func rowChunk(cols int) int { return max(1, grain/max(1, cols)) }
