// Command bench measures rubicon's CPU engine side by side with its peers: torch with transformers, PEFT and TRL, two builds
// of llama.cpp, and OpenBLAS. run.sh installs the peers and starts it.
//
//	scripts/bench/run.sh [CACHE] [-cases grpo_step,decode] [-rounds 5] [-check] [-update]
//
// Every program is a process that answers requests over a pipe, one piece of work a request (peers/*.py, and this command
// itself as "bench serve"). The programs of a case take turns, round after round, so that what disturbs the machine
// disturbs all; each sample waits until the processors are idle and is taken again if something else used them meanwhile.
// The figures are medians, and what is claimed are ratios of medians of one run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/rubicon-rl/rubicon/internal/embedded"
)

// options are the command's flags.
type options struct {
	cache, cases, out string
	rounds, threads   int
	foreign           float64       // processors that others may use during a sample
	patience          time.Duration // how long a sample waits for idle processors
	check, update     bool
	baseline          string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	run := bench
	if len(os.Args) == 3 && os.Args[1] == "serve" {
		run = func(ctx context.Context, args []string) error { return serve(ctx, args[1], os.Stdin, os.Stdout) }
	}
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func bench(ctx context.Context, args []string) error {
	var o options
	f := flag.NewFlagSet("bench", flag.ExitOnError)
	f.StringVar(&o.cache, "cache", "", "folder with the peers and models that run.sh made")
	f.StringVar(&o.cases, "cases", "", "names of cases, comma between them; empty: all")
	f.StringVar(&o.out, "out", "", "JSON file to write; empty: bench.json in the cache")
	f.IntVar(&o.rounds, "rounds", 5, "samples of everything")
	f.IntVar(&o.threads, "threads", 2, "threads of every program")
	f.Float64Var(&o.foreign, "foreign", 0.1, "processors that other processes may use during a sample")
	f.DurationVar(&o.patience, "patience", 10*time.Minute, "how long a sample waits for idle processors")
	f.StringVar(&o.baseline, "baseline", "scripts/bench/baseline.json", "ratios to compare with")
	f.BoolVar(&o.check, "check", false, "fail if a ratio lost more than 5 % against the baseline")
	f.BoolVar(&o.update, "update", false, "write this run's ratios into the baseline")
	if err := f.Parse(args); err != nil {
		return err
	}
	if o.out == "" {
		o.out = filepath.Join(o.cache, "bench.json")
	}
	places, err := newPlaces(o)
	if err != nil {
		return err
	}
	chosen, err := choose(cases(places, o.threads), o.cases)
	if err != nil {
		return err
	}
	r := newReport(o)
	if o.check && !o.update { // before the hours are spent
		if _, err := readBaseline(o.baseline, r.Machine); err != nil {
			return err
		}
	}
	for _, c := range chosen {
		fmt.Fprintf(os.Stderr, "%s: %d programs\n", c.Name, len(c.Subjects))
		if err := r.measure(ctx, c, places, o); err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
		r.summarise(c)
		if err := r.write(o.out); err != nil { // what is measured is not lost with a later case
			return err
		}
		r.table(os.Stdout, c)
	}
	return errors.Join(r.compare(o), r.keep(o))
}

// choose are the cases of a list of names.
func choose(all []testCase, names string) ([]testCase, error) {
	if names == "" {
		return all, nil
	}
	var chosen []testCase
	for _, name := range strings.Split(names, ",") {
		found := false
		for _, c := range all {
			if c.Name == name {
				chosen, found = append(chosen, c), true
			}
		}
		if !found {
			return nil, fmt.Errorf("no case is called %q; there are %s", name, strings.Join(caseNames(all), ", "))
		}
	}
	return chosen, nil
}

func caseNames(all []testCase) []string {
	var names []string
	for _, c := range all {
		names = append(names, c.Name)
	}
	return names
}

// places are the files that the programs read.
type places struct {
	python, peers, self               string // programs
	model, tiny, adapter, data, truth string
	gguf                              func(kind string) string
	logs                              string
}

func newPlaces(o options) (places, error) {
	if o.cache == "" {
		return places{}, errors.New("-cache is not set: start scripts/bench/run.sh")
	}
	self, err := os.Executable()
	if err != nil {
		return places{}, err
	}
	tiny, err := embedded.Path("embedded:quickstart")
	if err != nil {
		return places{}, err
	}
	in := func(elem ...string) string { return filepath.Join(append([]string{o.cache}, elem...)...) }
	return places{
		python: in("venv", "bin", "python"), peers: filepath.Join("scripts", "bench", "peers"), self: self,
		model: in("models", "hf"), tiny: tiny, adapter: in("models", "adapter"), data: in("models", "data.json"), truth: in("models", "truth"),
		gguf: func(kind string) string { return in("models", kind+".gguf") },
		logs: in("logs"),
	}, os.MkdirAll(in("logs"), 0o755)
}
