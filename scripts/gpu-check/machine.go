package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/rubicon-rl/rubicon/cuda"
	"github.com/rubicon-rl/rubicon/cuda/driver"
	"github.com/rubicon-rl/rubicon/cuda/native"
	"github.com/rubicon-rl/rubicon/cuda/ptxsim"
	"github.com/rubicon-rl/rubicon/cuda/selftest"
	"github.com/rubicon-rl/rubicon/internal/cpu"
	"github.com/rubicon-rl/rubicon/internal/device"
)

// machine opens the device that is tried.
type machine struct {
	machine machineReport
	tiny    bool // shapes
	open    func(bf16 bool) (device.Device, error)
}

// look finds the device.
func look(kind string) (*machine, error) {
	m := &machine{tiny: kind != "cuda", machine: machineReport{Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH, Made: time.Now().UTC()}}
	switch kind {
	case "cuda":
		return m, m.cuda()
	case "simulated":
		m.machine.Device = "simulated: figures mean nothing"
		m.open = func(bf16 bool) (device.Device, error) {
			d, err := ptxsim.NewDriver(4 << 30)
			if err != nil {
				return nil, err
			}
			return cuda.New(cuda.Options{Driver: d, Blas: ptxsim.Blas{D: d}, Act: act(bf16)})
		}
		return m, nil
	case "cpu":
		m.machine.Device = "cpu: figures mean nothing"
		m.open = func(bf16 bool) (device.Device, error) { return cpu.New(cpu.Options{BFloat16: bf16}) }
		return m, nil
	}
	return nil, fmt.Errorf("-device is %q: set it to cuda, simulated or cpu", kind)
}

func act(bf16 bool) driver.Type {
	if bf16 {
		return driver.BF16
	}
	return driver.F32
}

func (m *machine) cuda() error {
	env := native.System()
	lib, err := native.Load(env)
	if err != nil {
		return err
	}
	list, err := lib.Devices()
	if err != nil {
		return err
	}
	mine, err := native.Choose(list, env.Getenv("LOCAL_RANK"))
	if err != nil {
		return err
	}
	m.machine.Device, m.machine.Driver = mine.Name, fmt.Sprintf("CUDA %s, %s", lib.Version(), lib.Path())
	m.machine.Capability, m.machine.Memory = fmt.Sprintf("%d.%d", mine.Major, mine.Minor), mine.Memory
	m.open = func(bf16 bool) (device.Device, error) {
		d, err := lib.Open(mine)
		if err != nil {
			return nil, err
		}
		b, err := native.OpenBlas(env, d, lib.Major())
		if err != nil {
			return nil, errors.Join(err, d.Close())
		}
		m.machine.Blas = b.Name() + ", " + b.Path()
		return cuda.New(cuda.Options{Driver: d, Blas: b, Act: act(bf16)})
	}
	return nil
}

// selfTest compares every operation with the CPU's.
func selfTest(_ context.Context, m *machine, r *report) error {
	trusted, err := cpu.New(cpu.Options{})
	if err != nil {
		return err
	}
	defer trusted.Close()
	for _, bf16 := range []bool{false, true} {
		dev, err := m.open(bf16)
		if err != nil {
			return err
		}
		r.Machine = m.machine
		tolerance := selftest.Tolerance
		if bf16 {
			tolerance = selftest.Loose
		}
		for res := range selftest.Run(dev, trusted, tolerance) {
			o := opReport{Op: res.Op, BFloat16: bf16, Worst: res.Worst}
			if res.Err != nil {
				o.Fault = res.Err.Error()
			}
			r.SelfTest = append(r.SelfTest, o)
		}
		if err := dev.Close(); err != nil {
			return err
		}
	}
	return nil
}

// conformance runs the suite of the project's tests on the device.
func conformance(ctx context.Context, m *machine, r *report) error {
	if m.tiny {
		return errors.New(notDone + ": the device is not a GPU")
	}
	ctx, stop := context.WithTimeout(ctx, 3*time.Minute)
	defer stop()
	c := exec.CommandContext(ctx, "go", "test", "-tags", "slow", "-count=1", "-json", "-run", "^TestConformance$", "./cuda/native")
	c.Env = append(os.Environ(), "RUBICON_TEST_GPU=1", "CGO_ENABLED=0")
	var errs bytes.Buffer
	c.Stderr = &errs
	out, err := c.Output()
	r.Conformance = count(out)
	if ctx.Err() != nil {
		return fmt.Errorf("after %d cases the time was over", r.Conformance.Passed)
	}
	if err != nil && len(r.Conformance.Failed) == 0 {
		return fmt.Errorf("%w\n%s", err, errs.String())
	}
	return nil
}

// count counts the events of go test -json.
func count(out []byte) (c conformanceReport) {
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() {
		var e struct{ Action, Test string }
		if json.Unmarshal(lines.Bytes(), &e) != nil || strings.Count(e.Test, "/") < 3 {
			continue
		}
		switch e.Action {
		case "pass":
			c.Passed++
		case "fail":
			c.Failed = append(c.Failed, e.Test)
		}
	}
	return c
}
