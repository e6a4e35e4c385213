//go:build unix

// Command bench-tokenizer times policy/token on the corpora that run.py wrote, and prints one JSON line for each:
//
//	bench-tokenizer MODEL_DIR CORPORA.jsonl
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
	"runtime"
	"syscall"

	"github.com/rubicon-rl/rubicon/policy/token"
)

// corpus is one line of the input.
type corpus struct {
	Name  string
	Texts []string
}

// result is one line of the output. Times are seconds of processor time for the whole corpus, garbage collection
// included, so that other work on the machine does not count.
type result struct {
	Name        string
	First, Best float64
	Decode      float64
	Tokens      int
	Checksum    uint32 // of all ids, to be compared with the other library's
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench-tokenizer:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("usage: bench-tokenizer MODEL_DIR CORPORA.jsonl")
	}
	runtime.GOMAXPROCS(1)
	file, err := os.Open(args[1])
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewReader(file)
	out := json.NewEncoder(os.Stdout)
	for d := json.NewDecoder(lines); d.More(); {
		var c corpus
		if err := d.Decode(&c); err != nil {
			return err
		}
		tok, err := token.Load(args[0]) // afresh, so that the first pass finds an empty cache
		if err != nil {
			return err
		}
		if err := out.Encode(measure(tok, c)); err != nil {
			return err
		}
	}
	return nil
}

// used is the processor time that the program has taken, in seconds.
func used() float64 {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		panic(err)
	}
	return float64(r.Utime.Nano()+r.Stime.Nano()) / 1e9
}

func measure(tok *token.Tokenizer, c corpus) result {
	r := result{Name: c.Name}
	ids := make([][]int32, len(c.Texts))
	for pass := range 6 {
		runtime.GC()
		start := used()
		for i, text := range c.Texts {
			ids[i] = tok.Encode(text, token.EncodeOptions{})
		}
		took := used() - start
		if pass == 0 {
			r.First, r.Best = took, took
		}
		r.Best = min(r.Best, took)
	}
	start := used()
	for _, x := range ids {
		tok.Decode(x, false)
	}
	r.Decode = used() - start
	for _, x := range ids {
		r.Tokens += len(x)
		for _, id := range x {
			r.Checksum = crc32.Update(r.Checksum, crc32.IEEETable, []byte{byte(id), byte(id >> 8), byte(id >> 16), byte(id >> 24)})
		}
	}
	return r
}
