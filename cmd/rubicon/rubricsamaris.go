package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rubicon-rl/rubicon/rewards/amaris"
)

func amarisCommand() *cobra.Command {
	var asJSON bool
	var steps int
	cmd := &cobra.Command{
		Use:   "amaris RUN",
		Short: "Show how AMARIS changed the rubrics over five phases of a run",
		Long: `Reads a run's rubric log and counts, for five equal phases: strategies, their main reasons, criteria by category; and for
the run: operations by strategy, and reversals (what was done and undone within 8 steps).`,
		Example: "  rubicon rubrics amaris runs/amaris-science",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			events, err := readEvents(cmd.ErrOrStderr(), args[0])
			if err != nil {
				return err
			}
			r, err := amaris.NewReport(events, steps)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			return printReport(cmd.OutOrStdout(), r, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object instead of tables")
	cmd.Flags().IntVar(&steps, "steps", 0, "`steps` of the whole run; 0: those that the log knows of")
	return cmd
}
