// Command gpu-check tries rubicon on a machine's NVIDIA GPU and measures it: every operation against the CPU, the conformance
// suite, models of known shapes with random weights, learning beside the CPU. It takes at most eight minutes and writes
// gpu-check.json and gpu-check.md.
//
//	go run ./scripts/gpu-check [-out FOLDER] [-minutes 8]
//
// With -device simulated (the kernels run on the processor) or cpu it goes through the same on tiny shapes, to try the program
// itself; what is measured then means nothing.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

func main() {
	out := flag.String("out", ".", "folder of the report")
	minutes := flag.Float64("minutes", 8, "time after which nothing more is begun")
	kind := flag.String("device", "cuda", "cuda; or simulated or cpu, on tiny shapes")
	flag.Parse()
	runtime.LockOSThread() // the device is bound to the thread
	ctx, stop := context.WithTimeout(context.Background(), time.Duration(*minutes*float64(time.Minute)))
	defer stop()
	if err := run(ctx, *kind, *out); err != nil {
		fmt.Fprintln(os.Stderr, "gpu-check:", err)
		os.Exit(1)
	}
}

// run makes the report and writes it after every part, so that an end before its time loses one part only.
func run(ctx context.Context, kind, out string) error {
	m, err := look(kind)
	if err != nil {
		return err
	}
	r := &report{Machine: m.machine}
	parts := []struct {
		name string
		make func(context.Context, *machine, *report) error
	}{{"self-test", selfTest}, {"conformance", conformance}, {"arithmetic", arithmetic}, {"models", models}, {"learning", learning}, {"torch", torch}}
	for _, p := range parts {
		began := time.Now()
		fmt.Fprintf(os.Stderr, "%s\n", p.name)
		if err := ctx.Err(); err == nil {
			err = p.make(ctx, m, r)
			r.part(p.name, time.Since(began), err)
		} else {
			r.part(p.name, 0, errors.New(notDone+": the time was over"))
		}
		if err := r.write(out); err != nil {
			return err
		}
	}
	fmt.Println(filepath.Join(out, "gpu-check.md"))
	return r.verdict()
}

// write writes the report as JSON and as Markdown.
func (r *report) write(dir string) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return errors.Join(os.WriteFile(filepath.Join(dir, "gpu-check.json"), append(b, '\n'), 0o644),
		os.WriteFile(filepath.Join(dir, "gpu-check.md"), []byte(r.markdown()), 0o644))
}
