package rubricmem

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

const (
	headBytes = 12      // of a frame, before its payload
	maxFrame  = 1 << 30 // bytes of a payload
)

// DamageError is the error for a log with bytes that were changed after they were written.
type DamageError struct {
	Path   string
	Offset int64 // where the frame begins that cannot be read
	Err    error
}

// Error says where the damage is and what can be done.
func (e *DamageError) Error() string {
	return fmt.Sprintf("memory log %s: the record at byte %d is damaged: %v: put back a copy of the file, or remove it: train --resume then writes it anew from the checkpoint",
		e.Path, e.Offset, e.Err)
}

// Unwrap returns what is wrong with the record.
func (e *DamageError) Unwrap() error { return e.Err }

func sum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// appendFrame appends a payload's frame to b.
func appendFrame(b, payload []byte) []byte {
	at := len(b)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(payload)))
	b = binary.LittleEndian.AppendUint32(b, sum(b[at:at+4]))
	b = binary.LittleEndian.AppendUint32(b, sum(payload))
	return append(b, payload...)
}

// readFrames calls visit with the payload of each of r's frames and with the place where the frame ends; r has size bytes.
// The payload is visit's to keep. It returns how many bytes are whole frames: what follows them is one that was not written
// to its end. An error is a *DamageError, or r's.
func readFrames(r io.Reader, size int64, visit func(payload []byte, end int64) error) (whole int64, err error) {
	b := bufio.NewReaderSize(r, 1<<20)
	for whole < size {
		payload, err := readFrame(b, size-whole)
		end := whole + headBytes + int64(len(payload))
		if err == nil {
			if err = visit(payload, end); err != nil {
				err = &DamageError{Err: err}
			}
		}
		switch damage, ok := errors.AsType[*DamageError](err); {
		case ok:
			damage.Offset = whole
			return whole, damage
		case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
			return whole, nil
		case err != nil:
			return whole, err
		}
		whole = end
	}
	return whole, nil
}

// readFrame reads one payload from r, which has left bytes. io.ErrUnexpectedEOF says that the frame was not written to its end.
func readFrame(r *bufio.Reader, left int64) ([]byte, error) {
	var head [headBytes]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := int64(binary.LittleEndian.Uint32(head[:]))
	if binary.LittleEndian.Uint32(head[4:]) != sum(head[:4]) {
		if head == [headBytes]byte{} && onlyZeros(r) { // the file grew, and then the machine stopped
			return nil, io.ErrUnexpectedEOF
		}
		return nil, &DamageError{Err: errors.New("the sum of its length does not match")}
	}
	if n > maxFrame {
		return nil, &DamageError{Err: fmt.Errorf("its length, %d bytes, is above %d", n, maxFrame)}
	}
	if n > left-headBytes {
		return nil, io.ErrUnexpectedEOF
	}
	payload := make([]byte, n)
	if _, err := io.ReadFull(r, payload); err != nil {
		return nil, err
	}
	if binary.LittleEndian.Uint32(head[8:]) != sum(payload) {
		return nil, &DamageError{Err: errors.New("the sum of its content does not match")}
	}
	return payload, nil
}

// onlyZeros tells whether nothing but zeros is left in r.
func onlyZeros(r *bufio.Reader) bool {
	for {
		c, err := r.ReadByte()
		if err != nil {
			return errors.Is(err, io.EOF)
		}
		if c != 0 {
			return false
		}
	}
}
