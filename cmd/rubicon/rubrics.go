package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rubicon-rl/rubicon/rewards/criteria"
)

// rubricsCommand has the commands that look at rubrics: in files, and in the log that a run keeps of them.
func rubricsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "rubrics",
		Short: "Look at rubrics and at how a run changed them",
	}
	c.AddCommand(rubricsShow(), rubricsDiff(), rubricsLog(), rubricsValidate(), rubricsSchema(), rareCommand(), amarisCommand(), arcoCommand(), preferCommand())
	return c
}

// rubricChoice says which rubric of a run is meant, and how a file is read.
type rubricChoice struct {
	scope, format string
}

func (o *rubricChoice) add(c *cobra.Command) {
	c.Flags().StringVar(&o.scope, "scope", "", "rubric of a run: global, or the id of a prompt (default: the only one)")
	c.Flags().StringVar(&o.format, "format", "auto", "form of a file: "+strings.Join(criteria.Formats(), ", "))
}

func rubricsShow() *cobra.Command {
	var o rubricChoice
	var version int
	var asJSON bool
	c := &cobra.Command{
		Use:   "show (RUN | FILE)",
		Short: "Print a rubric: that of a file, or one of a run",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := o.rubric(c.ErrOrStderr(), args[0], version)
			if err != nil {
				return err
			}
			if asJSON {
				text, err := s.MarshalJSON()
				if err != nil {
					return err
				}
				_, err = fmt.Fprintln(c.OutOrStdout(), string(text))
				return err
			}
			var b strings.Builder
			fmt.Fprintf(&b, "%s version %d, %d criteria\n", s.Scope(), s.Version(), s.Len())
			for _, x := range s.All() {
				fmt.Fprintln(&b, x)
			}
			_, err = io.WriteString(c.OutOrStdout(), b.String())
			return err
		},
	}
	o.add(c)
	c.Flags().IntVar(&version, "version", newest, "version of a run's rubric (default: the newest)")
	c.Flags().Lookup("version").DefValue = "0" // keeps -1 out of the help
	c.Flags().BoolVar(&asJSON, "json", false, "print the canonical JSON")
	return c
}

func rubricsDiff() *cobra.Command {
	var o rubricChoice
	from, to := newest, newest
	c := &cobra.Command{
		Use:   "diff (A B | RUN [--from N] [--to N])",
		Short: "Print what is different between two rubrics",
		Long: `Prints what was added (+), removed (-) and changed (~) from one rubric to another: from A to B, each a file or a run, whose
newest rubric is taken; or between two versions of a run's rubric, without flags its last two. Nothing is printed for equal ones.`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			a, b, err := o.pair(c.ErrOrStderr(), args, from, to)
			if err != nil {
				return err
			}
			return printChanges(c.OutOrStdout(), "", criteria.Diff(a, b))
		},
	}
	o.add(c)
	c.Flags().IntVar(&from, "from", newest, "version of a run's rubric (default: the one before --to)")
	c.Flags().IntVar(&to, "to", newest, "version of a run's rubric (default: the newest)")
	c.Flags().Lookup("from").DefValue, c.Flags().Lookup("to").DefValue = "0", "0" // keeps -1 out of the help
	return c
}

func rubricsLog() *cobra.Command {
	var scope string
	var notes bool
	c := &cobra.Command{
		Use:   "log RUN",
		Short: "Print how a run's rubrics came about, in order",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			events, err := readEvents(c.ErrOrStderr(), args[0])
			if err != nil {
				return err
			}
			w := bufio.NewWriter(c.OutOrStdout())
			before := map[string]criteria.Set{}
			for _, e := range events {
				if scope != "" && e.Scope != scope {
					continue
				}
				if err := printEvent(w, e, before[e.Scope], notes); err != nil {
					return err
				}
				if e.Set != nil {
					before[e.Scope] = *e.Set
				}
			}
			return w.Flush()
		},
	}
	c.Flags().StringVar(&scope, "scope", "", "only this rubric: global, or the id of a prompt")
	c.Flags().BoolVar(&notes, "notes", false, "also print what else the reward noted, as JSON")
	return c
}

// printEvent prints an event; before is the scope's rubric until then.
func printEvent(w io.Writer, e criteria.Event, before criteria.Set, notes bool) error {
	fmt.Fprintf(w, "step %d  %s version %d  %s\n", e.Step, e.Scope, e.Version, e.Kind)
	for _, op := range e.Ops {
		fmt.Fprintf(w, "  %s %s", op.Kind, strings.Join(op.Before, ", "))
		if len(op.After) > 0 {
			fmt.Fprintf(w, " -> %s", strings.Join(op.After, ", "))
		}
		if op.Reason != "" {
			fmt.Fprintf(w, ": %s", strings.Join(strings.Fields(printable(op.Reason)), " "))
		}
		fmt.Fprintln(w)
	}
	if e.Set != nil {
		if err := printChanges(w, "  ", criteria.Diff(before, *e.Set)); err != nil {
			return err
		}
	}
	if notes && len(e.Note) > 0 {
		text, err := json.Marshal(e.Note)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "  note %s\n", text)
	}
	return nil
}

func printChanges(w io.Writer, indent string, changes []criteria.Change) error {
	for _, c := range changes {
		text := strings.ReplaceAll(c.String(), "\n", "\n"+indent)
		if _, err := fmt.Fprintln(w, indent+text); err != nil {
			return err
		}
	}
	return nil
}

func rubricsValidate() *cobra.Command {
	var format, column string
	c := &cobra.Command{
		Use:   "validate FILE",
		Short: "Check the rubric in a JSON file, or those in the rows of a JSONL file",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			path := args[0]
			if strings.EqualFold(filepath.Ext(path), ".jsonl") {
				rows, err := validateRows(path, format, column)
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(c.OutOrStdout(), "%s: %d rubrics, all good\n", path, rows)
				return err
			}
			if column != "" {
				return errors.New("--column is for the rows of a JSONL file: rename the file, or leave the flag out")
			}
			s, err := criteria.Load(path, format)
			if err == nil {
				err = validateChecks(s)
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%s: %d criteria, good\n", path, s.Len())
			return err
		},
	}
	c.Flags().StringVar(&format, "format", "auto", "form of the file: "+strings.Join(criteria.Formats(), ", "))
	c.Flags().StringVar(&column, "column", "", "column of a row that holds its rubric (default: the row is the rubric)")
	return c
}

func rubricsSchema() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of a rubric file",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(c.OutOrStdout(), string(criteria.Schema()))
			return err
		},
	}
}

// isDir reports whether path is a folder.
func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
