package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rubicon-rl/rubicon/rewards/rare"
)

const rareHelp = `Computes, from the rubric log of a run with reward.kind rare, how its criteria were replaced and what became of it: trigger
rate, post-switch score, how many replacements open headroom and restore variance, separation, later resaturation (Table 3 of the
paper), and the scores of new and old criteria on later completions (Table 6; old ones need the option retention: true).

The second table has a line for the completions that triggered the replacements, for those of the next visit of the same
prompt, for those of the last, and for those of the last visit up to each step of --at.`

// rareCommand is rubicon rubrics rare.
func rareCommand() *cobra.Command {
	var asJSON bool
	var steps []int
	cmd := &cobra.Command{
		Use:     "rare RUN",
		Short:   "Show how RARE replaced saturated criteria, and what became of the replacements",
		Long:    rareHelp,
		Example: "  rubicon rubrics rare runs/story --at 50,100",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			events, err := readEvents(cmd.ErrOrStderr(), args[0])
			if err != nil {
				return err
			}
			r, err := rare.NewReport(events, steps)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			return printReport(cmd.OutOrStdout(), r, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object instead of tables; shares are from 0 to 1, null is not known")
	cmd.Flags().IntSliceVar(&steps, "at", nil, "`steps` at which to look at the replacements made before")
	return cmd
}
