package track

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// JSONL appends one JSON object per record to a file.
type JSONL struct{ f *os.File }

// OpenJSONL opens path for appending, first cutting it to size bytes: a resumed run continues where its checkpoint
// stood, and what came after the checkpoint is written again.
func OpenJSONL(path string, size int64) (*JSONL, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.Size() < size {
		err = fmt.Errorf("%s holds %d bytes, the checkpoint was made at %d: restore the file or resume from an older checkpoint", path, info.Size(), size)
	}
	if err == nil {
		err = f.Truncate(size)
	}
	if err == nil {
		_, err = f.Seek(size, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &JSONL{f}, nil
}

// Log appends r.
func (j *JSONL) Log(r Record) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = j.f.Write(append(b, '\n'))
	return err
}

// Size makes everything logged so far durable and returns the file's size in bytes.
func (j *JSONL) Size() (int64, error) {
	if err := j.f.Sync(); err != nil {
		return 0, err
	}
	return j.f.Seek(0, io.SeekCurrent)
}

// Close closes the file.
func (j *JSONL) Close() error { return j.f.Close() }

// ReadJSONL reads the records of a metrics file; a torn last line (a run that was killed) is left out.
func ReadJSONL(path string) ([]Record, error) {
	records, _, err := ReadJSONLFrom(path, 0)
	return records, err
}

// ReadJSONLFrom reads the records behind the first offset bytes of a metrics file, and says how many bytes hold whole lines: what
// comes later is read from there.
func ReadJSONLFrom(path string, offset int64) (records []Record, next int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, offset, err
	}
	defer f.Close()
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return nil, offset, err
	}
	in := bufio.NewReader(f)
	for next = offset; ; {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return records, next, nil
		}
		if err != nil {
			return nil, offset, err
		}
		var r Record
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, offset, fmt.Errorf("%s, line at byte %d: %w", path, next, err)
		}
		records, next = append(records, r), next+int64(len(line))
	}
}
