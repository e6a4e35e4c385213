// Command mutate tests the tests of the CUDA kernels: it changes the PTX of a file of kernels in one place at a time, runs
// the conformance cases of its operations on the simulated device, and prints the changes that no case noticed. To be run in
// the module's root.
//
//	go run ./scripts/mutate [-ops rmsnorm,rotary] [-kind barrier,shuffle] [-lines 12,34] [-every 1] [-jobs 2] rmsnorm
//
// The changes: a barrier is left out, a butterfly shuffle reads from the lane below, an integer constant is one more, a memory
// access is one element further, a comparison of integers takes in or leaves out the bound. A change counts as noticed if a case
// fails, the simulator reports an error, or the cases take many times as long as without it.
package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// options are the command's flags.
type options struct {
	file  string   // kernels/FILE.cu
	ops   []string // of the conformance suite
	kinds string   // of mutants, by commas; empty: all
	lines string   // of the PTX, by commas; empty: all
	every int
	jobs  int
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o, err := parse(os.Args[1:])
	if err == nil {
		err = run(ctx, o, os.Stdout)
	}
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func parse(args []string) (options, error) {
	var o options
	f := flag.NewFlagSet("mutate", flag.ContinueOnError)
	ops := f.String("ops", "", "operations whose cases are run, by commas (default: the file's name)")
	f.StringVar(&o.kinds, "kind", "", "kinds of changes, by commas: "+strings.Join(kinds, ", ")+" (default: all)")
	f.StringVar(&o.lines, "lines", "", "lines of the PTX to change, by commas, as printed by an earlier run (default: all)")
	f.IntVar(&o.every, "every", 1, "try every nth change only")
	f.IntVar(&o.jobs, "jobs", 2, "changes that are tried at a time")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() != 1 || o.every < 1 || o.jobs < 1 {
		return o, errors.New("name one file of cuda/kernels without its ending, and -every and -jobs of at least 1")
	}
	o.file = f.Arg(0)
	if *ops == "" {
		*ops = o.file
	}
	o.ops = strings.Split(*ops, ",")
	return o, nil
}

func run(ctx context.Context, o options, w io.Writer) error {
	text, err := unpack(filepath.Join("cuda", "ptx", o.file+".ptx.gz"))
	if err != nil {
		return fmt.Errorf("%w (scripts/ptx.sh makes it; run this in the module's root)", err)
	}
	dir, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	suite, err := build(ctx, dir, text, o.ops)
	if err != nil {
		return err
	}
	var chosen []mutant
	for i, m := range mutants(text) {
		if i%o.every == 0 && listed(o.kinds, m.kind) && listed(o.lines, strconv.Itoa(m.line+1)) {
			chosen = append(chosen, m)
		}
	}
	became, err := suite.tryAll(ctx, chosen, o.jobs)
	report(w, o.file, chosen, became)
	return err
}

// listed reports whether an item is in a list by commas; in the empty one is everything.
func listed(list, item string) bool {
	return list == "" || slices.Contains(strings.Split(list, ","), item)
}

func unpack(path string) (string, error) {
	packed, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(r)
	return string(text), err
}

// report prints the number of changes of each kind that were noticed, and those that were not.
func report(w io.Writer, file string, ms []mutant, became []verdict) {
	for _, kind := range kinds {
		var count [hung + 1]int
		for i, m := range ms {
			if m.kind == kind {
				count[became[i]]++
			}
		}
		if all := count[survived] + count[failed] + count[hung]; all > 0 {
			fmt.Fprintf(w, "%-12s %-10s %d of %d noticed, %d of them by time\n", file, kind, all-count[survived], all, count[hung])
		}
	}
	for i, m := range ms {
		if became[i] == survived {
			fmt.Fprintf(w, "%s, line %d: %s -> %s\n", m.kernel, m.line+1, m.from, m.to)
		}
	}
}
