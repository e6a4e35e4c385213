package amaris

import "github.com/rubicon-rl/rubicon/rewards/criteria"

// journal is the run's rubric log, opened when a training step is scored.
type journal struct{ criteria.Journal }

// write appends a step's events. again: the cold start, which is the first of all events, is made once more.
func (j *journal) write(again bool, events []criteria.Event) error {
	if j.Dir == "" {
		return nil
	}
	log, err := j.Open()
	if err != nil {
		return err
	}
	if again {
		if err := log.Truncate(0); err != nil {
			return err
		}
	}
	return log.Append(events...)
}
