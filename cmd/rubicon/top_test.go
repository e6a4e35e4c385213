package main

import (
	"testing"

	"github.com/rubicon-rl/rubicon/configs"
	"github.com/rubicon-rl/rubicon/trainer/track"
)

// Half an epoch in ten steps makes sixty in three epochs; max_steps says it by itself.
func TestStepsOf(t *testing.T) {
	records := []track.Record{{Step: 10, Values: map[string]float64{"epoch": 0.5}}}
	for _, c := range []struct {
		o       configs.Optim
		records []track.Record
		want    int
	}{
		{configs.Optim{MaxSteps: -1, NumTrainEpochs: 3}, records, 60},
		{configs.Optim{MaxSteps: 25, NumTrainEpochs: 3}, records, 25},
		{configs.Optim{MaxSteps: -1, NumTrainEpochs: 3}, nil, 0},
	} {
		if got := stepsOf(c.o, c.records); got != c.want {
			t.Errorf("max_steps %d: %d steps, want %d", c.o.MaxSteps, got, c.want)
		}
	}
}

func TestColors(t *testing.T) {
	for name, c := range map[string]struct {
		env  map[string]string
		want bool
	}{"plain": {nil, true}, "NO_COLOR": {map[string]string{"NO_COLOR": "1"}, false}, "dumb": {map[string]string{"TERM": "dumb"}, false}} {
		if got := colors(func(k string) string { return c.env[k] }); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
