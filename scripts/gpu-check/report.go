package main

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

type machineReport struct {
	Made       time.Time `json:"made"`
	Device     string    `json:"device"`
	Capability string    `json:"capability,omitempty"`
	Memory     int64     `json:"memory,omitempty"` // bytes
	Driver     string    `json:"driver,omitempty"`
	Blas       string    `json:"blas,omitempty"`
	Go         string    `json:"go"`
	System     string    `json:"system"`
}

// partReport is how a part of the check went.
type partReport struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
	Fault   string  `json:"fault,omitempty"`
}

type opReport struct {
	Op       string  `json:"op"`
	BFloat16 bool    `json:"bfloat16"`
	Worst    float64 `json:"worst"`
	Fault    string  `json:"fault,omitempty"`
}

type conformanceReport struct {
	Passed int      `json:"passed"`
	Failed []string `json:"failed,omitempty"`
}

// arithmeticReport is what the device does at best, in operations whose inputs are bfloat16.
type arithmeticReport struct {
	TFLOPS    float64 `json:"tflops"`
	Bandwidth float64 `json:"bandwidth"` // GB/s
}

// modelReport has rates in tokens a second, and shares of 1.
type modelReport struct {
	Shape        string     `json:"shape"`
	Parameters   int        `json:"parameters"`
	LoadSeconds  float64    `json:"load_seconds"`
	PlanBytes    int64      `json:"plan_bytes"`
	UsedBytes    int64      `json:"used_bytes"`
	Forward      float64    `json:"forward"`
	Train        float64    `json:"train"`
	Utilisation  float64    `json:"utilisation"`    // 4 operations a weight and trained token, of the best product's
	LoRAForward  float64    `json:"lora_forward"`   // how much longer than without
	LoRADecode   float64    `json:"lora_decode"`    // the same of decoding
	Decode       float64    `json:"decode"`         // at Batch, after prompts of Context tokens
	DecodeOfBest float64    `json:"decode_of_best"` // of what reading weights, keys and values once a token takes
	Batch        int        `json:"batch"`
	Context      int        `json:"context"`
	Step         stepReport `json:"step"`
	Gap          gapReport  `json:"gap"`
}

// stepReport has seconds.
type stepReport struct {
	Completions int     `json:"completions"`
	Trained     int     `json:"trained"` // of these
	Sampling    float64 `json:"sampling"`
	Forward     float64 `json:"forward"`
	Backward    float64 `json:"backward"`
	Update      float64 `json:"update"`
}

// gapReport compares the sampler's log-probabilities with the trainer's of the same tokens.
type gapReport struct {
	MeanDifference float64 `json:"mean_difference"`
	MaxDifference  float64 `json:"max_difference"`
	MeanRatio      float64 `json:"mean_ratio"`
}

type learningReport struct {
	CPU      []float64 `json:"cpu"`
	Float32  []float64 `json:"float32"`
	BFloat16 []float64 `json:"bfloat16"`
}

type report struct {
	Machine     machineReport     `json:"machine"`
	Parts       []partReport      `json:"parts"`
	SelfTest    []opReport        `json:"self_test"`
	Conformance conformanceReport `json:"conformance"`
	Arithmetic  arithmeticReport  `json:"arithmetic"`
	Models      []modelReport     `json:"models"`
	Learning    learningReport    `json:"learning"`
	Torch       []torchReport     `json:"torch,omitempty"`
}

func (r *report) part(name string, took time.Duration, err error) {
	p := partReport{Name: name, Seconds: took.Seconds()}
	if err != nil {
		p.Fault = err.Error()
	}
	r.Parts = append(r.Parts, p)
}

// rate relates what was measured to the device's best.
func (m *modelReport) rate(s shape, a arithmeticReport, weights int64) {
	c := s.config
	m.Utilisation = 4 * float64(m.Parameters) * m.Train / (a.TFLOPS * 1e12)
	kv := 2 * 2 * c.Layers * c.KVHeads * c.HeadDim * (s.context + longDecode/2) // bytes of a sample
	step := (float64(weights) + float64(s.batch*kv)) / (a.Bandwidth * 1e9)
	m.DecodeOfBest = m.Decode * step / float64(s.batch)
}

// notDone marks what was left out for a reason that is no fault.
const notDone = "not done"

// verdict is an error if something was wrong, beside what was not done.
func (r *report) verdict() error {
	var faults []error
	for _, o := range r.SelfTest {
		if o.Fault != "" {
			faults = append(faults, fmt.Errorf("%s (bfloat16 %v): %s", o.Op, o.BFloat16, o.Fault))
		}
	}
	if n := len(r.Conformance.Failed); n > 0 {
		faults = append(faults, fmt.Errorf("%d cases of the conformance suite failed", n))
	}
	for _, m := range r.Models {
		if m.Gap.MeanRatio > 1.005 {
			faults = append(faults, fmt.Errorf("%s: the ratio between trainer and sampler is %.4f on average, more than 1.005", m.Shape, m.Gap.MeanRatio))
		}
	}
	for _, p := range r.Parts {
		for line := range strings.Lines(p.Fault) {
			if !strings.Contains(line, notDone) {
				faults = append(faults, fmt.Errorf("%s: %s", p.Name, strings.TrimSpace(line)))
			}
		}
	}
	return errors.Join(faults...)
}
