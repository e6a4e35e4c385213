package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/rubicon-rl/rubicon/internal/hub"
)

func pullCommand() *cobra.Command {
	var dataset bool
	var want hub.Selection
	var jobs int
	cmd := &cobra.Command{
		Use:   "pull ORG/NAME[@revision]",
		Short: "Download a model from the Hugging Face hub",
		Long: `Downloads what a model needs (configuration, tokenizer, safetensors) into the cache that transformers uses too, and prints its
folder. After that model.path: ORG/NAME finds it. A download that was cut goes on where it stopped; every file is checked
against the size and the hash that the hub names.

Environment: HF_TOKEN for private and gated models, HF_ENDPOINT for another hub, HF_HOME or HF_HUB_CACHE for the place of the
cache, HF_HUB_OFFLINE=1 to ask no server.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			repo, err := hub.ParseRepo(args[0])
			if err != nil {
				return err
			}
			repo.Dataset = dataset
			o, err := hubOptions(jobs, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			client := hub.New(o)
			defer client.Close()
			dir, err := client.Pull(cmd.Context(), repo, want)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), dir)
			return err
		},
	}
	cmd.Flags().BoolVar(&dataset, "dataset", false, "a data set, not a model (its Parquet, JSON and CSV files)")
	cmd.Flags().StringArrayVar(&want.Include, "include", nil, "pattern of files that are wanted instead of the usual ones; * goes over slashes too")
	cmd.Flags().StringArrayVar(&want.Exclude, "exclude", nil, "pattern of files that are not wanted")
	cmd.Flags().IntVar(&jobs, "jobs", hub.DefaultOptions().Jobs, "files that are downloaded at a time")
	return cmd
}

// hubOptions are what the environment says of the hub, for a command that writes lines to w.
func hubOptions(jobs int, w io.Writer) (hub.Options, error) {
	if jobs < 1 || jobs > 64 {
		return hub.Options{}, fmt.Errorf("--jobs is %d: give 1 to 64", jobs)
	}
	o, err := hub.FromEnv(os.Getenv)
	o.Jobs, o.Console = jobs, w
	return o, err
}
