package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rubicon-rl/rubicon/policy"
	"github.com/rubicon-rl/rubicon/policy/gguf"
	"github.com/rubicon-rl/rubicon/trainer"
)

func importCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "import", Short: "Make a Hugging Face folder of a model in another format"}
	cmd.AddCommand(&cobra.Command{
		Use:   "gguf FILE DIR",
		Short: "Import a GGUF file (F32, F16, BF16, Q8_0, Q4_1) as float32, tokenizer included",
		Args:  cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := gguf.Import(args[0], args[1]); err != nil {
				return err
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), args[1])
			return err
		},
	})
	return cmd
}

func exportCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "export", Short: "Write a model for other programs"}
	var base, adapter, dtype string
	merged := &cobra.Command{
		Use:   "merged --model DIR --adapter DIR OUT",
		Short: "Write the model with the adapter merged into its weights, as a whole Hugging Face folder",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := modelDir(base)
			if err != nil {
				return err
			}
			origin, err := policy.Fingerprint(dir)
			if err == nil {
				err = trainer.CheckAdapter(adapter, origin)
			}
			if err != nil {
				return err
			}
			if err := policy.ExportMerged(dir, adapter, args[0], policy.ExportOptions{DType: dtype}); err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), args[0])
			return err
		},
	}
	merged.Flags().StringVar(&base, "model", "", "Hugging Face folder of the model, or embedded:quickstart")
	merged.Flags().StringVar(&adapter, "adapter", "", "PEFT folder of the adapter; a checkpoint of a run is one")
	merged.Flags().StringVar(&dtype, "dtype", "", "type of the weights written: float32, bfloat16, float16; default: as stored")
	merged.MarkFlagRequired("model")
	merged.MarkFlagRequired("adapter")
	cmd.AddCommand(merged)
	return cmd
}
