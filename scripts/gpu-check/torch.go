package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
)

// torchReport has rates in tokens a second.
type torchReport struct {
	Shape   string  `json:"shape"`
	Forward float64 `json:"forward"`
	Train   float64 `json:"train"`
}

//go:embed torch.py
var torchProgram string

// torch measures the same shapes in torch and transformers, if there is a Python that has them.
func torch(ctx context.Context, m *machine, r *report) error {
	if m.tiny {
		return errors.New(notDone + ": the device is not a GPU")
	}
	if exec.CommandContext(ctx, "python3", "-c", "import torch, transformers; assert torch.cuda.is_available()").Run() != nil {
		return errors.New(notDone + ": python3 has no torch with CUDA, or no transformers")
	}
	for _, s := range shapes(false) {
		c := s.config
		order, err := json.Marshal(map[string]any{
			"arch": c.Arch, "hidden_size": c.Width, "intermediate_size": c.Hidden, "num_hidden_layers": c.Layers, "num_attention_heads": c.Heads,
			"num_key_value_heads": c.KVHeads, "head_dim": c.HeadDim, "vocab_size": c.Vocab, "tie_word_embeddings": c.Tied,
			"sequences": s.sequences, "length": s.length, "rank": lora().R,
		})
		if err != nil {
			return err
		}
		var out, errs bytes.Buffer
		p := exec.CommandContext(ctx, "python3", "-c", torchProgram)
		p.Stdin, p.Stdout, p.Stderr = bytes.NewReader(order), &out, &errs
		if err := p.Run(); err != nil {
			return fmt.Errorf("%s: %w\n%s", s.name, err, errs.String())
		}
		t := torchReport{Shape: s.name}
		if err := json.Unmarshal(out.Bytes(), &t); err != nil {
			return err
		}
		r.Torch = append(r.Torch, t)
	}
	return nil
}
