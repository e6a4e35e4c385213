package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/rubicon-rl/rubicon/trainer/health"
	"github.com/rubicon-rl/rubicon/trainer/track"
)

func healthCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "health RUN",
		Short: "Say what is wrong, or was, with a run",
		Long: `Diagnoses a run from its metrics.jsonl, as the run itself does while it goes on: what began at which step, when it was over, and what to
do. docs/health.md explains each diagnosis.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			path := filepath.Join(args[0], "metrics.jsonl")
			records, err := track.ReadJSONL(path)
			if err != nil {
				return fmt.Errorf("%s is not the folder of a run: %w", args[0], err)
			}
			out := cmd.OutOrStdout()
			findings := health.Diagnose(records)
			for _, f := range findings {
				line := []byte(f.String())
				if asJSON {
					if line, err = json.Marshal(f); err != nil {
						return err
					}
				}
				if _, err := fmt.Fprintf(out, "%s\n", line); err != nil {
					return err
				}
			}
			switch {
			case asJSON || len(findings) > 0:
			case len(records) == 0:
				fmt.Fprintf(out, "%s holds no line of metrics yet\n", path)
			default:
				fmt.Fprintf(out, "nothing is wrong in %d lines of metrics, up to step %d\n", len(records), records[len(records)-1].Step)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the findings as JSON objects, one a line, as in health.jsonl")
	return cmd
}
