package main

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/rubicon-rl/rubicon/policy/safetensors"
)

// store writes the weights of a trained model's folder into dir, as bfloat16: half the size, and the rounding costs the
// model nothing that can be measured.
func store(model, dir string) error {
	set, err := safetensors.OpenDir(model)
	if err != nil {
		return err
	}
	defer set.Close()
	var items []safetensors.Item
	for _, name := range set.Names() {
		t, _ := set.Tensor(name)
		items = append(items, safetensors.Item{Name: name, DType: safetensors.BF16, Shape: t.Shape, Write: func(w io.Writer) error {
			values := make([]float32, t.Len())
			if err := t.Float32s(values); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			return safetensors.Encode(w, safetensors.BF16, values)
		}})
	}
	return safetensors.Write(filepath.Join(dir, "model.safetensors"), items, safetensors.Options{})
}
