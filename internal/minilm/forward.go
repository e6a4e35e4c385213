package minilm

import (
	"errors"
	"math"
	"runtime"
	"sync"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// pass is the memory of one batch.
type pass struct {
	*net
	t                        int
	x, qkv, attended, y, mid device.Mat
	attention                device.Attention
	host                     []float32 // [T,D] the residual stream
	spare                    []float32 // [T,max(D,F)]
}

// embed returns the unit vector of each text, given as ids.
func (n *net) embed(texts [][]int32) ([][]float32, error) {
	if n.layers == nil {
		return nil, errors.New("the encoder is closed")
	}
	p, free, err := n.begin(texts)
	defer free()
	if err != nil {
		return nil, err
	}
	for i := range n.layers {
		if err := p.layer(&n.layers[i]); err != nil {
			return nil, err
		}
	}
	var list [][]float32
	d, row := n.cfg.Width, 0
	for _, ids := range texts {
		list = append(list, meanDirection(p.host[row*d:(row+len(ids))*d], d))
		row += len(ids)
	}
	return list, nil
}

// begin takes a batch's memory, which free gives back, and looks its tokens up.
func (n *net) begin(texts [][]int32) (p *pass, free func(), err error) {
	d, f := n.cfg.Width, n.cfg.Inner
	p = &pass{net: n}
	p.attention = device.Attention{Heads: n.cfg.Heads, KVHeads: n.cfg.Heads, HeadDim: d / n.cfg.Heads}
	p.attention.Scale = float32(1 / math.Sqrt(float64(p.attention.HeadDim)))
	for _, ids := range texts {
		text := device.Span{Row: p.t, N: len(ids)}
		for range ids {
			p.attention.Tasks = append(p.attention.Tasks, device.AttentionTask{
				Q: device.Span{Row: p.t, N: 1}, Pos: text.N - 1, Keys: []device.Span{text},
			})
			p.t++
		}
	}
	var mems []device.Mem
	free = func() {
		for _, m := range mems {
			n.dev.Free(m)
		}
	}
	for _, m := range []struct {
		mat  *device.Mat
		cols int
	}{{&p.x, d}, {&p.qkv, 3 * d}, {&p.attended, d}, {&p.y, d}, {&p.mid, f}} {
		mem, err := n.dev.Alloc(device.Act, p.t*m.cols)
		if err != nil {
			return p, free, err
		}
		mems = append(mems, mem)
		*m.mat = device.View(mem, p.t, m.cols)
	}
	p.host, p.spare = make([]float32, p.t*d), make([]float32, p.t*max(d, f))
	p.lookUp(texts)
	return p, free, nil
}

// lookUp makes the first layer's input.
func (p *pass) lookUp(texts [][]int32) {
	d, at := p.cfg.Width, 0
	for _, ids := range texts {
		for i, id := range ids {
			x, word, position := p.host[at:at+d], p.words[int(id)*d:], p.positions[i*d:]
			for j := range x {
				x[j] = word[j] + p.kind[j] + position[j]
			}
			at += d
		}
	}
	p.norm.rows(p.host)
}

// layer runs a block on the residual stream.
func (p *pass) layer(l *layer) error {
	d := p.cfg.Width
	p.dev.Upload(p.x.Mem, 0, p.host)
	p.dev.Linear(p.qkv, p.x, l.qkv)
	p.dev.Attention(p.attended, device.Mat{}, p.qkv.ColsOf(0, d), p.qkv.ColsOf(d, 2*d), p.qkv.ColsOf(2*d, 3*d), p.attention)
	p.dev.Linear(p.y, p.attended, l.out)
	if err := p.add(l.attention); err != nil {
		return err
	}
	p.dev.Upload(p.x.Mem, 0, p.host)
	p.dev.Linear(p.mid, p.x, l.up)
	inner := p.spare[:p.t*p.cfg.Inner]
	if err := p.dev.Download(inner, p.mid.Mem, 0); err != nil {
		return err
	}
	split(len(inner), 1, func(begin, end int) {
		for i, x := range inner[begin:end] {
			inner[begin+i] = gelu(x)
		}
	})
	p.dev.Upload(p.mid.Mem, 0, inner)
	p.dev.Linear(p.y, p.mid, l.down)
	return p.add(l.output)
}

// add adds y to the residual stream and normalises it.
func (p *pass) add(norm layerNorm) error {
	y := p.spare[:len(p.host)]
	if err := p.dev.Download(y, p.y.Mem, 0); err != nil {
		return err
	}
	for i, v := range y {
		p.host[i] += v
	}
	norm.rows(p.host)
	return nil
}

// gelu is x·Φ(x), Φ the distribution function of the normal distribution.
func gelu(x float32) float32 {
	return float32(0.5 * float64(x) * (1 + math.Erf(float64(x)/math.Sqrt2)))
}

// layerNorm brings a row to mean 0 and variance 1, and then to a learnt scale and place.
type layerNorm struct {
	weight, bias []float32 // [D]
	eps          float64
}

// rows normalises each row of x in place.
func (n layerNorm) rows(x []float32) {
	d := len(n.weight)
	split(len(x), d, func(begin, end int) {
		for at := begin; at < end; at += d {
			n.row(x[at : at+d])
		}
	})
}

func (n layerNorm) row(x []float32) {
	var sum, squares float64
	for _, v := range x {
		sum += float64(v)
	}
	mean := sum / float64(len(x))
	for _, v := range x {
		squares += (float64(v) - mean) * (float64(v) - mean)
	}
	scale := 1 / math.Sqrt(squares/float64(len(x))+n.eps)
	for i, v := range x {
		x[i] = float32((float64(v)-mean)*scale)*n.weight[i] + n.bias[i]
	}
}

// meanDirection is the mean of rows of width d, brought to length 1.
func meanDirection(rows []float32, d int) []float32 {
	sum, squares := make([]float64, d), 0.0
	for i, v := range rows {
		sum[i%d] += float64(v)
	}
	for _, v := range sum {
		squares += v * v
	}
	list := make([]float32, d)
	for i, v := range sum {
		list[i] = float32(v / math.Sqrt(squares))
	}
	return list
}

// split has n numbers worked on by all processors, in parts of whole rows of d; do gets a part's ends.
func split(n, d int, do func(begin, end int)) {
	rows, parts := n/d, runtime.GOMAXPROCS(0)
	var wg sync.WaitGroup
	for i := range parts {
		begin, end := rows*i/parts*d, rows*(i+1)/parts*d
		wg.Go(func() { do(begin, end) })
	}
	wg.Wait()
}
