package main

import (
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func manCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write the manual pages of all commands into a folder",
		Long: `Writes a manual page of section 1 for every command into DIR, which may be read by man -l DIR/rubicon-train.1, or be a folder man1 of MANPATH.
rubicon completion writes completions for shells.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			root := cmd.Root()
			root.InitDefaultCompletionCmd()
			for _, c := range append(root.Commands(), root) {
				undated(c)
			}
			h := &doc.GenManHeader{Section: "1", Source: "rubicon", Manual: "Rubicon manual", Date: commitTime(debug.ReadBuildInfo())}
			if err := doc.GenManTree(root, h, args[0]); err != nil {
				return fmt.Errorf("write manual pages: %w", err)
			}
			return nil
		},
	}
}

// undated leaves the day on which pages are written out of them, so that equal programs write equal pages.
func undated(c *cobra.Command) {
	c.DisableAutoGenTag = true
	for _, sub := range c.Commands() {
		undated(sub)
	}
}

// commitTime is when the program's source was committed; nil if the program does not know: its pages then have today's date.
func commitTime(info *debug.BuildInfo, ok bool) *time.Time {
	if !ok {
		return nil
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.time" {
			if t, err := time.Parse(time.RFC3339, s.Value); err == nil {
				return &t
			}
		}
	}
	return nil
}
