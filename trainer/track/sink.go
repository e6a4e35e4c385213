package track

import (
	"context"
	"time"
)

// Run is what a tracker tells of a run beside its metrics.
type Run struct {
	Name    string
	Project string            // that it belongs to
	Dir     string            // its folder; what a tracker keeps is in its folder track
	Step    int               // steps that it has made: above 0, it is resumed
	Config  map[string]string // resolved, by key
}

// Status is how a run ended.
type Status string

// The ways in which a run ends. One that is paused or interrupted may be resumed.
const (
	Finished    Status = "finished"
	Interrupted Status = "interrupted"
	Failed      Status = "failed"
)

// End is the end of a run.
type End struct {
	Status Status
	Files  map[string]string // name -> path of what is worth keeping with its metrics
}

// Sink is where lines go that may be slow or gone. One goroutine calls it, and its calls return promptly when ctx ends.
type Sink interface {
	// Begin is called before the first line; after an error it is called again with the next one.
	Begin(ctx context.Context) error
	// Send takes a line, which was logged at a time.
	Send(ctx context.Context, r Record, at time.Time) error
	// End is called once, if Begin has succeeded.
	End(ctx context.Context, e End) error
}
