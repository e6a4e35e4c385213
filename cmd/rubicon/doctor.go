package main

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rubicon-rl/rubicon/cuda/native"
	"github.com/rubicon-rl/rubicon/cuda/selftest"
	"github.com/rubicon-rl/rubicon/internal/device"
)

func doctorCommand() *cobra.Command {
	var kind string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Print what this machine computes with, and test it",
		Long: `Prints NVIDIA's libraries with their versions and places, every device with its memory and links, and compares each
operation of the device that a run would use with the same on the CPU. Where there is no driver, it prints where it looked and
what to do, which is an error only with --device cuda.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if kind != "auto" && kind != "cuda" {
				return fmt.Errorf("--device is %q: set it to auto or cuda", kind)
			}
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			d := doctor{out: cmd.OutOrStdout(), env: native.System()}
			usable, err := d.examine()
			if !usable && kind == "auto" {
				fmt.Fprintf(d.out, "cuda       cannot be used: %v\n", err)
				return d.healthy()
			}
			return err
		},
	}
	cmd.Flags().StringVar(&kind, "device", "auto", "auto, or cuda: it is an error if there is no NVIDIA device that can be used")
	return cmd
}

// doctor looks at the devices of a machine and prints what it sees.
type doctor struct {
	out io.Writer
	env native.Env
}

// examine looks at NVIDIA's devices. Usable says whether there is one; if so, an error is that it failed its test.
func (d doctor) examine() (usable bool, err error) {
	lib, err := native.Load(d.env)
	if err != nil {
		return false, err
	}
	fmt.Fprintf(d.out, "driver     CUDA %s, %s\n", lib.Version(), lib.Path())
	list, err := lib.Devices()
	if err != nil {
		return false, err
	}
	for _, own := range list {
		fmt.Fprintf(d.out, "device %-3d %s\n", own.Ordinal, deviceLine(own))
	}
	mine, err := native.Choose(list, d.env.Getenv("LOCAL_RANK"))
	if err != nil {
		return false, err
	}
	if err := d.libraries(lib, mine); err != nil {
		return false, err
	}
	var failed []error
	for _, bf16 := range []bool{false, true} {
		failed = append(failed, d.test(lib, mine, bf16))
	}
	return true, errors.Join(failed...)
}

func deviceLine(d native.Device) string {
	peers := "no direct link to another"
	if len(d.Peers) > 0 {
		peers = "direct links to " + strings.Trim(strings.Join(strings.Fields(fmt.Sprint(d.Peers)), ", "), "[]")
	}
	return fmt.Sprintf("%s, compute capability %d.%d, %d processors, %s of memory, %s", d.Name, d.Major, d.Minor, d.Processors, size(d.Memory), peers)
}

// libraries prints cuBLAS and NCCL, and how much memory of the device is free. NCCL may be missing: one device needs none.
func (d doctor) libraries(lib *native.CUDA, mine native.Device) error {
	drv, err := lib.Open(mine)
	if err != nil {
		return err
	}
	free, total, err := drv.MemInfo()
	if err == nil {
		fmt.Fprintf(d.out, "memory     %s free of %s on device %d\n", size(free), size(total), mine.Ordinal)
		err = d.blas(drv, lib.Major())
	}
	if nccl, missing := native.OpenNCCL(d.env); missing == nil {
		fmt.Fprintf(d.out, "NCCL       %s, %s\n", nccl.Version(), nccl.Path())
	} else {
		fmt.Fprintf(d.out, "NCCL       %v\n           (only runs on several devices need it)\n", missing)
	}
	return errors.Join(err, drv.Close())
}

func (d doctor) blas(drv *native.Driver, major int) error {
	b, err := native.OpenBlas(d.env, drv, major)
	if err != nil {
		return err
	}
	fmt.Fprintf(d.out, "cuBLAS     %s, %s\n", strings.TrimPrefix(b.Name(), "cuBLAS "), b.Path())
	return b.Close()
}

// test compares every operation of a device with the CPU's.
func (d doctor) test(lib *native.CUDA, mine native.Device, bf16 bool) (err error) {
	dev, err := newCUDA(lib, mine, bf16, d.env)
	if err != nil {
		return err
	}
	defer closing(&err, dev.Close)
	tolerance := selftest.Tolerance
	if bf16 {
		tolerance = selftest.Loose
	}
	return d.compare(dev, tolerance)
}

func (d doctor) compare(dev device.Device, tolerance float64) (err error) {
	trusted, err := openCPU(0, false)
	if err != nil {
		return err
	}
	defer closing(&err, trusted.Close)
	fmt.Fprintf(d.out, "self-test  %s against %s, differences up to %g\n", dev.Info().Name, trusted.Info().Name, tolerance)
	bad := 0
	for r := range selftest.Run(dev, trusted, tolerance) {
		if r.Err != nil {
			bad++
			fmt.Fprintf(d.out, "  %-26s FAILED: %v\n", r.Op, r.Err)
		} else {
			fmt.Fprintf(d.out, "  %-26s ok, %.1e\n", r.Op, r.Worst)
		}
	}
	if bad > 0 {
		return fmt.Errorf("%d operations of %s failed their test", bad, dev.Info().Name)
	}
	return nil
}

// healthy says that a run computes on the CPU.
func (d doctor) healthy() error {
	dev, err := openCPU(0, false)
	if err != nil {
		return err
	}
	fmt.Fprintf(d.out, "device     a run with device: auto computes on %s\n", dev.Info().Name)
	return dev.Close()
}
