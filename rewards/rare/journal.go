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
	dir    string // the run's folder; "": nothing is written
	log    *criteria.Log
	ready  bool  // the log has nothing that is not ours
	length int64 // that it is cut to before the next write, unless ready
	begun  int64 // its length before the latest step
}

// rewind lets the next write begin where a checkpoint was made.
func (j *journal) rewind(h header) { j.ready, j.length, j.begun = false, h.LogBytes, h.StepBytes }

// size is the length of what is written.
func (j *journal) size() int64 {
	if !j.ready {
		return j.length
	}
	return j.log.Size()
}

// write appends a step's events. If the step is made again, they take the place of what was written of their scopes.
func (j *journal) write(again bool, events []criteria.Event) error {
	if j.dir == "" {
		return nil
	}
	if err := j.open(); err != nil {
		return err
	}
	if !again {
		begun := j.log.Size()
		if err := j.log.Append(events...); err != nil {
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
		if err := j.log.Truncate(j.begun); err != nil {
			return err
		}
		events = append(kept, events...)
	}
	return j.log.Append(events...)
}

// open opens the log and cuts off what a run wrote that ended after its last checkpoint, or without one. An empty log is that
// of a new folder, into which another run's checkpoint was loaded.
func (j *journal) open() (err error) {
	if j.log == nil {
		if j.log, err = criteria.OpenLog(j.dir); err != nil {
			return err
		}
	}
	if j.ready {
		return nil
	}
	if j.log.Size() == 0 {
		j.length, j.begun = 0, 0
	}
	if err := j.log.Truncate(j.length); err != nil {
		return err
	}
	j.ready = true
	return nil
}

// others are the latest step's events in the log whose scopes are not among those of events; all
// tells that these are all of the step's.
func (j *journal) others(events []criteria.Event) (kept []criteria.Event, all bool, err error) {
	scopes := map[string]bool{}
	for _, e := range events {
		scopes[scopeOf(e)] = true
	}
	f, err := os.Open(criteria.LogPath(j.dir))
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	d := json.NewDecoder(bufio.NewReader(io.NewSectionReader(f, j.begun, j.log.Size()-j.begun)))
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

// close closes the log; a further write opens it again.
func (j *journal) close() error {
	if j.log == nil {
		return nil
	}
	j.length = j.size()
	err := j.log.Close()
	j.log, j.ready = nil, false
	return err
}
