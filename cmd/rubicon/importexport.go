package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

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
	cmd.AddCommand(exportMergedCommand(), exportGGUFCommand())
	return cmd
}

const modelUsage = "Hugging Face folder of the model, a GGUF file, ORG/NAME that rubicon pull fetched, or embedded:quickstart"

func exportMergedCommand() *cobra.Command {
	var base, adapter, dtype string
	cmd := &cobra.Command{
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
	cmd.Flags().StringVar(&base, "model", "", modelUsage)
	cmd.Flags().StringVar(&adapter, "adapter", "", "PEFT folder of the adapter; a checkpoint of a run is one")
	cmd.Flags().StringVar(&dtype, "dtype", "", "type of the weights written: float32, bfloat16, float16; default: as stored, bfloat16 for quantised ones")
	cmd.MarkFlagRequired("model")
	cmd.MarkFlagRequired("adapter")
	return cmd
}

func exportGGUFCommand() *cobra.Command {
	var base, adapter, dtype string
	cmd := &cobra.Command{
		Use:   "gguf --model DIR [--adapter DIR] OUT.gguf",
		Short: "Write the model, with the adapter merged into its weights, as a GGUF file for llama.cpp, tokenizer included",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := exportGGUF(base, adapter, args[0], dtype); err != nil {
				return err
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), args[0])
			return err
		},
	}
	cmd.Flags().StringVar(&base, "model", "", modelUsage)
	cmd.Flags().StringVar(&adapter, "adapter", "", "PEFT folder of an adapter to merge; a checkpoint of a run is one")
	cmd.Flags().StringVar(&dtype, "type", "f16", "type of the matrices: "+strings.Join(gguf.ExportTypes(), ", "))
	cmd.MarkFlagRequired("model")
	return cmd
}

func exportGGUF(base, adapter, out, dtype string) (err error) {
	files, err := openFiles(base)
	if err != nil {
		return err
	}
	defer closing(&err, files.close)
	src, err := files.source()
	if err != nil {
		return err
	}
	tokenizer, err := files.tokenizerFiles()
	if err != nil {
		return err
	}
	if adapter != "" {
		if err := trainer.CheckAdapter(adapter, policy.Fingerprint(src)); err != nil {
			return err
		}
	}
	merged, err := policy.Merge(src, adapter)
	if err != nil {
		return err
	}
	return gguf.Export(out, merged, tokenizer, dtype)
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
