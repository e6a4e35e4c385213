package track

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// memory is a sink that notes what it is told.
type memory struct {
	begin, send error
	hang        bool // Send waits for the end of its context
	steps       []int
	times       []time.Time
	ended       []Status
	begun       int
}

func (m *memory) Begin(context.Context) error {
	m.begun++
	return m.begin
}

func (m *memory) Send(ctx context.Context, r Record, at time.Time) error {
	if m.hang {
		<-ctx.Done()
		return ctx.Err()
	}
	if m.send != nil {
		return m.send
	}
	m.steps, m.times = append(m.steps, r.Step), append(m.times, at)
	return nil
}

func (m *memory) End(_ context.Context, e End) error {
	m.ended = append(m.ended, e.Status)
	return nil
}

// notes collects what users are told.
type notes struct {
	mu   sync.Mutex
	said []string
}

func (n *notes) add(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.said = append(n.said, text)
}

func clock() time.Time { return time.Unix(100, 0) }

func TestQueueKeepsOrderAndTime(t *testing.T) {
	m, n := &memory{}, &notes{}
	q := Start("memory", m, clock, n.add)
	values := map[string]float64{"x": 1}
	for step := range 100 {
		if err := q.Log(Record{step, values}); err != nil {
			t.Fatal(err)
		}
		values["x"] = 2 // the run's map is its own again
	}
	q.Close(End{Status: Finished})
	if len(m.steps) != 100 || !slices.IsSorted(m.steps) || m.times[0] != clock() || !slices.Equal(m.ended, []Status{Finished}) || n.said != nil {
		t.Errorf("steps %v, times %v, ended %v, said %q", m.steps, m.times, m.ended, n.said)
	}
}

// A sink that never answers holds nothing up: what does not fit into the queue is dropped, the rest when patience ends.
func TestHangingSink(t *testing.T) {
	n := &notes{}
	q := Start("slow", &memory{hang: true}, clock, n.add)
	q.patient = 0
	const logged = 3 * queueLines
	for step := range logged {
		if err := q.Log(Record{Step: step}); err != nil {
			t.Fatal(err)
		}
	}
	q.Close(End{Status: Finished})
	if want := fmt.Sprintf("tracker slow did not take %d of %d lines", logged, logged); len(n.said) == 0 || !strings.HasPrefix(n.said[len(n.said)-1], want) {
		t.Errorf("said %q, want %q", n.said, want)
	}
}

// A sink that is gone is tried again with every line, told once, and counted.
func TestDeadSink(t *testing.T) {
	m, n := &memory{begin: errors.New("refused")}, &notes{}
	q := Start("dead", m, clock, n.add)
	for step := range 5 {
		if err := q.Log(Record{Step: step}); err != nil {
			t.Fatal(err)
		}
	}
	q.Close(End{Status: Failed})
	want := []string{"tracker dead: refused; the run goes on without it",
		"tracker dead did not take 5 of 5 lines, which metrics.jsonl has: refused"}
	if !slices.Equal(n.said, want) || m.begun != 6 || m.ended != nil {
		t.Errorf("said %q after %d tries, ended %v, want %q", n.said, m.begun, m.ended, want)
	}
}
