package minilm

import (
	"errors"
	"fmt"
	"slices"

	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/policy/safetensors"
)

// net is the encoder's weights on a device. D width, F inner width, T tokens of a batch.
type net struct {
	cfg       *config
	dev       device.Device
	words     []float32 // [V,D]
	positions []float32 // [P,D]
	kind      []float32 // [D] of the token type 0, which all tokens have
	norm      layerNorm
	layers    []layer
	mems      []device.Mem
	weights   []device.Weight
}

// layer is one block: attention and a network of two layers, each followed by its norm.
type layer struct {
	qkv, out, up, down device.Linear
	attention, output  layerNorm
}

// loader reads tensors; the first error stays.
type loader struct {
	*net
	set    *safetensors.Set
	prefix string // of the tensors' names
	err    error
}

func loadNet(set *safetensors.Set, cfg *config, dev device.Device) (*net, error) {
	n := &net{cfg: cfg, dev: dev}
	l := &loader{net: n, set: set}
	if _, ok := set.Tensor("bert.embeddings.word_embeddings.weight"); ok {
		l.prefix = "bert."
	}
	n.words = l.tensor("embeddings.word_embeddings.weight", cfg.VocabSize, cfg.Width)
	n.positions = l.tensor("embeddings.position_embeddings.weight", cfg.MaxTokens, cfg.Width)
	n.kind = l.tensor("embeddings.token_type_embeddings.weight", cfg.TokenTypes, cfg.Width)
	n.norm = l.layerNorm("embeddings.LayerNorm")
	for i := range cfg.Layers {
		at := fmt.Sprintf("encoder.layer.%d.", i)
		self := at + "attention.self."
		n.layers = append(n.layers, layer{
			qkv:       l.linear(cfg.Width, cfg.Width, self+"query", self+"key", self+"value"),
			out:       l.linear(cfg.Width, cfg.Width, at+"attention.output.dense"),
			up:        l.linear(cfg.Inner, cfg.Width, at+"intermediate.dense"),
			down:      l.linear(cfg.Width, cfg.Inner, at+"output.dense"),
			attention: l.layerNorm(at + "attention.output.LayerNorm"),
			output:    l.layerNorm(at + "output.LayerNorm"),
		})
	}
	if err := errors.Join(l.err, dev.Err()); err != nil {
		n.free()
		return nil, err
	}
	return n, nil
}

// tensor reads a tensor of a shape.
func (l *loader) tensor(name string, shape ...int) []float32 {
	t, ok := l.set.Tensor(l.prefix + name)
	switch {
	case l.err != nil:
	case !ok:
		l.err = fmt.Errorf("the weights have no tensor %q", l.prefix+name)
	case !slices.Equal(t.Shape, shape):
		l.err = fmt.Errorf("tensor %q has the shape %v, config.json says %v", l.prefix+name, t.Shape, shape)
	default:
		values := make([]float32, t.Len())
		l.err = t.Float32s(values)
		return values
	}
	return nil
}

// linear reads products of [rows, cols] and makes one of them, their outputs beside each other.
func (l *loader) linear(rows, cols int, names ...string) device.Linear {
	var bias []float32
	w := l.weight(rows*len(names), cols)
	for i, name := range names {
		values := l.tensor(name+".weight", rows, cols)
		bias = append(bias, l.tensor(name+".bias", rows)...)
		if l.err == nil {
			l.err = l.dev.LoadWeight(w, i*rows, values)
		}
	}
	mem := l.mem(device.F32, rows*len(names))
	if l.err != nil {
		return device.Linear{}
	}
	l.dev.Upload(mem, 0, bias)
	return device.Linear{W: w, Bias: device.View(mem, 1, len(bias))}
}

func (l *loader) weight(n, k int) device.Weight {
	if l.err != nil {
		return nil
	}
	w, err := l.dev.NewWeight(device.Float32, n, k)
	if err != nil {
		l.err = err
		return nil
	}
	l.weights = append(l.weights, w)
	return w
}

func (l *loader) mem(k device.Kind, n int) device.Mem {
	if l.err != nil {
		return nil
	}
	mem, err := l.dev.Alloc(k, n)
	if err != nil {
		l.err = err
		return nil
	}
	l.mems = append(l.mems, mem)
	return mem
}

func (l *loader) layerNorm(name string) layerNorm {
	return layerNorm{l.tensor(name+".weight", l.cfg.Width), l.tensor(name+".bias", l.cfg.Width), l.cfg.Eps}
}

// free gives the device's memory back.
func (n *net) free() {
	for _, w := range n.weights {
		n.dev.FreeWeight(w)
	}
	for _, m := range n.mems {
		n.dev.Free(m)
	}
	n.weights, n.mems, n.layers = nil, nil, nil
}
