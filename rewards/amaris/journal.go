package amaris

import "github.com/rubicon-rl/rubicon/rewards/criteria"

// journal is the run's rubric log, opened when a training step is scored.
type journal struct {
	dir    string // the run's folder; "": nothing is written
	log    *criteria.Log
	ready  bool  // the log has nothing that is not ours
	length int64 // that it is cut to before the next write, unless ready
}

// rewind lets the next write begin where a checkpoint was made.
func (j *journal) rewind(length int64) { j.ready, j.length = false, length }

// size is the length of what is written.
func (j *journal) size() int64 {
	if !j.ready {
		return j.length
	}
	return j.log.Size()
}

// write appends a step's events. again: the cold start, which is the first of all events, is made once more.
func (j *journal) write(again bool, events []criteria.Event) error {
	if j.dir == "" {
		return nil
	}
	if err := j.open(); err != nil {
		return err
	}
	if again {
		if err := j.log.Truncate(0); err != nil {
			return err
		}
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
		j.length = 0
	}
	if err := j.log.Truncate(j.length); err != nil {
		return err
	}
	j.ready = true
	return nil
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
