package policy

import (
	"fmt"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// weightType is the type of a weight that is made of the named tensors, one or those of a fusion; stored is their own.
func (o LoadOptions) weightType(stored func(name string) device.DType, names ...string) device.DType {
	inLayers := names[0] != EmbedName && names[0] != HeadName
	switch {
	case o.DType == "bfloat16":
		return device.BFloat16
	case o.DType == "float32" || o.Train == "full":
		return device.Float32
	case o.quantised() && !inLayers:
		return device.BFloat16
	case o.DType == "int8":
		return device.Int8
	case o.DType == "int4":
		return device.Int4
	}
	t := stored(names[0])
	for _, name := range names[1:] { // bfloat16 holds what either of two smaller types does
		if other := stored(name); other == device.Float32 || t == device.Float32 {
			t = device.Float32
		} else if other != t {
			t = device.BFloat16
		}
	}
	if o.DType == "auto16" && t == device.Float32 {
		return device.BFloat16
	}
	return t
}

// quantised reports whether the layers' matrices are to be quantised.
func (o LoadOptions) quantised() bool { return o.DType == "int8" || o.DType == "int4" }

func (o LoadOptions) check() error {
	switch o.DType {
	case "", "auto", "auto16", "float32", "bfloat16", "int8", "int4":
	default:
		return fmt.Errorf("policy: dtype %q is unknown; use auto, float32, bfloat16, int8 or int4", o.DType)
	}
	switch {
	case o.Train == "full" && o.quantised():
		return fmt.Errorf("policy: weights kept as %s cannot be trained: use float32 or bfloat16, or train an adapter (lora)", o.DType)
	case o.Train == "", o.Train == "lora", o.Train == "full":
		return nil
	}
	return fmt.Errorf("policy: cannot train %q; use lora or full", o.Train)
}

// weightSize is a weight's type and shape.
type weightSize struct {
	dtype device.DType
	n, k  int
}

// weightSizes are the weights of a model: its embedding, its head unless that is tied, and the fusions of every layer.
func (c Config) weightSizes(o LoadOptions, stored func(name string) device.DType) []weightSize {
	list := []weightSize{{o.weightType(stored, EmbedName), c.Vocab, c.Width}}
	if !c.Tied {
		list = append(list, weightSize{o.weightType(stored, HeadName), c.Vocab, c.Width})
	}
	for l := range c.Layers {
		for _, ps := range fusions {
			n, k := c.fusedShape(ps)
			list = append(list, weightSize{o.weightType(stored, fusedNames(l, ps)...), n, k})
		}
	}
	return list
}
