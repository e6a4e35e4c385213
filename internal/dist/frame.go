package dist

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
)

// A message is its length in 8 bytes and its bytes. The length abortLength is followed by a message that says why the run
// ends, a lastWord.
const abortLength = ^uint64(0)

// lastWord is why a run ends.
type lastWord struct {
	Rank int
	Why  string
}

// tell and hear exchange small values.
func tell(c net.Conn, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return write(c, uint64(len(b)), b)
}

func hear(c net.Conn, v any) error {
	n, err := readLength(c)
	if err != nil {
		return err
	}
	b, err := readBody(c, n, 1<<20)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, v)
}

// errGone is what is left of a connection whose other end has been closed.
var errGone = errors.New("its process has ended")

func write(c net.Conn, length uint64, b []byte) error {
	head := binary.LittleEndian.AppendUint64(nil, length)
	message := net.Buffers{head, b}
	_, err := message.WriteTo(c)
	return gone(err)
}

// read reads a message of an exchange.
func read(c net.Conn) ([]byte, error) {
	n, err := readLength(c)
	if err != nil {
		return nil, err
	}
	if n == abortLength {
		var w lastWord
		if err := hear(c, &w); err != nil {
			return nil, err
		}
		return nil, &RankError{w.Rank, errors.New(w.Why)}
	}
	return readBody(c, n, 1<<40)
}

func readLength(c net.Conn) (uint64, error) {
	var head [8]byte
	_, err := io.ReadFull(c, head[:])
	return binary.LittleEndian.Uint64(head[:]), gone(err)
}

func readBody(c net.Conn, n, limit uint64) ([]byte, error) {
	if n > limit {
		return nil, fmt.Errorf("it announces %d bytes: is it another program?", n)
	}
	b := make([]byte, n)
	_, err := io.ReadFull(c, b)
	return b, gone(err)
}

// gone is err, or errGone if it says that the other end is closed.
func gone(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		return errGone
	}
	return err
}
