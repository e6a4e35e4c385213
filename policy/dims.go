package policy

import "math"

// dims are a Config's sizes as the layers use them.
type dims struct {
	Config
	qWidth, kvWidth int // H·hd, KV·hd
	eps, scale      float32
}

func newDims(c Config) dims {
	return dims{
		Config: c, qWidth: c.Heads * c.HeadDim, kvWidth: c.KVHeads * c.HeadDim,
		eps: float32(c.NormEps), scale: float32(1 / math.Sqrt(float64(c.HeadDim))),
	}
}

// fusions are the projections that are computed as one product.
var fusions = [...][]Projection{fuseQKV: {Q, K, V}, fuseOut: {O}, fuseGateUp: {Gate, Up}, fuseDown: {Down}}

const (
	fuseQKV = iota
	fuseOut
	fuseGateUp
	fuseDown
)

// fusedShape is the shape [N,K] of some projections' matrices on top of each other.
func (c Config) fusedShape(ps []Projection) (n, k int) {
	for _, p := range ps {
		in, out := c.ProjectionSize(p)
		n, k = n+out, in
	}
	return n, k
}

// fusedNames are the names of layer l's matrices of some projections.
func fusedNames(l int, ps []Projection) []string {
	var names []string
	for _, p := range ps {
		names = append(names, inLayer(l, p.Path()+".weight"))
	}
	return names
}
