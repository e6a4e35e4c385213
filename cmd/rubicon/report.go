package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rubicon-rl/rubicon/internal/report"
)

func reportCommand() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "report RUN [RUN...]",
		Short: "Write what an appendix wants of runs: curves, evaluations, rubric, cost, health, examples",
		Long: `Writes report.html, one file that has everything in it, and report.md with its pictures beside it: the runs' settings (of several
runs those that differ), curves, evaluations with intervals, operations on the rubric and the rubric at the end, time and judge's cost, what was wrong,
and the best and worst completions of the first and the last step.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, folders []string) error {
			var runs []*report.Run
			for _, dir := range folders {
				r, err := report.Open(dir)
				if err != nil {
					return err
				}
				runs = append(runs, r)
			}
			if err := report.Write(runs, out); err != nil {
				return err
			}
			_, err := fmt.Fprintf(cmd.ErrOrStderr(), "%s has report.html and report.md\n", out)
			return err
		},
	}
	cmd.Flags().StringVarP(&out, "out", "o", "report", "folder to write to")
	return cmd
}
