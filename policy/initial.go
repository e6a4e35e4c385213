package policy

import (
	"strings"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// initial is a new model's value of p, the i-th of its Parameters, as transformers' _init_weights; but the embedding of the
// padding token is drawn like any other, since it often is an end-of-sequence token too.
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
