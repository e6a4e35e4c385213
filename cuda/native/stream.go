package native

import (
	"unsafe"

	"github.com/rubicon-rl/rubicon/cuda/driver"
)

const (
	streamNonBlocking = 1 // does not wait for the default stream
	eventBlocking     = 1 // who waits sleeps instead of asking again and again
)

// NewStream implements driver.Streams.
func (d *Driver) NewStream() (driver.Stream, error) {
	s := new(driver.Stream)
	err := d.cuda.call(fStreamCreate, uintptr(unsafe.Pointer(s)), streamNonBlocking)
	return *s, err
}

// CloseStream implements driver.Streams.
func (d *Driver) CloseStream(s driver.Stream) error { return d.cuda.call(fStreamDestroy, uintptr(s)) }

// SyncStream implements driver.Streams.
func (d *Driver) SyncStream(s driver.Stream) error {
	return d.cuda.call(fStreamSynchronize, uintptr(s))
}

// idle reports whether everything in s is done.
func (d *Driver) idle(s driver.Stream) (bool, error) {
	err := d.cuda.call(fStreamQuery, uintptr(s))
	if e, ok := err.(*driver.Error); ok && e.Code == codeNotReady {
		return false, nil
	}
	return err == nil, err
}

// NewEvent implements driver.Streams.
func (d *Driver) NewEvent() (driver.Event, error) {
	e := new(driver.Event)
	err := d.cuda.call(fEventCreate, uintptr(unsafe.Pointer(e)), eventBlocking)
	return *e, err
}

// CloseEvent implements driver.Streams.
func (d *Driver) CloseEvent(e driver.Event) error { return d.cuda.call(fEventDestroy, uintptr(e)) }

// Record implements driver.Streams.
func (d *Driver) Record(e driver.Event, s driver.Stream) error {
	return d.cuda.call(fEventRecord, uintptr(e), uintptr(s))
}

// Wait implements driver.Streams.
func (d *Driver) Wait(s driver.Stream, e driver.Event) error {
	return d.cuda.call(fStreamWaitEvent, uintptr(s), uintptr(e), 0)
}

// SyncEvent implements driver.Streams.
func (d *Driver) SyncEvent(e driver.Event) error { return d.cuda.call(fEventSynchronize, uintptr(e)) }

// Elapsed implements driver.Streams.
func (d *Driver) Elapsed(from, to driver.Event) (float32, error) {
	ms := new(float32)
	err := d.cuda.call(fEventElapsedTime, uintptr(unsafe.Pointer(ms)), uintptr(from), uintptr(to))
	return *ms, err
}
