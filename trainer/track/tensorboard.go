package track

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// TensorBoard writes an event file into folder tensorboard of the run. TensorBoard keeps float32.
type TensorBoard struct {
	run Run
	now func() time.Time
	f   *os.File
}

// NewTensorBoard makes the sink of a run.
func NewTensorBoard(run Run, now func() time.Time) *TensorBoard {
	return &TensorBoard{run: run, now: now}
}

// Begin implements Sink. Where a run is resumed, TensorBoard forgets what older files have of later steps.
func (t *TensorBoard) Begin(context.Context) error {
	dir := filepath.Join(t.run.Dir, "tensorboard")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	at := t.now()
	// TensorBoard reads the files of a folder in the order of their names.
	name := fmt.Sprintf("events.out.tfevents.%010d.%s.%d", at.Unix(), host, os.Getpid())
	if t.f, err = os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644); err != nil {
		return err
	}
	b := record(fileEvent(at))
	if t.run.Step > 0 {
		b = append(b, record(startEvent(at, t.run.Step+1))...)
	}
	_, err = t.f.Write(append(b, record(textEvent(at, t.run.Step, "config", t.run.markdown()))...))
	return err
}

// markdown is the configuration as TensorBoard shows it.
func (r Run) markdown() string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(r.Config)) {
		fmt.Fprintf(&b, "    %s: %s\n", key, strings.ReplaceAll(r.Config[key], "\n", " "))
	}
	return b.String()
}

// Send implements Sink.
func (t *TensorBoard) Send(_ context.Context, r Record, at time.Time) error {
	_, err := t.f.Write(record(scalarEvent(at, r)))
	return err
}

// End implements Sink.
func (t *TensorBoard) End(context.Context, End) error { return t.f.Close() }

// record frames an event as TFRecord does: its length, the length's checksum, the event, its checksum.
func record(event []byte) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(event)))
	b = binary.LittleEndian.AppendUint32(b, masked(b))
	b = append(b, event...)
	return binary.LittleEndian.AppendUint32(b, masked(event))
}

// masked is TFRecord's checksum, CRC-32C rotated and shifted, so that a checksum of data with checksums in it is none of theirs.
func masked(b []byte) uint32 {
	c := crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
	return (c>>15 | c<<17) + 0xa282ead8
}

// The messages of tensorboard/compat/proto/{event,summary,tensor}.proto, as far as they are used.

func fileEvent(at time.Time) []byte { return event(at, 0).text(3, "brain.Event:2") }

func startEvent(at time.Time, step int) []byte {
	const sessionLog, status, start = 7, 1, 1
	return event(at, step).message(sessionLog, message{}.number(status, start))
}

// scalarEvent has the values of a line, in the order in which they are shown. Those that are not numbers are left out.
func scalarEvent(at time.Time, r Record) []byte {
	const tag, simple = 1, 2
	var s message
	for _, name := range r.Names() {
		if v := r.Values[name]; !math.IsNaN(v) {
			s = s.message(1, message{}.text(tag, name).float(simple, float32(v)))
		}
	}
	return event(at, r.Step).message(5, s)
}

// textEvent is a text in Markdown.
func textEvent(at time.Time, step int, name, markdown string) []byte {
	const stringType = 7
	metadata := message{}.message(1, message{}.text(1, "text"))
	tensor := message{}.number(1, stringType).message(2, message{}).text(8, markdown)
	value := message{}.text(1, name).message(8, tensor).message(9, metadata)
	return event(at, step).message(5, message{}.message(1, value))
}

func event(at time.Time, step int) message {
	m := message{}.double(1, float64(at.UnixNano())/1e9)
	if step == 0 {
		return m // as protocol buffers write a 0
	}
	return m.number(2, uint64(step))
}

// message is a protocol buffer's bytes, to which fields are added.
type message []byte

// The wire types of protocol buffers.
const (
	wireVarint = iota
	wireFixed64
	wireBytes
	wireFixed32 = 5
)

func (m message) key(field, wire int) message {
	return binary.AppendUvarint(m, uint64(field<<3|wire))
}

func (m message) number(field int, v uint64) message {
	return binary.AppendUvarint(m.key(field, wireVarint), v)
}

func (m message) double(field int, v float64) message {
	return binary.LittleEndian.AppendUint64(m.key(field, wireFixed64), math.Float64bits(v))
}

func (m message) float(field int, v float32) message {
	return binary.LittleEndian.AppendUint32(m.key(field, wireFixed32), math.Float32bits(v))
}

func (m message) message(field int, v message) message {
	return append(binary.AppendUvarint(m.key(field, wireBytes), uint64(len(v))), v...)
}

func (m message) text(field int, v string) message { return m.message(field, message(v)) }
