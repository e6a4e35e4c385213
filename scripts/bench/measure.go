package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"time"
)

// sample is one measurement. Its figures are the program's own, cpu_seconds and peak_mib beside them are the system's.
type sample struct {
	Round   int     `json:"round"`
	Values  values  `json:"values"`
	Foreign float64 `json:"foreign_cpu"` // processors that others used meanwhile
	wall    float64 // seconds of the whole request
}

// retries is how often a sample is taken that others disturb.
const retries = 5

// measure takes the samples of a case: everything once to warm up, then round after round, the order reversed every time.
func (r *report) measure(ctx context.Context, c testCase, p places, o options) error {
	m := &meter{report: r, testCase: c, places: p, options: o, running: map[string]*child{}}
	defer m.stop()
	for round := range o.rounds + 1 {
		for i := range c.Subjects {
			if round%2 == 0 {
				i = len(c.Subjects) - 1 - i
			}
			for _, at := range c.Points {
				if err := m.round(ctx, c.Subjects[i], at, round); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// meter measures one case.
type meter struct {
	*report
	testCase
	places
	options
	running map[string]*child
}

func (m *meter) stop() {
	for _, k := range m.running {
		k.stop()
	}
	clear(m.running)
}

// round takes one undisturbed sample, or as many as it may; round 0 is not noted.
func (m *meter) round(ctx context.Context, s subject, at point, round int) error {
	for range retries {
		if m.Fresh {
			m.stop()
		}
		k, err := m.child(ctx, s)
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		got, err := m.take(k, at)
		if err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "%s round %d/%d  %s  %s  %.3g s, others %.2f\n",
			time.Now().Format(time.TimeOnly), round, m.rounds, s.Name, label(m.testCase, at), got.wall, got.Foreign)
		if round == 0 {
			return nil
		}
		got.Round = round
		m.add(m.testCase, at, s, got)
		if got.Foreign <= m.foreign {
			return nil
		}
	}
	return nil
}

// child is the running program of a subject.
func (m *meter) child(ctx context.Context, s subject) (*child, error) {
	if k, ok := m.running[s.Name]; ok {
		return k, nil
	}
	k, err := start(ctx, m.places, m.testCase, s)
	if err != nil {
		return nil, err
	}
	m.running[s.Name] = k
	maps.Copy(m.Versions, k.versions)
	return k, nil
}

// take takes one sample when the machine is idle.
func (m *meter) take(k *child, at point) (sample, error) {
	if err := waitIdle(m.foreign, m.patience); err != nil {
		return sample{}, err
	}
	pid, self := k.cmd.Process.Pid, os.Getpid()
	before, err := spent(pid, self)
	if err != nil {
		return sample{}, err
	}
	began := time.Now()
	v, err := k.ask(at)
	if err != nil {
		return sample{}, err
	}
	wall := time.Since(began).Seconds()
	after, err := spent(pid, self)
	if err != nil {
		return sample{}, err
	}
	if v["peak_mib"], err = peakMiB(pid); err != nil {
		return sample{}, err
	}
	v["cpu_seconds"] = after.child - before.child
	others := (after.all - before.all) - (after.child - before.child) - (after.self - before.self)
	return sample{Values: v, Foreign: max(0, others/wall), wall: wall}, nil
}

// usage is processor time, seconds.
type usage struct{ all, child, self float64 }

func spent(child, self int) (u usage, err error) {
	if u.child, err = used(child); err != nil {
		return u, err
	}
	if u.self, err = used(self); err != nil {
		return u, err
	}
	u.all, err = busy()
	return u, err
}
