package gguf

import (
	"encoding/binary"
	"math"

	"github.com/rubicon-rl/rubicon/policy/gguf/gguftest"
)

// builder makes GGUF files for tests.
type builder struct{ *gguftest.File }

func newBuilder() *builder { return &builder{gguftest.New()} }

func (b *builder) add(name string, t Type, shape []int, data []byte) {
	b.Tensors = append(b.Tensors, gguftest.Tensor{Name: name, Type: uint32(t), Shape: shape, Data: data})
}

// floats are values as F32.
func floats(values ...float32) []byte {
	var b []byte
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}
