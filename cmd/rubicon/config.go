package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rubicon-rl/rubicon/configs"
)

func configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show and check configurations",
		Long: "Show and check configurations. A configuration is files (-c), then RUBICON_SECTION_KEY environment variables, then " +
			"key=value arguments; what comes later wins. The names of TRL's GRPOConfig and ModelConfig are accepted as well.",
	}
	cmd.AddCommand(configPrintCommand(), configCheckCommand(), configSchemaCommand())
	return cmd
}

func configPrintCommand() *cobra.Command {
	var files []string
	cmd := &cobra.Command{
		Use:   "print [-c FILE ...] [key=value ...]",
		Short: "Print every key with its value and meaning, as a file that may be used with -c",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := loadConfig(files, args, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			return configs.Print(cmd.OutOrStdout(), c)
		},
	}
	addConfigFlag(cmd, &files)
	return cmd
}

func configCheckCommand() *cobra.Command {
	var files []string
	cmd := &cobra.Command{
		Use:   "check [-c FILE ...] [key=value ...]",
		Short: "Report everything that is wrong with a configuration, and the arithmetic of its batches",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := loadConfig(files, args, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			b, err := c.Batching(1)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "ok: %s\n", b)
			return nil
		},
	}
	addConfigFlag(cmd, &files)
	return cmd
}

func configSchemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of configuration files",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return configs.Schema(cmd.OutOrStdout())
		},
	}
}

func addConfigFlag(cmd *cobra.Command, files *[]string) {
	cmd.Flags().StringArrayVarP(files, "config", "c", nil, "configuration file; a later one wins key by key")
	cmd.ValidArgsFunction = completeKeys
}

// completeKeys completes key=value arguments in a shell.
func completeKeys(_ *cobra.Command, _ []string, text string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return configs.Complete(text), cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
}
