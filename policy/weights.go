package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rubicon-rl/rubicon/policy/safetensors"
)

// Names of the tensors outside the layers.
const (
	EmbedName = "model.embed_tokens.weight"
	NormName  = "model.norm.weight"
	HeadName  = "lm_head.weight"
)

// Parameter is a tensor that a model of some Config has.
type Parameter struct {
	Name  string
	Shape []int
}

// Size is the number of weights of a model.
func (c Config) Size() int {
	n := 0
	for _, p := range c.Parameters() {
		n += elements(p.Shape)
	}
	return n
}

// Parameters lists the tensors of a model folder in transformers' order: embedding, layers, norm, head (if untied).
func (c Config) Parameters() []Parameter {
	list := []Parameter{{EmbedName, []int{c.Vocab, c.Width}}}
	for l := range c.Layers {
		for _, p := range c.layerParameters() {
			list = append(list, Parameter{inLayer(l, p.Name), p.Shape})
		}
	}
	list = append(list, Parameter{NormName, []int{c.Width}})
	if !c.Tied {
		list = append(list, Parameter{HeadName, []int{c.Vocab, c.Width}})
	}
	return list
}

// layerParameters are those of one layer, without the "model.layers.N." in front.
func (c Config) layerParameters() []Parameter {
	var list []Parameter
	for _, p := range Projections() {
		in, out := c.ProjectionSize(p)
		list = append(list, Parameter{p.Path() + ".weight", []int{out, in}})
		if c.hasBias(p) {
			list = append(list, Parameter{p.Path() + ".bias", []int{out}})
		}
		if p == O && c.QKNorm() {
			list = append(list, Parameter{qNormName, []int{c.HeadDim}}, Parameter{kNormName, []int{c.HeadDim}})
		}
	}
	return append(list, Parameter{attnNormName, []int{c.Width}}, Parameter{mlpNormName, []int{c.Width}})
}

// Projection is one of a layer's seven matrices.
type Projection uint8

// The projections in transformers' order.
const (
	Q Projection = iota
	K
	V
	O
	Gate
	Up
	Down
)

// Projections lists all seven.
func Projections() []Projection { return []Projection{Q, K, V, O, Gate, Up, Down} }

// String is the projection's name in transformers: q_proj, ..., down_proj.
func (p Projection) String() string {
	return [...]string{"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}[p]
}

// Path is its place in a layer: self_attn.q_proj, ..., mlp.down_proj.
func (p Projection) Path() string {
	if p <= O {
		return "self_attn." + p.String()
	}
	return "mlp." + p.String()
}

// ProjectionSize is the input and output width of a projection.
func (c Config) ProjectionSize(p Projection) (in, out int) {
	switch p {
	case Q:
		return c.Width, c.Heads * c.HeadDim
	case K, V:
		return c.Width, c.KVHeads * c.HeadDim
	case O:
		return c.Heads * c.HeadDim, c.Width
	case Gate, Up:
		return c.Width, c.Hidden
	default:
		return c.Hidden, c.Width
	}
}

func (c Config) hasBias(p Projection) bool {
	switch p {
	case Q, K, V:
		return c.QKVBias
	case O:
		return c.OutBias
	default:
		return c.MLPBias
	}
}

// CheckWeights compares the tensors of a folder with those that c needs: a missing, surplus or mis-shaped one, or one
// that is not F32, BF16 or F16, is an error that names it. A head stored beside a tied embedding and the rotary
// buffers of old checkpoints are passed over, as transformers does.
func (c Config) CheckWeights(set *safetensors.Set) error {
	known := map[string]bool{}
	var missing, wrong, surplus []string
	for _, p := range c.Parameters() {
		known[p.Name] = true
		t, ok := set.Tensor(p.Name)
		switch {
		case !ok:
			missing = append(missing, p.Name)
		case !slices.Equal(t.Shape, p.Shape):
			wrong = append(wrong, fmt.Sprintf("%s has shape %v, config.json asks for %v", p.Name, t.Shape, p.Shape))
		case t.DType != safetensors.F32 && t.DType != safetensors.BF16 && t.DType != safetensors.F16:
			wrong = append(wrong, fmt.Sprintf("%s is %s; supported: F32, BF16, F16", p.Name, t.DType))
		}
	}
	for _, name := range set.Names() {
		if !known[name] && !(c.Tied && name == HeadName) && !strings.HasSuffix(name, ".rotary_emb.inv_freq") {
			surplus = append(surplus, name)
		}
	}
	for _, f := range []struct {
		what  string
		names []string
	}{{"missing: ", missing}, {"", wrong}, {c.Arch.Causal() + " does not have: ", surplus}} {
		if n := len(f.names); n > 0 {
			text := strings.Join(f.names[:min(n, 5)], ", ")
			if n > 5 {
				text += fmt.Sprintf(" and %d more", n-5)
			}
			return fmt.Errorf("the tensors in %s do not fit its config.json: %s%s", set.Dir, f.what, text)
		}
	}
	return nil
}
