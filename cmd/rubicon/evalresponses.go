package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rubicon-rl/rubicon/rewards/verify"
	"github.com/rubicon-rl/rubicon/trainer/data"
	"github.com/rubicon-rl/rubicon/trainer/eval"
)

// responders score given responses, a row each.
var responders = map[string]func(row map[string]any) (any, error){
	"ifeval":   followed,
	"ifbench":  followed,
	"hotpotqa": answered(verify.HotpotQA),
	"2wiki":    answered(verify.HotpotQA),
	"musique":  answered(verify.MuSiQue),
	"arco":     answered(verify.ARCO),
}

// scoreResponses writes a verdict for every row of a file, one JSON object a line, and says how long that took.
func scoreResponses(name, file string, stdout, talk io.Writer) error {
	score := responders[name]
	if score == nil {
		var names []string
		for n := range responders {
			names = append(names, n)
		}
		slices.Sort(names)
		return fmt.Errorf("given responses are scored for %s, not for %q", strings.Join(names, ", "), name)
	}
	w := bufio.NewWriter(stdout)
	began, n := time.Now(), 0
	err := data.Rows(file, "auto", func(row map[string]any) error {
		v, err := score(row)
		if err != nil {
			return err
		}
		line, err := json.Marshal(v)
		if err != nil {
			return err
		}
		n++
		_, err = w.Write(append(line, '\n'))
		return err
	})
	if err = errors.Join(err, w.Flush()); err == nil {
		fmt.Fprintf(talk, "scored %d responses in %.2f s\n", n, time.Since(began).Seconds())
	}
	return err
}

// followed is the verdict on a row with key, instruction_id_list, kwargs and response.
func followed(row map[string]any) (any, error) {
	response, ok := row["response"].(string)
	if !ok {
		return nil, errors.New("column response is not a text")
	}
	all, err := eval.CompileInstructions(row)
	if err != nil {
		return nil, err
	}
	f := eval.Follow(all, response)
	return struct {
		Key any `json:"key"`
		eval.Followed
		StrictAll bool `json:"strict_all"`
		LooseAll  bool `json:"loose_all"`
	}{row["key"], f, !slices.Contains(f.Strict, false), !slices.Contains(f.Loose, false)}, nil
}

// answered is the verdict on a row with prediction and golds (or gold).
func answered(rules verify.QARules) func(row map[string]any) (any, error) {
	return func(row map[string]any) (any, error) {
		prediction, ok := row["prediction"].(string)
		if !ok {
			return nil, errors.New("column prediction is not a text")
		}
		var golds []string
		list, _ := row["golds"].([]any)
		if one, ok := row["gold"].(string); ok {
			list = append(list, one)
		}
		for _, g := range list {
			s, ok := g.(string)
			if !ok {
				return nil, fmt.Errorf("column golds holds %v, which is not a text", g)
			}
			golds = append(golds, s)
		}
		if len(golds) == 0 {
			return nil, errors.New("column golds is empty: give a list of right answers")
		}
		em, f1 := rules.Score(prediction, golds...)
		return struct {
			EM float64 `json:"em"`
			F1 float64 `json:"f1"`
		}{em, f1}, nil
	}
}

// compareMeasurements compares two files of answers to the same benchmark.
func compareMeasurements(files []string, specs []string, dataDir string, stdout io.Writer) error {
	var settings [2]eval.Setting
	var records [2][]eval.Record
	for i, file := range files {
		var err error
		if settings[i], records[i], err = eval.Read(file); err != nil {
			return err
		}
	}
	a, b := settings[0], settings[1]
	if a.Benchmark != b.Benchmark || a.Data != b.Data {
		return fmt.Errorf("%s is of %s (%.8s), %s of %s (%.8s): compare two measurements of the same questions", files[0], a.Benchmark, a.Data, files[1], b.Benchmark, b.Data)
	}
	if a.Judge != b.Judge || a.Prompt != b.Prompt {
		fmt.Fprintf(os.Stderr, "note: the judges differ: %s (%s), %s (%s)\n", a.Judge, a.Prompt, b.Judge, b.Prompt)
	}
	spec := a.Benchmark
	for _, s := range specs {
		if name, _, _ := strings.Cut(s, "="); name == a.Benchmark {
			spec = s
		}
	}
	opened, err := openBenchmarks([]string{spec}, dataDir, nil, "")
	if err != nil {
		return err
	}
	c, err := eval.Compare(opened[0].Benchmark, records[0], records[1])
	if err != nil {
		return err
	}
	c.Benchmark = a.Benchmark
	out, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s\n", out)
	return err
}
