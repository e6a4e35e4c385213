package rare

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/rubicon-rl/rubicon/rewards/criteria"
)

// journal is the run's rubric log, opened when something is to be written.
type journal struct {
	criteria.Journal
	begun int64 // its length before the latest step
}

// rewind lets the next write begin where a checkpoint was made.
func (j *journal) rewind(h header) {
	j.Rewind(h.LogBytes)
	j.begun = h.StepBytes
}

// write appends a step's events. If the step is made again, they take the place of what was written of their scopes.
func (j *journal) write(again bool, events []criteria.Event) error {
	if j.Dir == "" {
		return nil
	}
	log, err := j.Open()
	if err != nil {
		return err
	}
	j.begun = min(j.begun, log.Size()) // 0 in a new folder
	if !again {
		begun := log.Size()
		if err := log.Append(events...); err != nil {
			return err
		}
		j.begun = begun
		return nil
	}
	kept, all, err := j.others(events)
	if err != nil {
		return err
	}
	if !all {
		if err := log.Truncate(j.begun); err != nil {
			return err
		}
		events = append(kept, events...)
	}
	return log.Append(events...)
}

// others are the latest step's events in the log whose scopes are not among those of events; all
// tells that these are all of the step's.
func (j *journal) others(events []criteria.Event) (kept []criteria.Event, all bool, err error) {
	scopes := map[string]bool{}
	for _, e := range events {
		scopes[scopeOf(e)] = true
	}
	f, err := os.Open(criteria.LogPath(j.Dir))
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	d := json.NewDecoder(bufio.NewReader(io.NewSectionReader(f, j.begun, j.Size()-j.begun)))
	for all = true; ; {
		var e criteria.Event
		if err := d.Decode(&e); errors.Is(err, io.EOF) {
			return kept, all, nil
		} else if err != nil {
			return nil, false, fmt.Errorf("rubric log: after byte %d: %w", j.begun, err)
		}
		if scopes[e.Scope] {
			all = false
		} else {
			kept = append(kept, e)
		}
	}
}

// scopeOf is the scope that the log notes for an event.
func scopeOf(e criteria.Event) string {
	if e.Set != nil {
		return e.Set.Scope()
	}
	return e.Scope
}
