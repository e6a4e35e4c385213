package ptxsim

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/rubicon-rl/rubicon/cuda/driver"
)

// The device is like an A100: a block may have so many bytes of shared memory.
const sharedLimit = 163 << 10

// Driver is the device. Everything is done when a call returns. One goroutine at a time uses it.
type Driver struct {
	memory   memory
	cache    *Cache
	modules  []*module
	funcs    []function
	workers  int
	races    bool
	launches uint32
	hosts    map[*byte]bool // pinned memory of the host
	closed   bool
}

// function is a kernel of a device, and the dynamic shared memory that it may have.
type function struct {
	kernel *kernel
	shared int
}

var _ driver.Driver = (*Driver)(nil)

// Option changes what a device does.
type Option func(*Driver)

// WithCache makes a device take modules from a cache that others use too.
func WithCache(c *Cache) Option { return func(d *Driver) { d.cache = c } }

// WithoutGlobalRaces makes a device not look for races between the blocks of a launch, which takes memory of twice to eight
// times that of what kernels touch. Kernels whose blocks hand data to each other in a launch (by fences, and atomics or
// volatile accesses) need it, since the check takes that for a race.
func WithoutGlobalRaces() Option { return func(d *Driver) { d.races = false } }

// NewDriver makes a device with so many bytes of memory, which is taken from the process as it is allocated.
func NewDriver(size int, options ...Option) (*Driver, error) {
	if size <= 0 {
		return nil, fmt.Errorf("ptxsim: a device with %d bytes of memory", size)
	}
	d := &Driver{cache: &Cache{}, workers: runtime.GOMAXPROCS(0), races: true, hosts: map[*byte]bool{}}
	d.memory.size = int64(size)
	for _, o := range options {
		o(d)
	}
	return d, nil
}

// Info implements driver.Driver; the figures are an A100's.
func (d *Driver) Info() driver.Info {
	return driver.Info{Name: "simulated A100", Driver: "ptxsim", Major: 8, Processors: 108, SharedLimit: sharedLimit,
		Memory: d.memory.size}
}

// Leaks describes the memory of the device and the pinned memory that is not freed; "" if all is.
func (d *Driver) Leaks() string {
	s := d.memory.leaks()
	if n := len(d.hosts); n > 0 {
		s += fmt.Sprintf(" %d blocks of pinned memory", n)
	}
	return s
}

// Bind implements driver.Driver.
func (d *Driver) Bind() error { return d.open() }

var errClosed = errors.New("ptxsim: the device is closed")

func (d *Driver) open() error {
	if d.closed {
		return errClosed
	}
	return nil
}

// Close implements driver.Driver: the memory goes back to the process.
func (d *Driver) Close() error {
	if d.closed {
		return errClosed
	}
	d.closed = true
	d.memory = memory{size: d.memory.size}
	d.modules, d.funcs, d.hosts = nil, nil, nil
	return nil
}

// Load implements driver.Code. An instruction that is not known is an error.
func (d *Driver) Load(ptx []byte) (driver.Module, error) {
	if d.closed {
		return 0, errClosed
	}
	m, err := d.cache.parse(ptx)
	if err != nil {
		return 0, fmt.Errorf("ptxsim: %w", err)
	}
	d.modules = append(d.modules, m)
	return driver.Module(len(d.modules)), nil
}

// Func implements driver.Code.
func (d *Driver) Func(m driver.Module, name string) (driver.Func, error) {
	if m < 1 || int(m) > len(d.modules) {
		return 0, fmt.Errorf("ptxsim: there is no module %d", m)
	}
	k := d.modules[m-1].kernels[name]
	if k == nil {
		return 0, fmt.Errorf("ptxsim: there is no kernel %q", name)
	}
	d.funcs = append(d.funcs, function{k, maxStaticShared - k.shared})
	return driver.Func(len(d.funcs)), nil
}

// SetShared implements driver.Code.
func (d *Driver) SetShared(f driver.Func, n int) error {
	if f < 1 || int(f) > len(d.funcs) {
		return fmt.Errorf("ptxsim: there is no function %d", f)
	}
	own := &d.funcs[f-1]
	if n < 0 || n+own.kernel.shared > sharedLimit {
		return fmt.Errorf("ptxsim: kernel %s: %d bytes of dynamic and %d of static shared memory, more than the device's %d",
			own.kernel.name, n, own.kernel.shared, sharedLimit)
	}
	own.shared = n
	return nil
}

// Launch implements driver.Code. It refuses what a device would, and fails if the kernel does what it may not.
func (d *Driver) Launch(f driver.Func, l driver.Launch, a *driver.Args) error {
	if f < 1 || int(f) > len(d.funcs) {
		return fmt.Errorf("ptxsim: there is no function %d", f)
	}
	own := d.funcs[f-1]
	params, err := own.kernel.pack(a)
	if err != nil {
		return fmt.Errorf("ptxsim: kernel %s: %w", own.kernel.name, err)
	}
	d.launches++
	job := launch{kernel: own.kernel, memory: &d.memory, grid: l.Grid, block: l.Block, shared: l.Shared, params: params,
		number: d.launches, races: d.races}
	if err := job.check(own.shared); err != nil {
		return fmt.Errorf("ptxsim: kernel %s: %w", own.kernel.name, err)
	}
	if err := job.run(d.workers); err != nil {
		return fmt.Errorf("ptxsim: %w", err)
	}
	return nil
}
