// Command scale measures how the time and the memory of a training step grow with tokens, sequences, layers, threads and
// the model's size, beside what the cost model of docs/performance.md predicts.
//
//	go run ./scripts/scale [-points t,b] [-quick] [-n 5] [-out docs/img]
//
// A step is GRPO's learning: log-probabilities of the last quarter of every sequence, their gradient to a LoRA adapter of
// rank 8 on bfloat16 weights, AdamW. Weights and tokens are random. Every point is a process of its own. The Markdown table
// goes to standard output; with -out, scale-points.json and scale-*.svg are written there, where the points of earlier runs
// of the same machine stay. Nothing else should run on the machine.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// options are the command's flags.
type options struct {
	points, out string
	quick       bool
	passes      int
	budget      float64
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	run := scale
	if len(os.Args) == 3 && os.Args[1] == "child" {
		run = func(ctx context.Context, args []string) error { return child(ctx, args[1]) }
	}
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

func scale(ctx context.Context, args []string) error {
	var o options
	f := flag.NewFlagSet("scale", flag.ExitOnError)
	f.StringVar(&o.points, "points", "", "sweeps, comma between them: t, b, layers, threads, shapes; empty: all")
	f.StringVar(&o.out, "out", "", "folder for the figures and pictures; empty: only the table is printed")
	f.BoolVar(&o.quick, "quick", false, "only the points that take seconds")
	f.IntVar(&o.passes, "n", 5, "steps whose median is taken")
	f.Float64Var(&o.budget, "budget", 60, "seconds after which a point begins no step")
	if err := f.Parse(args); err != nil {
		return err
	}
	chosen, err := choose(sweeps(o.quick), o.points)
	if err != nil {
		return err
	}
	r, err := open(o.out)
	if err != nil {
		return err
	}
	if err := r.measure(ctx, chosen, o); err != nil {
		return err
	}
	r.table(os.Stdout, chosen)
	if o.out == "" {
		return nil
	}
	return errors.Join(r.write(o.out), r.draw(o.out))
}
