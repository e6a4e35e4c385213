package policy

import (
	"fmt"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// catalog is a flat vector's table of contents: where each of its tensors lies.
type catalog struct {
	tensors []Parameter
	offsets []int
	index   map[string]int
	total   int
}

func newCatalog(tensors []Parameter) *catalog {
	c := &catalog{tensors: tensors, offsets: make([]int, len(tensors)), index: make(map[string]int, len(tensors))}
	for i, t := range tensors {
		c.offsets[i] = c.total
		c.index[t.Name] = i
		c.total += elements(t.Shape)
	}
	return c
}

func elements(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// at views the rows of the named tensor and of those that follow it in mem, laid out by c, as one [rows, cols] matrix.
// It is absent if c does not hold the tensor.
func (c *catalog) at(mem device.Mem, name string, rows, cols int) device.Mat {
	i, ok := c.index[name]
	if !ok || mem == nil {
		return device.Mat{}
	}
	return device.Mat{Mem: mem, Off: c.offsets[i], Rows: rows, Cols: cols, Stride: cols}
}

// flatOrder lists c.Parameters in an order in which the matrices of a fusion follow each other, and so do its biases.
func (c Config) flatOrder() []Parameter {
	shapes := map[string][]int{}
	for _, p := range c.Parameters() {
		shapes[p.Name] = p.Shape
	}
	var list []Parameter
	add := func(names ...string) {
		for _, name := range names {
			if shape, ok := shapes[name]; ok {
				list = append(list, Parameter{name, shape})
			}
		}
	}
	add(EmbedName)
	for l := range c.Layers {
		for _, ps := range fusions {
			add(fusedNames(l, ps)...)
			for _, p := range ps {
				add(inLayer(l, p.Path()+".bias"))
			}
		}
		add(inLayer(l, qNormName), inLayer(l, kNormName), inLayer(l, attnNormName), inLayer(l, mlpNormName))
	}
	add(NormName, HeadName)
	return list
}

// inLayer is the full name of a tensor of layer l.
func inLayer(l int, name string) string { return fmt.Sprintf("model.layers.%d.%s", l, name) }

// Names of a layer's vectors.
const (
	attnNormName = "input_layernorm.weight"
	mlpNormName  = "post_attention_layernorm.weight"
	qNormName    = "self_attn.q_norm.weight"
	kNormName    = "self_attn.k_norm.weight"
)

// leaves are the parameters of a model, or their gradients, as the operations want them. What the vector that they lie
// in does not hold is absent.
type leaves struct {
	embed, norm, head device.Mat
	layers            []layerLeaves
}

type layerLeaves struct {
	attnNorm, mlpNorm, qNorm, kNorm device.Mat
	fused                           [len(fusions)]fusedLeaves
}

// fusedLeaves are a fused projection's matrix [N,K] and biases [1,N].
type fusedLeaves struct{ w, bias device.Mat }

// leaves finds a model's parameters in mem, a vector laid out by t.
func (c Config) leaves(t *catalog, mem device.Mem) leaves {
	v := leaves{
		embed:  t.at(mem, EmbedName, c.Vocab, c.Width),
		norm:   t.at(mem, NormName, 1, c.Width),
		head:   t.at(mem, HeadName, c.Vocab, c.Width),
		layers: make([]layerLeaves, c.Layers),
	}
	if c.Tied {
		v.head = v.embed
	}
	for i := range v.layers {
		l := &v.layers[i]
		l.attnNorm = t.at(mem, inLayer(i, attnNormName), 1, c.Width)
		l.mlpNorm = t.at(mem, inLayer(i, mlpNormName), 1, c.Width)
		l.qNorm = t.at(mem, inLayer(i, qNormName), 1, c.HeadDim)
		l.kNorm = t.at(mem, inLayer(i, kNormName), 1, c.HeadDim)
		for f, ps := range fusions {
			n, k := c.fusedShape(ps)
			l.fused[f].w = t.at(mem, inLayer(i, ps[0].Path()+".weight"), n, k)
			l.fused[f].bias = t.at(mem, inLayer(i, ps[0].Path()+".bias"), 1, n)
		}
	}
	return v
}

// layer returns the leaves of layer l; of nil leaves (nothing is trained) all are absent.
func (v *leaves) layer(l int) layerLeaves {
	if v == nil {
		return layerLeaves{}
	}
	return v.layers[l]
}

// finalNorm is norm, absent of nil leaves.
func (v *leaves) finalNorm() device.Mat {
	if v == nil {
		return device.Mat{}
	}
	return v.norm
}

// headWeight is head, absent of nil leaves.
func (v *leaves) headWeight() device.Mat {
	if v == nil {
		return device.Mat{}
	}
	return v.head
}
