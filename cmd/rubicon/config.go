package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rubicon-rl/rubicon/configs"
)

func configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show and check configurations",
		Long: "Show and check configurations. A configuration is files (-c), then RUBICON_SECTION_KEY environment variables, then " +
			"key=value arguments; what comes later wins. The names of TRL's GRPOConfig and ModelConfig are accepted as well, and " +
			"so are those of verl and OpenRLHF.",
	}
	cmd.AddCommand(configPrintCommand(), configCheckCommand(), configSchemaCommand(), configFromTRLCommand(), configFromVerlCommand())
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

func configFromTRLCommand() *cobra.Command {
	var gpus int
	cmd := &cobra.Command{
		Use:   "from-trl [FILE] [key=value ...]",
		Short: "Make a configuration of one of TRL's GRPOConfig",
		Long: "Makes a configuration of a YAML or JSON file with the names of TRL's GRPOConfig, of its scripts' arguments and of PEFT's LoraConfig, " +
			"and of key=value arguments, which win. TRL's defaults hold for what is not written. What has no equal here is listed at the end.",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if gpus < 1 {
				return fmt.Errorf("--gpus is %d: give the number of GPUs on which TRL ran", gpus)
			}
			return convert(cmd, args, gpus, configs.FromTRL)
		},
	}
	cmd.Flags().IntVar(&gpus, "gpus", 1, "on how many GPUs TRL ran: its batches are per GPU")
	return cmd
}

func configFromVerlCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "from-verl [FILE] [key=value ...]",
		Short: "Make a configuration of one of verl's main_ppo",
		Long: "Makes a configuration of what Hydra composed for verl's main_ppo (outputs/DATE/TIME/.hydra/config.yaml), and of key=value arguments as " +
			"they stand behind python3 -m verl.trainer.main_ppo, which win. verl's defaults hold for what is not written. What has no " +
			"equal here is listed at the end.",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return convert(cmd, args, 1, configs.FromVerl)
		},
	}
}

// convert prints the configuration that another framework's means; notes about it go to stderr.
func convert(cmd *cobra.Command, args []string, gpus int, from func(configs.Source) (*configs.Conversion, error)) (err error) {
	src := configs.Source{Overrides: args, GPUs: gpus}
	if !strings.Contains(args[0], "=") {
		src.Name, src.Overrides = args[0], args[1:]
		if src.Data, err = os.ReadFile(src.Name); err != nil {
			return err
		}
	}
	c, err := from(src)
	if err != nil {
		return err
	}
	for _, n := range c.Ignored {
		fmt.Fprintf(cmd.ErrOrStderr(), "note: %s\n", n)
	}
	if c.Batches != nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "the batches do not fit together yet: %v\n", c.Batches)
	}
	if n := len(c.Missing); n > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "%d settings have no equal here: they stand at the end of the file, with what to do\n", n)
	}
	_, err = cmd.OutOrStdout().Write(c.YAML)
	return err
}

func addConfigFlag(cmd *cobra.Command, files *[]string) {
	cmd.Flags().StringArrayVarP(files, "config", "c", nil, "configuration file; a later one wins key by key")
	cmd.ValidArgsFunction = completeKeys
}

// completeKeys completes key=value arguments in a shell.
func completeKeys(_ *cobra.Command, _ []string, text string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return configs.Complete(text), cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
}
