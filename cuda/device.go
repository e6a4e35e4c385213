package cuda

import (
	"errors"
	"fmt"

	"github.com/rubicon-rl/rubicon/cuda/driver"
	"github.com/rubicon-rl/rubicon/internal/device"
)

// Options say how a device is opened.
type Options struct {
	Driver driver.Driver // the device closes it
	Blas   driver.Blas   // and this
	Act    driver.Type   // of activations
}

// gpu is the device. One goroutine at a time uses it, locked to its thread.
type gpu struct {
	driver.Driver
	blas      driver.Blas
	act       driver.Type
	info      driver.Info
	stream    driver.Stream
	err       error
	kernels   kernels
	pool      pool
	staging   staging
	live      map[any]int64 // bytes of each memory and weight
	held      int64         // their sum
	attention attentionPlans
}

// New opens a device on a driver and a library for matrix products.
func New(o Options) (device.Device, error) {
	d := &gpu{Driver: o.Driver, blas: o.Blas, act: o.Act, info: o.Driver.Info(), live: map[any]int64{}}
	if err := d.open(); err != nil {
		return nil, fmt.Errorf("cuda: open %s: %w", d.info.Name, errors.Join(err, o.Blas.Close(), o.Driver.Close()))
	}
	return d, nil
}

func (d *gpu) open() (err error) {
	if err := d.Bind(); err != nil {
		return err
	}
	if d.stream, err = d.NewStream(); err != nil {
		return err
	}
	d.kernels = newKernels()
	d.pool.driver = d.Driver
	return d.staging.open(d.Driver)
}

// Info implements device.Memory.
func (d *gpu) Info() device.Info {
	arithmetic := "float32"
	if d.act == driver.BF16 {
		arithmetic = "bfloat16"
	}
	return device.Info{Name: fmt.Sprintf("cuda (%s, %s, %s)", d.info.Name, d.info.Driver, arithmetic), Memory: d.info.Memory}
}

// Sync implements device.Memory.
func (d *gpu) Sync() error {
	if d.err == nil {
		d.ok(d.SyncStream(d.stream))
	}
	return d.err
}

// Err implements device.Memory.
func (d *gpu) Err() error { return d.err }

// ok makes err sticky unless there is an error already, and reports whether there is none.
func (d *gpu) ok(err error) bool {
	if d.err == nil && err != nil {
		d.err = fmt.Errorf("cuda: %w", err)
	}
	return d.err == nil
}

var errClosed = errors.New("the device is closed")

// Close frees all memory and returns the sticky error, if there is one; later operations are errors.
func (d *gpu) Close() error {
	if errors.Is(d.err, errClosed) {
		return nil
	}
	if err := d.SyncStream(d.stream); d.err == nil { // pinned memory is not to be freed under a copy
		d.err = err
	}
	err := errors.Join(d.err, d.staging.close(d.Driver), d.pool.close(), d.CloseStream(d.stream), d.blas.Close(), d.Driver.Close())
	d.err = fmt.Errorf("cuda: %w", errClosed)
	d.held = 0
	clear(d.live)
	return err
}
