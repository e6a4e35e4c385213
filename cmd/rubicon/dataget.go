package main

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/rubicon-rl/rubicon/internal/hub"
	"github.com/rubicon-rl/rubicon/internal/hub/datasets"
)

func dataCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "data", Short: "Get the data sets of the papers and benchmarks"}
	cmd.AddCommand(dataGetCommand())
	return cmd
}

func dataGetCommand() *cobra.Command {
	var o datasets.Options
	var jobs int
	cmd := &cobra.Command{
		Use:   "get [NAME]",
		Short: "Download a data set and make rows of it; without NAME: list them",
		Long: `Fetches the official files of a data set, checks them where their size and SHA-256 are known, prints the licence, and makes
JSON Lines of them: id, prompt (a text or messages) and the columns that the rewards read (rubric, reference_answer, answer,
instruction_id_list and kwargs); data sets of questions over paragraphs keep their official columns. The official files stay
in DIR/official, where the benchmarks read them. With --from nothing is downloaded.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return listDatasets(cmd.OutOrStdout())
			}
			set, near := datasets.Find(args[0])
			if set == nil && near != "" {
				return fmt.Errorf("there is no data set %q: did you mean %s?", args[0], near)
			} else if set == nil {
				return fmt.Errorf("there is no data set %q: rubicon data get lists them", args[0])
			}
			h, err := hubOptions(jobs, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			o.Client, o.Token, o.Console = hub.New(h), h.Token != "", cmd.ErrOrStderr()
			defer o.Client.Close()
			o.Out = cmp.Or(o.Out, filepath.Join("data", set.Name))
			return getDataset(cmd, set, o)
		},
	}
	cmd.Flags().StringVar(&o.From, "from", "", "folder that has the official files already")
	cmd.Flags().StringVar(&o.Out, "out", "", "folder for the result (default data/NAME)")
	cmd.Flags().BoolVar(&o.AnyBytes, "any-version", false, "with --from: take files too that differ from the known ones")
	cmd.Flags().IntVar(&jobs, "jobs", hub.DefaultOptions().Jobs, "files that are downloaded at a time")
	return cmd
}

func listDatasets(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NAME\tDOWNLOAD\tLICENCE\tFOR")
	for _, s := range datasets.All() {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", s.Name, s.Size, s.Licence, s.Use)
	}
	return t.Flush()
}

// getDataset gets a data set and says what came of it: the files on stdout, the rest on stderr.
func getDataset(cmd *cobra.Command, set *datasets.Set, o datasets.Options) error {
	fmt.Fprintf(o.Console, "%s: %s\nlicence: %s\nsee %s\n", set.Name, set.Use, set.Licence, set.Home)
	if set.Note != "" {
		fmt.Fprintf(o.Console, "note: %s\n", set.Note)
	}
	files, rows, err := set.Get(cmd.Context(), o)
	if err != nil {
		return err
	}
	for _, w := range rows {
		fmt.Fprintf(o.Console, "%s: %d rows\n", w.Path, w.Rows)
		if w.Bad > 0 {
			fmt.Fprintf(o.Console, "note: left out %d rows of %s that cannot be used, such as %v\n", w.Bad, w.Path, w.Why)
		}
		if _, err := fmt.Fprintln(cmd.OutOrStdout(), w.Path); err != nil {
			return err
		}
	}
	if len(rows) > 0 {
		return nil
	}
	for _, f := range files { // a benchmark that reads the official file
		if _, err := fmt.Fprintln(cmd.OutOrStdout(), f); err != nil {
			return err
		}
	}
	return nil
}
