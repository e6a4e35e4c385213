package cuda

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/rubicon-rl/rubicon/cuda/driver"
	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/internal/half"
)

// staging is pinned memory through which all copies between host and device go, in two halves: while one is being copied
// the other is filled.
type staging struct {
	halves [2][]byte
	passed [2]driver.Event // the copy from or to the half is done
	next   int
}

// stagingBytes is the size of a half.
const stagingBytes = 4 << 20

func (s *staging) open(d driver.Driver) (err error) {
	for i := range s.halves {
		if s.halves[i], err = d.HostAlloc(stagingBytes); err != nil {
			return err
		}
		if s.passed[i], err = d.NewEvent(); err != nil {
			return err
		}
	}
	return nil
}

func (s *staging) close(d driver.Driver) error {
	var err error
	for i := range s.halves {
		if s.halves[i] != nil {
			err = errors.Join(err, d.CloseEvent(s.passed[i]), d.HostFree(s.halves[i]))
		}
	}
	*s = staging{}
	return err
}

// send copies n elements of size bytes each to at; fill writes the elements [i, j) to b.
func (d *gpu) send(at driver.Ptr, n, size int, fill func(b []byte, i, j int)) {
	s := &d.staging
	chunk := stagingBytes / size
	for i := 0; i < n && d.err == nil; i += chunk {
		j := min(n, i+chunk)
		b := s.halves[s.next][:(j-i)*size]
		if !d.ok(d.SyncEvent(s.passed[s.next])) {
			return
		}
		fill(b, i, j)
		d.ok(d.CopyIn(at+driver.Ptr(i*size), b, d.stream))
		d.ok(d.Record(s.passed[s.next], d.stream))
		s.next = 1 - s.next
	}
}

// receive copies n elements of size bytes each from at and waits for them; take reads the elements [i, j) from b.
func (d *gpu) receive(at driver.Ptr, n, size int, take func(b []byte, i, j int)) {
	chunk := stagingBytes / size
	for i := 0; i < n && d.err == nil; i += chunk {
		j := min(n, i+chunk)
		b := d.staging.halves[0][:(j-i)*size]
		d.ok(d.CopyOut(b, at+driver.Ptr(i*size), d.stream))
		if d.ok(d.SyncStream(d.stream)) {
			take(b, i, j)
		}
	}
}

// sendFloats copies src to elements of type t from at on.
func (d *gpu) sendFloats(at driver.Ptr, t driver.Type, src []float32) {
	d.send(at, len(src), t.Size(), func(b []byte, i, j int) {
		for q, x := range src[i:j] {
			if t == driver.BF16 {
				binary.LittleEndian.PutUint16(b[2*q:], half.ToBF16(x))
			} else {
				binary.LittleEndian.PutUint32(b[4*q:], math.Float32bits(x))
			}
		}
	})
}

func (d *gpu) sendInts(at driver.Ptr, src []int32) {
	d.send(at, len(src), 4, func(b []byte, i, j int) {
		for q, x := range src[i:j] {
			binary.LittleEndian.PutUint32(b[4*q:], uint32(x))
		}
	})
}

// receiveFloats waits for elements of type t from at on.
func (d *gpu) receiveFloats(dst []float32, at driver.Ptr, t driver.Type) {
	d.receive(at, len(dst), t.Size(), func(b []byte, i, j int) {
		for q := range dst[i:j] {
			if t == driver.BF16 {
				dst[i+q] = half.FromBF16(binary.LittleEndian.Uint16(b[2*q:]))
			} else {
				dst[i+q] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*q:]))
			}
		}
	})
}

// Upload implements device.Memory.
func (d *gpu) Upload(dst device.Mem, off int, src []float32) {
	if !d.ok(device.CheckTransfer("upload", dst, off, len(src), false)) {
		return
	}
	if m := d.memory(dst); d.err == nil {
		d.sendFloats(m.at+driver.Ptr(off*m.typ.Size()), m.typ, src)
	}
}

// UploadInts implements device.Memory.
func (d *gpu) UploadInts(dst device.Mem, off int, src []int32) {
	if !d.ok(device.CheckTransfer("upload ints", dst, off, len(src), true)) {
		return
	}
	if m := d.memory(dst); d.err == nil {
		copy(m.ints[off:], src)
		d.sendInts(m.at+driver.Ptr(4*off), src)
	}
}

// Download implements device.Memory.
func (d *gpu) Download(dst []float32, src device.Mem, off int) error {
	if d.ok(device.CheckTransfer("download", src, off, len(dst), false)) {
		if m := d.memory(src); d.err == nil {
			d.receiveFloats(dst, m.at+driver.Ptr(off*m.typ.Size()), m.typ)
		}
	}
	return d.err
}

// DownloadInts implements device.Memory.
func (d *gpu) DownloadInts(dst []int32, src device.Mem, off int) error {
	if d.ok(device.CheckTransfer("download ints", src, off, len(dst), true)) {
		if m := d.memory(src); d.err == nil {
			copy(dst, m.ints[off:])
		}
	}
	return d.err
}
