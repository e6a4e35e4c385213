package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/rubicon-rl/rubicon/configs"
	"github.com/rubicon-rl/rubicon/internal/cpu"
	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/policy"
)

// order is a spec as this command reads it when it is the program under test.
type order struct {
	Case      string   `json:"case"`
	Model     string   `json:"model"`
	Set       []string `json:"set"` // configuration, key=value
	Data      string   `json:"data"`
	Adapter   string   `json:"adapter"`   // PEFT folder; empty: a new adapter
	Reference string   `json:"reference"` // of the gradient, without ending
	Share     bool     `json:"share"`
}

// request is a point as this command reads it.
type request struct {
	Prompts, Completions, Prompt, New int
	Sequences, Length, Scored         int
	Batch, MiB, M, N, K               int
	Op                                string
}

// values are the figures of one sample by name.
type values map[string]float64

// engine is rubicon as a configuration has it.
type engine struct {
	order
	cfg   *configs.Config
	dev   device.Device
	model *policy.Model // nil if the case needs none
	bytes int64         // of its weights on the device
}

const adapterName = "policy"

// work is what each case does, on a loaded model with an adapter or on the device alone.
var work = map[string]func(e *engine, ctx context.Context, r request) (values, error){
	"grpo_step":     (*engine).grpoStep,
	"fwd_bwd_lora":  (*engine).fwdBwd,
	"shared_prompt": (*engine).sharedPrompt,
	"decode":        (*engine).decode,
	"tiny":          (*engine).tiny,
	"accuracy":      (*engine).accuracy,
	"load":          (*engine).load,
	"gemm":          (*engine).gemm,
	"stream":        (*engine).stream,
}

// bare are the cases that begin without a model.
var bare = map[string]bool{"load": true, "gemm": true, "stream": true}

// serve answers requests, one JSON object a line, with the figures of the work that they ask for.
func serve(ctx context.Context, text string, in io.Reader, out io.Writer) (err error) {
	e := &engine{}
	if err := json.Unmarshal([]byte(text), &e.order); err != nil {
		return err
	}
	do, ok := work[e.Case]
	if !ok {
		return fmt.Errorf("no case is called %q", e.Case)
	}
	if err := e.open(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.close()) }()
	answers, requests := json.NewEncoder(out), bufio.NewScanner(in)
	if err := answers.Encode(reply{Ready: true, Versions: map[string]string{"rubicon": e.dev.Info().Name}}); err != nil {
		return err
	}
	for requests.Scan() {
		var r request
		if err := json.Unmarshal(requests.Bytes(), &r); err != nil {
			return err
		}
		v, err := do(e, ctx, r)
		if err != nil {
			return err
		}
		if err := answers.Encode(reply{Values: v}); err != nil {
			return err
		}
	}
	return requests.Err()
}

// open opens what the configuration says.
func (e *engine) open(ctx context.Context) (err error) {
	set := append([]string{"lora.r=8", "lora.alpha=16"}, e.Set...)
	if e.cfg, _, err = configs.Load(nil, set, nil); err != nil {
		return err
	}
	if e.dev, err = cpu.New(cpu.Options{Threads: e.cfg.Threads, Tier: os.Getenv("RUBICON_CPU_TIER"), BFloat16: e.cfg.Model.ComputeDType == "bfloat16"}); err != nil || bare[e.Case] {
		return err
	}
	if err := e.loadModel(ctx); err != nil {
		return err
	}
	if e.Adapter != "" {
		return e.model.LoadAdapter(adapterName, e.Adapter)
	}
	l := e.cfg.LoRA
	return e.model.AddAdapter(adapterName, policy.LoRAConfig{R: l.R, Alpha: l.Alpha, TargetModules: l.TargetModules}, uint64(e.cfg.Seed))
}

func (e *engine) loadModel(ctx context.Context) (err error) {
	e.model, err = policy.Load(ctx, e.dev, e.Model, policy.LoadOptions{DType: e.cfg.Model.WeightDType()})
	e.bytes = e.dev.Allocated()
	return err
}

func (e *engine) close() (err error) {
	if e.model != nil {
		err = e.model.Close()
	}
	return errors.Join(err, e.dev.Close())
}

// clock is the seconds that f takes.
func clock(f func() error) (float64, error) {
	began := time.Now()
	err := f()
	return time.Since(began).Seconds(), err
}

// repeated is the seconds of one call of f, which is repeated for at least so many seconds.
func repeated(least float64, f func() error) (float64, error) {
	began := time.Now()
	for n := 1; ; n++ {
		if err := f(); err != nil {
			return 0, err
		}
		if t := time.Since(began).Seconds(); t >= least {
			return t / float64(n), nil
		}
	}
}

// synthetic is n token ids; the same function is in peers/pipe.py.
func synthetic(seed uint32, n, vocab int) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		seed = seed*1664525 + 1013904223
		ids[i] = 3 + int32(seed>>8)%int32(vocab-3)
	}
	return ids
}
