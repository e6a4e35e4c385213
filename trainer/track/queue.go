package track

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"
)

const (
	queueLines  = 1024             // that wait for a slow sink
	sendTime    = 15 * time.Second // for Begin, and for one line
	endPatience = 60 * time.Second // for what waits at the end of the run, and for End
)

// Queue gives lines to a sink in a goroutine of its own, so that neither a slow sink nor a dead one holds the run up. What the sink
// does not take is dropped and counted.
type Queue struct {
	name    string
	sink    Sink
	now     func() time.Time
	notify  func(text string)
	lines   chan line
	end     chan End      // one, when no more lines come
	over    chan struct{} // closed when the goroutine has ended
	patient time.Duration

	cancel  context.CancelFunc
	logged  int // by the run's goroutine
	full    int // of these, dropped because too many were waiting
	refused int // of these, that the sink did not take; the goroutine's until over is closed
	last    error
}

// Trackers are the queues of a run.
type Trackers []*Queue

// Log implements Tracker.
func (t Trackers) Log(r Record) error {
	for _, q := range t {
		if err := q.Log(r); err != nil {
			return err
		}
	}
	return nil
}

// Close closes all of them at the same time.
func (t Trackers) Close(e End) {
	var work sync.WaitGroup
	for _, q := range t {
		work.Go(func() { q.Close(e) })
	}
	work.Wait()
}

type line struct {
	record Record
	at     time.Time
}

// Start begins to give lines to a sink. notify is told of the first failure and, when the run ends, what was dropped; it is called
// from another goroutine.
func Start(name string, sink Sink, now func() time.Time, notify func(text string)) *Queue {
	ctx, cancel := context.WithCancel(context.Background())
	q := &Queue{
		name: name, sink: sink, now: now, notify: notify, patient: endPatience, cancel: cancel,
		lines: make(chan line, queueLines), end: make(chan End, 1), over: make(chan struct{}),
	}
	go q.run(ctx)
	return q
}

// Log implements Tracker. It never waits, and its error is always nil.
func (q *Queue) Log(r Record) error {
	q.logged++
	select {
	case q.lines <- line{Record{r.Step, maps.Clone(r.Values)}, q.now()}:
	default:
		q.full++
	}
	return nil
}

// Close ends the run for the sink. It waits a while for the lines that are under way, and says what was dropped.
func (q *Queue) Close(e End) {
	q.end <- e
	close(q.lines)
	timer := time.AfterFunc(q.patient, q.cancel)
	<-q.over
	timer.Stop()
	q.cancel()
	if q.full > 0 {
		q.last = errors.Join(q.last, fmt.Errorf("%d lines were waiting already", queueLines))
	}
	if n := q.full + q.refused; n > 0 {
		q.notify(fmt.Sprintf("tracker %s did not take %d of %d lines, which metrics.jsonl has: %v", q.name, n, q.logged, q.last))
	}
}

func (q *Queue) run(ctx context.Context) {
	defer close(q.over)
	begun := q.try(ctx, sendTime, q.sink.Begin)
	for l := range q.lines {
		begun = begun || q.try(ctx, sendTime, q.sink.Begin)
		sent := begun && q.try(ctx, sendTime, func(ctx context.Context) error { return q.sink.Send(ctx, l.record, l.at) })
		if !sent {
			q.refused++
		}
	}
	e := <-q.end
	if begun {
		q.try(ctx, endPatience, func(ctx context.Context) error { return q.sink.End(ctx, e) })
	}
}

// try makes one call of the sink; the first that fails is told.
func (q *Queue) try(ctx context.Context, limit time.Duration, call func(context.Context) error) bool {
	if ctx.Err() != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := call(ctx)
	if err == nil {
		return true
	}
	if q.last == nil {
		q.notify(fmt.Sprintf("tracker %s: %v; the run goes on without it", q.name, err))
	}
	q.last = err
	return false
}
