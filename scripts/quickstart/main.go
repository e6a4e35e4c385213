// Command quickstart writes the small world that the model inside the binary is made from and learns in: short writing
// tasks with constraints that programs can check. make.sh beside it holds the commands from nothing to that model.
//
//	go run ./scripts/quickstart -out DIR [-steps 3000]                    data, tokenizer, and the model's shape
//	go run ./scripts/quickstart -out DIR -steps 0 -model CHECKPOINT   what the binary carries
//	go run ./scripts/quickstart -measure FILE -data FILE                  scores of generated answers, and whether they pass a gate
//	go run ./scripts/quickstart -course DIR RUN...                        these scores over the steps of runs, for scripts/curve
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	out := flag.String("out", "", "folder to write to")
	seed := flag.Uint64("seed", 7, "seed of all data")
	steps := flag.Int("steps", 3000, "steps of SFT to write rows for; 0: none")
	model := flag.String("model", "", "folder of the trained model, whose weights are written too")
	measure := flag.String("measure", "", "JSONL file of answers ({id, completion} a line) to measure")
	data := flag.String("data", "internal/embedded/quickstart/eval.jsonl", "tasks that the answers belong to")
	course := flag.String("course", "", "folder for the scores over the steps of the runs that follow")
	gate := flag.String("gate", "", "what the answers must pass: competent (after phase 1) or base (after phase 2)")
	flag.Parse()
	var err error
	switch {
	case *out != "":
		err = writeAll(*out, settings{seed: *seed, prompts: 64, steps: *steps, phase2: *steps / 5})
		if err == nil && *model != "" {
			err = store(*model, *out)
		}
	case *measure != "":
		err = measureFile(os.Stdout, *measure, *data, *gate)
	case *course != "":
		err = courses(*course, flag.Args())
	default:
		err = fmt.Errorf("set -out, -measure or -course")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}
