package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rubicon-rl/rubicon/configs"
	"github.com/rubicon-rl/rubicon/trainer/eval"
)

// eloBenchmark is whose answers --elo compares.
const eloBenchmark = "creative-writing"

// rate has the judge compare the pieces in files of answers and writes judgements and ratings below out. What was judged is in the judge's cache
// there, so that the same command goes on where an interrupted one stopped.
func (f *evalFlags) rate(cmd *cobra.Command, args []string) (err error) {
	files, overrides := splitOverrides(args)
	if len(files) < 2 {
		return errors.New("give the files of answers to creative-writing that --elo is to compare, two or more")
	}
	if len(f.files) == 0 && len(overrides) == 0 {
		return errors.New("there is no judge: name a configuration file with a section judge by -c, or set judge.url and judge.model")
	}
	c, err := loadConfig(f.files, overrides, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	if c.Judge.URL == localURL {
		return errors.New("the judge is local, a run's own base model, which is not loaded here: name a server, such as judge.url=http://127.0.0.1:8000/v1")
	}
	writers, data, err := readWriters(files)
	if err != nil {
		return err
	}
	out := f.out
	if out == "" {
		out = filepath.Join("eval", eloBenchmark+"-elo")
	}
	j := &judge{cfg: c.Judge, seed: uint64(c.Seed), dir: out, console: cmd.ErrOrStderr()}
	defer closing(&err, j.close)
	if _, err := j.open(); err != nil {
		return err
	}
	if err := j.preflight(cmd.Context()); err != nil {
		return err
	}
	s, err := standingsOf(cmd.Context(), c, f.benchmarks, j, data, writers)
	if err != nil {
		return err
	}
	return writeStandings(out, s, cmd)
}

// readWriters reads whose pieces are compared, and the SHA-256 of the prompts that all of them are to.
func readWriters(files []string) (writers []eval.Writer, data string, err error) {
	names := map[string]int{}
	for _, file := range files {
		names[fileLabel(file)]++
	}
	for _, file := range files {
		s, records, err := eval.Read(file)
		if err != nil {
			return nil, "", err
		}
		if s.Benchmark != eloBenchmark || data != "" && s.Data != data {
			return nil, "", fmt.Errorf("%s is of %s (%.8s): compare answers to %s with the same prompts", file, s.Benchmark, s.Data, eloBenchmark)
		}
		data = s.Data
		w := eval.Writer{Label: fileLabel(file), Pieces: map[string]string{}}
		if names[w.Label] > 1 {
			w.Label = file
		}
		for _, r := range records {
			if r.Repeat == 0 && r.Finish != eval.Refused {
				w.Pieces[r.Key] = r.Answer
			}
		}
		writers = append(writers, w)
	}
	return writers, data, nil
}

// fileLabel is a file's name without its ending.
func fileLabel(path string) string { return strings.TrimSuffix(filepath.Base(path), ".jsonl") }

// standingsOf rates on the prompts that the pieces were written to.
func standingsOf(ctx context.Context, c *configs.Config, specs []string, j *judge, data string, writers []eval.Writer) (*eval.Standings, error) {
	file := filepath.Join(c.Eval.DataDir, filepath.FromSlash(benchmarks[eloBenchmark].file))
	for _, s := range specs {
		if name, own, ok := strings.Cut(s, "="); ok && name == eloBenchmark {
			file = own
		}
	}
	digest, err := eval.Digest(file)
	if err != nil {
		return nil, fmt.Errorf("the prompts of %s: %w: give them as --benchmark %s=FILE", eloBenchmark, err, eloBenchmark)
	}
	if digest != data {
		return nil, fmt.Errorf("%s does not hold the prompts that the pieces were written to (%.8s, not %.8s)", file, digest, data)
	}
	return eval.Elo(ctx, eval.Source{File: file, Judge: j.open}, writers)
}

// writeStandings writes the judgements, a line each, and the ratings, which it prints as well.
func writeStandings(out string, s *eval.Standings, cmd *cobra.Command) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	var lines []byte
	for _, m := range s.Matches {
		line, err := json.Marshal(m)
		if err != nil {
			return err
		}
		lines = append(append(lines, line...), '\n')
	}
	if err := os.WriteFile(filepath.Join(out, "matches.jsonl"), lines, 0o644); err != nil {
		return err
	}
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(out, "ratings.json"), append(b, '\n'), 0o644); err != nil {
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s\n", b)
	return err
}
