package ptxsim

import (
	"errors"
	"fmt"

	"github.com/rubicon-rl/rubicon/cuda/driver"
)

// MemInfo implements driver.Memory.
func (d *Driver) MemInfo() (free, total int64, err error) {
	return d.memory.size - d.memory.used, d.memory.size, d.open()
}

// Alloc implements driver.Memory. Fresh memory is full of NaN.
func (d *Driver) Alloc(n int64) (driver.Ptr, error) {
	if d.closed {
		return 0, errClosed
	}
	at, err := d.memory.alloc(n)
	if err != nil {
		return 0, fmt.Errorf("ptxsim: %w", err)
	}
	return driver.Ptr(at), nil
}

// Free implements driver.Memory.
func (d *Driver) Free(p driver.Ptr) error {
	if d.closed {
		return errClosed
	}
	if err := d.memory.free(uint64(p)); err != nil {
		return fmt.Errorf("ptxsim: %w", err)
	}
	return nil
}

// HostAlloc implements driver.Memory.
func (d *Driver) HostAlloc(n int) ([]byte, error) {
	if n <= 0 || d.closed {
		return nil, errors.Join(d.open(), fmt.Errorf("ptxsim: %d bytes of pinned memory", n))
	}
	b := make([]byte, n)
	d.hosts[&b[0]] = true
	return b, nil
}

// HostFree implements driver.Memory.
func (d *Driver) HostFree(b []byte) error {
	if len(b) == 0 || !d.hosts[&b[0]] {
		return errors.Join(d.open(), fmt.Errorf("ptxsim: free %d bytes of the host: they are not pinned", len(b)))
	}
	delete(d.hosts, &b[0])
	return nil
}

// bytes are n bytes of device memory.
func (d *Driver) bytes(call string, p driver.Ptr, n int) ([]byte, error) {
	if d.closed {
		return nil, errClosed
	}
	if n == 0 {
		return nil, nil
	}
	b, err := d.memory.bytes(uint64(p), n)
	if err != nil {
		return nil, fmt.Errorf("ptxsim: %s: %w", call, err)
	}
	return b, nil
}

// CopyIn implements driver.Memory.
func (d *Driver) CopyIn(dst driver.Ptr, src []byte, _ driver.Stream) error {
	b, err := d.bytes("copy in", dst, len(src))
	copy(b, src)
	return err
}

// CopyOut implements driver.Memory.
func (d *Driver) CopyOut(dst []byte, src driver.Ptr, _ driver.Stream) error {
	b, err := d.bytes("copy out", src, len(dst))
	copy(dst, b)
	return err
}

// Copy implements driver.Memory.
func (d *Driver) Copy(dst, src driver.Ptr, n int64, _ driver.Stream) error {
	to, err := d.bytes("copy", dst, int(n))
	from, err2 := d.bytes("copy", src, int(n))
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	copy(to, from)
	return nil
}

// Fill implements driver.Memory.
func (d *Driver) Fill(dst driver.Ptr, v byte, n int64, _ driver.Stream) error {
	b, err := d.bytes("fill", dst, int(n))
	for i := range b {
		b[i] = v
	}
	return err
}

// NewStream implements driver.Streams.
func (d *Driver) NewStream() (driver.Stream, error) { return 1, d.open() }

// CloseStream implements driver.Streams.
func (d *Driver) CloseStream(driver.Stream) error { return d.open() }

// SyncStream implements driver.Streams.
func (d *Driver) SyncStream(driver.Stream) error { return d.open() }

// NewEvent implements driver.Streams.
func (d *Driver) NewEvent() (driver.Event, error) { return 1, d.open() }

// CloseEvent implements driver.Streams.
func (d *Driver) CloseEvent(driver.Event) error { return d.open() }

// Record implements driver.Streams.
func (d *Driver) Record(driver.Event, driver.Stream) error { return d.open() }

// Wait implements driver.Streams.
func (d *Driver) Wait(driver.Stream, driver.Event) error { return d.open() }

// SyncEvent implements driver.Streams.
func (d *Driver) SyncEvent(driver.Event) error { return d.open() }

// Elapsed implements driver.Streams: time has no meaning here.
func (d *Driver) Elapsed(_, _ driver.Event) (float32, error) { return 0, d.open() }
