package amaris

import (
	"fmt"
	"io"
	"math"
)

// Modes of a run. Another provider's run has the name of its kind.
const (
	ModeStatic = "static" // the rubric stays
	ModeAsync  = executionAsync
	ModeSync   = executionSync
)

// Mode says how a run's rubrics come about, from its reward's kind and options.
func Mode(kind string, settings map[string]any) (string, error) {
	switch kind {
	case "rubric":
		return ModeStatic, nil
	case "amaris":
	default:
		return kind, nil
	}
	o, err := decode(settings)
	if err != nil {
		return "", fmt.Errorf("amaris: %w", err)
	}
	if o.Frozen {
		return ModeStatic, nil
	}
	return o.Execution, nil
}

// Run is a run that is compared with others.
type Run struct {
	Name, Mode string
	Measured
}

// Comparison is the paper's Table 5, of real runs.
type Comparison struct {
	Static string   `json:"static"` // the run that the others' increase is over: the first static one; empty: there is none
	Runs   []RunRow `json:"runs"`
}

// RunRow is a row of Comparison.
type RunRow struct {
	Name     string `json:"name"`
	Mode     string `json:"mode"`
	Steps    int    `json:"steps"`
	StepTime Figure `json:"step_time_s"` // mean; without evaluations and checkpoints
	Hours    Figure `json:"hours"`       // of all steps
	Increase Figure `json:"increase"`    // of the step time over the static run's, a share
	Waiting  Figure `json:"waiting_s"`   // for updates, mean of a step

	Behind   Figure `json:"staleness_versions"`     // updates that a step is behind, mean
	AtMost   Figure `json:"staleness_versions_max"` // of the lines of the log
	BehindBy Figure `json:"staleness_steps"`        // steps that no update in force knows of, mean
	Version  Figure `json:"version"`                // of the last step's rubrics, mean over its groups
	Updates  Figure `json:"updates"`                // that came into force
	Reward   Figure `json:"reward"`                 // mean over the last fifth of the steps
	HeldOut  Figure `json:"eval_reward"`            // of the last evaluation
}

// Compare makes the table. Rewards by rubrics that change measure different things in different runs; a held-out reward by a
// rubric that stays is what can be compared.
func Compare(runs []Run) (Comparison, error) {
	c := Comparison{}
	base := unknown()
	for _, r := range runs {
		row, err := runRow(r)
		if err != nil {
			return c, fmt.Errorf("%s: %w", r.Name, err)
		}
		if r.Mode == ModeStatic && c.Static == "" {
			c.Static, base = r.Name, row.StepTime
		}
		c.Runs = append(c.Runs, row)
	}
	for i := range c.Runs {
		c.Runs[i].Increase = c.Runs[i].StepTime/base - 1
	}
	return c, nil
}

func runRow(r Run) (RunRow, error) {
	spans, own := r.spans(), r.Prefix+"amaris/"
	if len(spans) == 0 {
		return RunRow{}, fmt.Errorf("metrics.jsonl has no line of a training step: set track.logging_steps, and let the run make as many steps")
	}
	steps := spans[len(spans)-1].Step
	row := RunRow{
		Name: r.Name, Mode: r.Mode, Steps: steps, StepTime: average(spans, "step_time"), Waiting: average(spans, own+"waiting_s"),
		Behind: average(spans, own+"staleness_versions"), AtMost: unknown(), BehindBy: average(spans, own+"staleness_steps"),
		Version: last(r.Lines, own+"version"), Updates: unknown(), HeldOut: last(r.Lines, "eval_reward"),
	}
	var hours, reward, updates mean
	for _, s := range spans {
		hours.add(s.Values["step_time"], s.steps)
		if v, there := s.Values["reward"]; there && 5*s.Step > 4*steps {
			reward.add(v, s.steps)
		}
		if v, there := s.Values[own+"staleness_versions"]; there && !(float64(row.AtMost) >= v) {
			row.AtMost = Figure(v)
		}
		if v, there := s.Values[own+"updates"]; there {
			updates.add(v, s.steps)
		}
	}
	row.Hours, row.Reward = Figure(hours.sum/3600), reward.value()
	if updates.weight > 0 {
		row.Updates = Figure(updates.sum)
	}
	if r.Mode == ModeSync {
		row.Waiting += average(spans, own+"waiting_sync_s")
	}
	return row, nil
}

// Print writes the comparison as a Markdown table.
func (c Comparison) Print(w io.Writer) error {
	var rows [][]string
	for _, r := range c.Runs {
		increase := "-"
		if !math.IsNaN(float64(r.Increase)) {
			increase = fmt.Sprintf("%+.1f", 100*float64(r.Increase))
		}
		rows = append(rows, []string{
			r.Name, r.Mode, fmt.Sprint(r.Steps), r.StepTime.String(), r.Hours.String(), increase, r.Waiting.String(),
			r.Behind.String(), r.AtMost.String(), r.BehindBy.String(), r.Version.String(), r.Updates.String(), r.Reward.String(), r.HeldOut.String(),
		})
	}
	err := table(w, []string{"run", "mode", "steps", "s/step", "hours", "% over static", "waiting s/step", "versions behind", "at most",
		"steps behind", "version", "updates", "reward", "held-out reward"}, rows)
	if err == nil && c.Static == "" {
		_, err = fmt.Fprintln(w, "\nNo run is static: name one whose rubric stays (frozen: true, or reward.kind rubric) to have the increase over it.")
	}
	return err
}
