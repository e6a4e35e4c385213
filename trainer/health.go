package trainer

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/rubicon-rl/rubicon/trainer/health"
	"github.com/rubicon-rl/rubicon/trainer/track"
)

// healthLog diagnoses a run line by line; what it finds stands in health.jsonl.
type healthLog struct {
	monitor health.Monitor
	f       *os.File
}

// openHealth diagnoses the lines that a resumed run has already, and writes health.jsonl anew from them: what the run found
// after its checkpoint is found again.
func openHealth(path, metrics string) (*healthLog, error) {
	records, err := track.ReadJSONL(metrics)
	if err != nil {
		return nil, err
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	h := &healthLog{f: f}
	for _, r := range records {
		if err := h.log(r, func(string) {}); err != nil {
			f.Close()
			return nil, err
		}
	}
	return h, nil
}

// log diagnoses r, and tells people and the file what begins or ends with it.
func (h *healthLog) log(r track.Record, tell func(text string)) error {
	for _, f := range h.monitor.Observe(r) {
		line, err := json.Marshal(f)
		if err != nil {
			return err
		}
		if _, err := h.f.Write(append(line, '\n')); err != nil {
			return fmt.Errorf("health log: %w", err)
		}
		tell("health     " + f.String())
	}
	return nil
}

func (h *healthLog) close() error { return h.f.Close() }
