package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/rubicon-rl/rubicon/configs"
	"github.com/rubicon-rl/rubicon/rewards/amaris"
	"github.com/rubicon-rl/rubicon/trainer/track"
)

const amarisHelp = `With one run: reads its rubric log and counts, for five equal phases, strategies, their main reasons, criteria by category; and
for the run operations by strategy, and reversals (what was done and undone within 8 steps). Then, from metrics.jsonl and
rubrics/latency.jsonl, what each component took: seconds of an update, latencies, tokens, cost and cache hits. A dash is what the run
did not write down.

With several runs: compares how long their steps took and waited for updates, how far their rubrics were behind, and their rewards.
The increase is over the first run whose rubric stays (frozen: true, or reward.kind rubric).

Of a part of a mix, give RUN/rewards/NAME.`

func amarisCommand() *cobra.Command {
	var asJSON bool
	var steps int
	cmd := &cobra.Command{
		Use:   "amaris RUN [RUN ...]",
		Short: "Show how AMARIS changed the rubrics of a run, and what it took; or compare runs",
		Long:  amarisHelp,
		Example: `  rubicon rubrics amaris runs/amaris-science
  rubicon rubrics amaris runs/static runs/async runs/sync`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				c, err := compareAmaris(args)
				if err != nil {
					return err
				}
				return printReport(cmd.OutOrStdout(), c, asJSON)
			}
			events, err := readEvents(cmd.ErrOrStderr(), args[0])
			if err != nil {
				return err
			}
			m, err := readMeasured(args[0])
			if err != nil {
				return err
			}
			if steps == 0 {
				steps = m.Steps()
			}
			r, err := amaris.NewReport(events, steps)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			r.Components = amaris.NewComponents(m)
			return printReport(cmd.OutOrStdout(), r, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object instead of tables; shares are from 0 to 1, null is not known")
	cmd.Flags().IntVar(&steps, "steps", 0, "`steps` of the whole run, for the phases; 0: those that metrics.jsonl and the log know of")
	return cmd
}

// partOf returns the run's folder and the part's name, if dir is the folder of a part of a mix; else dir and "".
func partOf(dir string) (run, part string) {
	dir = filepath.Clean(dir)
	_, err := os.Stat(filepath.Join(dir, "metrics.jsonl"))
	if up := filepath.Dir(dir); err != nil && filepath.Base(up) == "rewards" {
		return filepath.Dir(up), filepath.Base(dir)
	}
	return dir, ""
}

// readMeasured reads what a run, or a part of a mix, left of the time and the tokens that it took.
func readMeasured(dir string) (m amaris.Measured, err error) {
	run, part := partOf(dir)
	records, err := track.ReadJSONL(filepath.Join(run, "metrics.jsonl"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return m, err
	}
	for _, r := range records {
		m.Lines = append(m.Lines, amaris.Line(r))
	}
	if part != "" {
		m.Prefix = part + "/"
	}
	m.Latencies, err = amaris.ReadLatencies(amaris.LatencyPath(dir))
	return m, err
}

// compareAmaris puts runs side by side.
func compareAmaris(dirs []string) (amaris.Comparison, error) {
	var runs []amaris.Run
	for _, dir := range dirs {
		part, err := rewardOf(dir)
		if err != nil {
			return amaris.Comparison{}, err
		}
		r := amaris.Run{Name: dir}
		if r.Mode, err = amaris.Mode(part.Kind, part.Options); err != nil {
			return amaris.Comparison{}, fmt.Errorf("%s: %w", dir, err)
		}
		if r.Measured, err = readMeasured(dir); err != nil {
			return amaris.Comparison{}, err
		}
		runs = append(runs, r)
	}
	return amaris.Compare(runs)
}

// rewardOf returns the reward of a run's configuration, or that of a part of a mix.
func rewardOf(dir string) (configs.RewardPart, error) {
	run, name := partOf(dir)
	c, _, err := configs.Load([]string{filepath.Join(run, "config.yaml")}, nil, nil)
	if err != nil {
		return configs.RewardPart{}, fmt.Errorf("%s: %w", dir, err)
	}
	if name == "" {
		return c.Reward.RewardPart, nil
	}
	for _, p := range c.Reward.Parts {
		if p.Name == name || p.Name == "" && p.Kind == name {
			return p, nil
		}
	}
	return configs.RewardPart{}, fmt.Errorf("%s: the configuration of %s has no part %s of a mix", dir, run, name)
}
