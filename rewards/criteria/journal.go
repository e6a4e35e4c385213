package criteria

// Journal is a Log as a provider keeps it whose run may be resumed: it is opened with the first write, and what a run
// wrote that ended after its last checkpoint, or without one, is cut off then. It is for one goroutine at a time.
type Journal struct {
	Dir    string // the run's folder; "": nothing may be written
	log    *Log
	ready  bool  // the log has nothing that is not ours
	length int64 // that it is cut to before the next write, unless ready
}

// Rewind lets the next write begin at a length that a checkpoint noted.
func (j *Journal) Rewind(length int64) { j.ready, j.length = false, length }

// Size is the length of what is written.
func (j *Journal) Size() int64 {
	if !j.ready {
		return j.length
	}
	return j.log.Size()
}

// Open returns the log, with nothing in it that is not ours. An empty log is that of a new folder, into which another run's
// checkpoint was loaded.
func (j *Journal) Open() (_ *Log, err error) {
	if j.log == nil {
		if j.log, err = OpenLog(j.Dir); err != nil {
			return nil, err
		}
	}
	if j.ready {
		return j.log, nil
	}
	if j.log.Size() == 0 {
		j.length = 0
	}
	if err := j.log.Truncate(j.length); err != nil {
		return nil, err
	}
	j.ready = true
	return j.log, nil
}

// Close closes the log; a further write opens it again.
func (j *Journal) Close() error {
	if j.log == nil {
		return nil
	}
	j.length = j.Size()
	err := j.log.Close()
	j.log, j.ready = nil, false
	return err
}
