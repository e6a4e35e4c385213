package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rubicon-rl/rubicon/internal/cpu"
	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/policy"
)

// figures are what a child measured; memory in bytes.
type figures struct {
	Engine    string    `json:"engine"`
	Seconds   []float64 `json:"seconds"`   // of every pass
	Allocated int64     `json:"allocated"` // by the device, its scratch not counted
	Before    int64     `json:"before"`    // the process, when the model is loaded
	Peak      int64     `json:"peak"`      // the process, at most, during the passes
}

// median of the passes, seconds.
func (f figures) median() float64 {
	s := slices.Sorted(slices.Values(f.Seconds))
	n := len(s)
	return (s[(n-1)/2] + s[n/2]) / 2
}

// order is what a child is told to measure.
type order struct {
	Point  point
	Passes int
	Budget float64 // seconds after which no pass begins
}

// measure has a fresh process measure a point.
func measure(ctx context.Context, o order) (f figures, err error) {
	self, err := os.Executable()
	if err != nil {
		return f, err
	}
	text, err := json.Marshal(o)
	if err != nil {
		return f, err
	}
	cmd := exec.CommandContext(ctx, self, "child", string(text))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return f, fmt.Errorf("%s: %w", text, err)
	}
	return f, json.Unmarshal(out, &f)
}

// child is the fresh process.
func child(ctx context.Context, text string) error {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	f, err := o.run(ctx)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(f)
}

func (o order) run(ctx context.Context) (f figures, err error) {
	dev, err := cpu.New(cpu.Options{Threads: o.Point.Threads})
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	m, err := policy.New(ctx, dev, o.Point.config(), 1, policy.LoadOptions{DType: "bfloat16"})
	if err != nil {
		return f, err
	}
	if err := m.AddAdapter(adapter, lora, 1); err != nil {
		return f, err
	}
	params, err := m.Params(adapter)
	if err != nil {
		return f, err
	}
	adam, err := policy.NewAdamW(dev, params)
	if err != nil {
		return f, err
	}
	// The random numbers that the weights were made of are garbage that training does not have.
	debug.FreeOSMemory()
	if f.Before, err = resident("VmRSS"); err != nil {
		return f, err
	}
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil { // resets VmHWM
		return f, err
	}
	t := trainer{dev, m, params, adam, o.Point.Recompute, o.Point.forest()}
	if f.Seconds, err = o.time(t.step); err != nil {
		return f, err
	}
	f.Engine, f.Allocated = dev.Info().Name, dev.Allocated()
	f.Peak, err = resident("VmHWM")
	return f, err
}

// time repeats a step. The first, which takes the memory, counts only if it spends the budget.
func (o order) time(step func() error) (seconds []float64, err error) {
	began := time.Now()
	for i := 0; i == 0 || i <= o.Passes && time.Since(began).Seconds() < o.Budget; i++ {
		at := time.Now()
		if err := step(); err != nil {
			return nil, err
		}
		seconds = append(seconds, time.Since(at).Seconds())
	}
	if len(seconds) > 1 {
		seconds = seconds[1:]
	}
	return seconds, nil
}

const adapter = "policy"

// trainer makes optimiser steps on one forest.
type trainer struct {
	dev       device.Device
	model     *policy.Model
	params    *policy.Params
	adam      *policy.AdamW
	recompute bool
	forest    *policy.Forest
}

// step is GRPO's: log-probabilities, the gradient of their mean, AdamW.
func (t trainer) step() error {
	t.params.ZeroGrad(t.dev)
	p, err := t.model.Forward(t.forest, policy.ForwardOptions{Adapter: adapter, Temperature: 1, Grad: true, KeepAll: !t.recompute})
	if err != nil {
		return err
	}
	d := make([]float32, len(p.Output.LogP))
	for i := range d {
		d[i] = -1 / float32(len(d))
	}
	if err := p.Backward(policy.Gradients{LogP: d}); err != nil {
		return err
	}
	o := policy.AdamWOptions{Beta1: 0.9, Beta2: 0.999, Eps: 1e-8}
	return errors.Join(t.adam.Step(t.params, 1e-5, o, 1), t.dev.Sync())
}

// forest is the point's sequences.
func (p point) forest() *policy.Forest {
	f := &policy.Forest{}
	seed, vocab := uint32(1), shapes[p.Shape].Vocab
	for range p.Sequences {
		s := policy.Segment{Parent: policy.Root, Tokens: make([]int32, p.Length), Score: make([]bool, p.Length)}
		for i := range s.Tokens {
			seed = seed*1664525 + 1013904223
			s.Tokens[i], s.Score[i] = int32(seed>>8)%int32(vocab), i >= p.Length-p.Length/4
		}
		f.Segments = append(f.Segments, s)
	}
	return f
}

// resident is one of this process's figures in /proc, bytes.
func resident(name string) (int64, error) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, fmt.Errorf("needs Linux's /proc: %w", err)
	}
	for line := range bytes.Lines(text) {
		if f := strings.Fields(string(line)); len(f) > 1 && f[0] == name+":" {
			kib, err := strconv.ParseInt(f[1], 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("/proc/self/status does not say %s", name)
}
