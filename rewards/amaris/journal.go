package amaris

import "github.com/rubicon-rl/rubicon/rewards/criteria"

// journal is the run's rubric log, opened when a training step is scored, and beside it the file of the judge's latencies.
type journal struct {
	criteria.Journal
	watch     stopwatch
	latencies latencies
}

// write appends a step's events. again: the cold start, which is the first of all events, is made once more.
func (j *journal) write(step int, again bool, events []criteria.Event) error {
	stages := j.watch.take()
	if j.Dir == "" {
		return nil
	}
	if stages != nil {
		if err := j.latencies.add(LatencyPath(j.Dir), j.Size() == 0, Latency{step, stages}); err != nil {
			return err
		}
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
