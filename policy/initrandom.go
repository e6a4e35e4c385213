package policy

import (
	"fmt"
	"io"
	"strings"

	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/internal/folder"
	"github.com/rubicon-rl/rubicon/policy/safetensors"
)

// InitRandom writes the folder of a new model (float32 weights and configuration; the tokenizer is the caller's to add):
// matrices normal with standard deviation std, biases 0, norms 1, as transformers' _init_weights, but the embedding of
// the padding token is drawn like any other, since it often is an end-of-sequence token too. The same seed gives the
// same bytes on machines of one kind, and the model that New makes. dir must not exist, or be empty.
func InitRandom(dir string, c Config, seed uint64, std float64) error {
	c.InitStd, c.DType = std, "float32"
	if err := c.check(); err != nil {
		return fmt.Errorf("make a new model: %w", err)
	}
	var items []safetensors.Item
	for i, p := range c.Parameters() {
		items = append(items, safetensors.Item{Name: p.Name, DType: safetensors.F32, Shape: p.Shape, Write: func(w io.Writer) error {
			return safetensors.Encode(w, safetensors.F32, c.initial(i, p, seed))
		}})
	}
	err := folder.Build(dir, func(partial string) error {
		if err := WriteConfig(partial, c); err != nil {
			return err
		}
		return safetensors.WriteDir(partial, items, safetensors.Options{MaxShard: defaultShard})
	})
	if err != nil {
		return fmt.Errorf("make a new model: %w", err)
	}
	return nil
}

// initial is a new model's value of p, the i-th of its Parameters.
func (c Config) initial(i int, p Parameter, seed uint64) []float32 {
	values := make([]float32, elements(p.Shape))
	switch {
	case len(p.Shape) == 2:
		normal(values, c.InitStd, device.NewKey(seed, uint64(i)))
	case !strings.HasSuffix(p.Name, ".bias"):
		for j := range values {
			values[j] = 1
		}
	}
	return values
}
