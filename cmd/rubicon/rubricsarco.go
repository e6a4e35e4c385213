package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/rewards/arco"
	"github.com/rubicon-rl/rubicon/rubricmem"
)

func arcoCommand() *cobra.Command {
	q := arcoQuery{last: 10}
	cmd := &cobra.Command{
		Use:   "arco RUN",
		Short: "Show what the criteria of an ARCO run are like: themes, duplicates, and how much they are about their step",
		Long: `Reads the criteria and scores of the last steps from completions/. Themes are clusters of a step's criteria by their vectors; duplicates
are criteria whose theme an earlier one of the step has; range is the difference of scores within a theme. With -c a judge (tier
score) is asked to find each action among four by its criteria alone (Bind, chance 0.25), and how specific they are (Spec, 1 to 5).`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return q.run(cmd.Context(), args[0], cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().IntVar(&q.last, "last", q.last, "training steps that are read, the last ones")
	cmd.Flags().StringVar(&q.minilm, "minilm", "", "sentence-transformers `folder` whose vectors are compared; words are without it")
	cmd.Flags().StringArrayVarP(&q.files, "config", "c", nil, "configuration whose judge is asked about binding")
	cmd.Flags().Uint64Var(&q.seed, "seed", 0, "of the orders and the clusters")
	cmd.Flags().BoolVar(&q.json, "json", false, "print one JSON object")
	return cmd
}

type arcoQuery struct {
	last   int
	minilm string
	files  []string
	seed   uint64
	json   bool
}

// arcoReport is what the command prints.
type arcoReport struct {
	Width    arco.Width               `json:"width"`
	Known    int                      `json:"known"`              // steps of which the environment tells whether they were right
	StepAUC  *float64                 `json:"step_auc,omitempty"` // of their scores; nil: there are not both kinds
	Clocks   map[string]*stageClock   `json:"clocks,omitempty"`
	Bindings map[string]*arco.Binding `json:"bindings,omitempty"`
}

func (q *arcoQuery) run(ctx context.Context, run string, out, talk io.Writer) (err error) {
	episodes, marks, err := readJudged(run, q.last)
	if err != nil {
		return err
	}
	var e rewards.Embedder = rubricmem.Lexical()
	if q.minilm != "" {
		encoder, shut, err := openMiniLM(q.minilm)
		if err != nil {
			return err
		}
		defer closing(&err, shut)
		e = encoder
	}
	var r arcoReport
	if r.Width, err = arco.Themes(ctx, slices.Concat(marks...), e, q.seed); err != nil {
		return err
	}
	r.Known, r.StepAUC = stepAUC(episodes, marks)
	if r.Clocks, err = stageClocks(run); err != nil {
		return err
	}
	if len(q.files) > 0 {
		c, err := loadConfig(q.files, nil, talk)
		if err != nil {
			return err
		}
		j := &judge{cfg: c.Judge, seed: uint64(c.Seed), console: talk}
		defer closing(&err, j.close)
		open, err := j.open()
		if err != nil {
			return err
		}
		if r.Bindings, err = arco.Bindings(ctx, open, episodes, marks, q.seed); err != nil {
			return err
		}
	}
	return printReport(out, r, q.json)
}

// Print writes the report as Markdown.
func (r arcoReport) Print(out io.Writer) error {
	var b strings.Builder
	w := r.Width
	fmt.Fprintf(&b, "%d judged steps\n\n| K | themes | themes / K | exact duplicates | duplicates | range |\n|---|---|---|---|---|---|\n", w.Steps)
	fmt.Fprintf(&b, "| %.3g | %.3g | %.3g | %.3g | %.3g | %.3g |\n", w.K, w.Themes, w.ThemeRatio, w.Exact, w.Duplicates, w.Range)
	if r.StepAUC != nil {
		fmt.Fprintf(&b, "\nAUC of the scores of right steps against wrong ones: %.3f (%d steps)\n", *r.StepAUC, r.Known)
	}
	printClocks(&b, r.Clocks)
	if len(r.Bindings) > 0 {
		b.WriteString("\n| steps | Bind | Spec | asked about | unanswered |\n|---|---|---|---|---|\n")
	}
	for _, kind := range slices.Sorted(maps.Keys(r.Bindings)) {
		x := r.Bindings[kind]
		fmt.Fprintf(&b, "| %s | %.3g | %.3g | %d | %d |\n", kind, x.Bind, x.Spec, x.Steps, x.Lost)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// stepAUC is that of the steps' scores against what the environment said of them.
func stepAUC(episodes []arco.Episode, marks [][]arco.Step) (steps int, auc *float64) {
	var known arco.Known
	for i, e := range episodes {
		for k, m := range e.Steps[:min(len(e.Steps), len(marks[i]))] {
			known.Add(m, marks[i][k])
		}
	}
	if x := known.AUC(); !math.IsNaN(x) {
		auc = &x
	}
	return known.Steps(), auc
}

// judgedLine is a line of completions/step_N.jsonl.
type judgedLine struct {
	ID     string
	Prompt string
	Steps  []struct {
		Action, Observation string
		Verdict             grpo.Verdict
	}
	Parts []rewards.Part
}

// readJudged reads the episodes of a run's last steps with what its rubric model said of them.
func readJudged(run string, last int) (episodes []arco.Episode, marks [][]arco.Step, err error) {
	files, err := filepath.Glob(filepath.Join(run, "completions", "step_*.jsonl"))
	if err != nil || len(files) == 0 {
		return nil, nil, errors.Join(err, fmt.Errorf("%s has no completions: give a run's folder", run))
	}
	number := func(file string) (n int) {
		fmt.Sscanf(filepath.Base(file), "step_%d.jsonl", &n)
		return n
	}
	slices.SortFunc(files, func(a, b string) int { return number(a) - number(b) })
	for _, file := range files[max(0, len(files)-last):] {
		if err := readJudgedFile(file, func(l judgedLine) {
			e := arco.Episode{ID: l.ID, Task: l.Prompt}
			for _, s := range l.Steps {
				e.Steps = append(e.Steps, arco.Move{Action: s.Action, Observation: s.Observation, Verdict: s.Verdict})
			}
			if steps := arco.Unparted(l.Parts); len(steps) > 0 {
				episodes, marks = append(episodes, e), append(marks, steps)
			}
		}); err != nil {
			return nil, nil, err
		}
	}
	if len(marks) == 0 {
		return nil, nil, fmt.Errorf("%s has no criteria of steps: is its reward.kind arco?", run)
	}
	return episodes, marks, nil
}

func readJudgedFile(file string, use func(judgedLine)) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var l judgedLine
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		use(l)
	}
	return lines.Err()
}
