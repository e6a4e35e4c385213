package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/rubicon-rl/rubicon/internal/cpu"
)

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version and what this machine computes with",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			version := "unknown"
			if info, ok := debug.ReadBuildInfo(); ok {
				version = info.Main.Version
				for _, s := range info.Settings {
					if s.Key == "vcs.revision" {
						version += " " + s.Value
					}
				}
			}
			dev, err := cpu.New(cpu.Options{})
			if err != nil {
				return err
			}
			defer dev.Close()
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "rubicon %s, %s %s/%s, %s\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH, dev.Info().Name)
			return err
		},
	}
}
