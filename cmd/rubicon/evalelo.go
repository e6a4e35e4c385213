package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rubicon-rl/rubicon/trainer/eval"
)

// rateWriters has the judge compare the pieces of files of answers to creative-writing, prints the ratings and writes the duels down.
func (f *evalFlags) rateWriters(cmd *cobra.Command, args []string) (err error) {
	var files, overrides []string
	for _, a := range args {
		if strings.Contains(a, "=") {
			overrides = append(overrides, a)
		} else {
			files = append(files, a)
		}
	}
	if len(files) < 2 || len(f.files) == 0 {
		return fmt.Errorf("give two or more files of answers, and with -c a configuration that has a judge")
	}
	anchors, err := readAnchors(f.anchors)
	if err != nil {
		return err
	}
	var writers []eval.Writer
	for _, file := range files {
		s, records, err := eval.Read(file)
		if err != nil {
			return err
		}
		if s.Benchmark != creativeWriting {
			return fmt.Errorf("%s has answers to %s: only pieces of %s are rated", file, s.Benchmark, creativeWriting)
		}
		writers = append(writers, eval.Writer{Name: file, Records: records})
	}
	c, err := loadConfig(f.files, overrides, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	r, err := openRun(c, nil)
	if err != nil {
		return err
	}
	defer closing(&err, r.close)
	out := f.out
	if out == "" {
		out = "eval"
	}
	j := &judge{cfg: c.Judge, seed: uint64(c.Seed), dir: out, console: r.Console, tokenizer: r.Tokenizer}
	defer closing(&err, j.close)
	judge, err := j.open()
	if err == nil {
		err = j.preflight(cmd.Context())
	}
	if err != nil {
		return fmt.Errorf("--elo needs a judge: %w", err)
	}
	duels, err := eval.Duels(cmd.Context(), judge, writers)
	if err != nil {
		return err
	}
	ratings, err := eval.Rate(duels, anchors)
	if err != nil {
		return err
	}
	head := map[string]any{"judge": judgeWords(c), "judge_prompt": eval.EloPrompt, "ratings": ratings}
	if err := writeDuels(filepath.Join(out, "elo.jsonl"), head, duels); err != nil {
		return err
	}
	return printRatings(cmd.OutOrStdout(), ratings)
}

// creativeWriting is the benchmark whose pieces are rated.
const creativeWriting = "creative-writing"

func readAnchors(given map[string]string) (eval.Anchors, error) {
	anchors := eval.Anchors{}
	for file, text := range given {
		elo, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, fmt.Errorf("--anchor %s=%s: give a number", file, text)
		}
		anchors[file] = elo
	}
	if n := len(anchors); n != 0 && n != 2 {
		return nil, fmt.Errorf("there are %d anchors: give --anchor twice, or not at all", n)
	}
	return anchors, nil
}

// writeDuels writes a line about all duels and one for each.
func writeDuels(file string, head map[string]any, duels []eval.Duel) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	var b bytes.Buffer
	lines := json.NewEncoder(&b)
	err := lines.Encode(head)
	for _, d := range duels {
		err = errors.Join(err, lines.Encode(d))
	}
	if err != nil {
		return err
	}
	return os.WriteFile(file, b.Bytes(), 0o644)
}

func printRatings(w io.Writer, ratings []eval.Rating) error {
	table := "| writer | elo | mu | sigma | duels |\n|---|---:|---:|---:|---:|\n"
	for _, r := range ratings {
		table += fmt.Sprintf("| %s | %.0f | %.0f | %.0f | %d |\n", r.Name, r.Elo, r.Mu, r.Sigma, r.Duels)
	}
	_, err := io.WriteString(w, table)
	return err
}
