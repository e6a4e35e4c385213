// Command arithmetic writes the prompts of configs/smollm2-arithmetic.yaml: sums and products of two one-digit numbers.
//
//	go run ./scripts/arithmetic configs/smollm2-arithmetic
package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
)

type row struct {
	ID     string `json:"id"`
	Prompt string `json:"prompt"`
	Answer int    `json:"answer"`
}

const heldOut = 50 // of 200 questions

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: arithmetic DIR")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "arithmetic:", err)
		os.Exit(1)
	}
}

func write(dir string) error {
	var rows []row
	for a := range 10 {
		for b := range 10 {
			rows = append(rows,
				row{fmt.Sprintf("%d+%d", a, b), fmt.Sprintf("What is %d + %d? Answer with the number only.", a, b), a + b},
				row{fmt.Sprintf("%d*%d", a, b), fmt.Sprintf("What is %d times %d? Answer with the number only.", a, b), a * b})
		}
	}
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := writeRows(filepath.Join(dir, "eval.jsonl"), rows[:heldOut]); err != nil {
		return err
	}
	return writeRows(filepath.Join(dir, "train.jsonl"), rows[heldOut:])
}

func writeRows(path string, rows []row) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	enc := json.NewEncoder(f)
	for _, r := range rows {
		if err := enc.Encode(r); err != nil {
			f.Close()
			return err
		}
	}
	return f.Close()
}
