package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/rubicon-rl/rubicon/policy"
	"github.com/rubicon-rl/rubicon/policy/gguf"
	"github.com/rubicon-rl/rubicon/trainer"
)

func importCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "import", Short: "Make a Hugging Face folder of a model in another format"}
	var dtype string
	file := &cobra.Command{
		Use:   "gguf FILE DIR",
		Short: "Import a GGUF file (F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q4_K, Q6_K), tokenizer included",
		Args:  cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := gguf.Import(args[0], args[1], dtype); err != nil {
				return err
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), args[1])
			return err
		},
	}
	file.Flags().StringVar(&dtype, "dtype", "float32", "type of the weights written: float32; bfloat16; auto: bfloat16 for those that are quantised, whose values in training it holds, float32 for others that are not bfloat16")
	cmd.AddCommand(file)
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
			if err := exportMerged(base, adapter, args[0], dtype); err != nil {
				return err
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), args[0])
			return err
		},
	}
	merged.Flags().StringVar(&base, "model", "", "Hugging Face folder of the model, a GGUF file, ORG/NAME that rubicon pull fetched, or embedded:quickstart")
	merged.Flags().StringVar(&adapter, "adapter", "", "PEFT folder of the adapter; a checkpoint of a run is one")
	merged.Flags().StringVar(&dtype, "dtype", "", "type of the weights written: float32, bfloat16, float16; default: as stored, bfloat16 for quantised ones")
	merged.MarkFlagRequired("model")
	merged.MarkFlagRequired("adapter")
	cmd.AddCommand(merged)
	return cmd
}

// exportMerged imports a GGUF file into a temporary folder first.
func exportMerged(base, adapter, out, dtype string) error {
	files, err := openFiles(base)
	if err != nil {
		return err
	}
	defer files.close()
	origin, err := files.fingerprint()
	if err == nil {
		err = trainer.CheckAdapter(adapter, origin)
	}
	if err != nil {
		return err
	}
	dir := files.path
	if files.gguf != nil {
		tmp, err := os.MkdirTemp("", "rubicon-export-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(tmp)
		dir = filepath.Join(tmp, "model")
		if err := gguf.Import(files.path, dir, "auto"); err != nil {
			return err
		}
	}
	return policy.ExportMerged(dir, adapter, out, policy.ExportOptions{DType: dtype})
}
