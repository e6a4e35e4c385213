package cpu

import (
	"math"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// dropTask applies dropout to rows: y = drop(x), or y += drop(x).
type dropTask struct {
	k        *kernels
	y, x     mat
	seg, pos []int32
	keys     [20]uint32 // of the rounds
	above    int32      // a word is kept if its upper 23 bits are more than this
	scale    float32
	add      bool
}

// dropped returns drop(x) in scratch.
func (d *cpu) dropped(x mat, drop *device.Dropout) mat {
	y := d.matrix(x.rows, x.cols)
	d.applyDrop(y, x, drop, false)
	return y
}

func (d *cpu) applyDrop(y, x mat, drop *device.Dropout, add bool) {
	t := &d.ops.drop
	*t = dropTask{k: d.k, y: y, x: x, seg: d.ints(drop.Seg), pos: d.ints(drop.Pos), scale: 1 / (1 - drop.P), add: add}
	t.keys, t.above = philoxKeys(drop.Key), keptAbove(drop.P)
	d.each(x.rows, gateChunk(x.cols), t)
	*t = dropTask{}
}

// philoxKeys are the keys of Philox's ten rounds.
func philoxKeys(k device.PhiloxKey) (keys [20]uint32) {
	for r := range 10 {
		keys[2*r], keys[2*r+1] = k[0]+uint32(r)*0x9E3779B9, k[1]+uint32(r)*0xBB67AE85
	}
	return keys
}

// keptAbove is the largest n for which the uniform number of a word with the upper 23 bits n, (n+1/2)·2⁻²³, is below p.
func keptAbove(p float32) int32 {
	return int32(math.Ceil(float64(p)*(1<<23)-0.5)) - 1
}

func (t *dropTask) do(_, i, j int) {
	for r := i; r < j; r++ {
		x, y := t.x.row(r), t.y.row(r)
		if !t.add {
			clear(y)
		}
		seg, pos := uint32(t.seg[r]), uint32(t.pos[r])
		whole := len(x) / t.k.dropBlock * t.k.dropBlock
		if whole > 0 {
			t.k.drop(&y[0], &x[0], whole/t.k.dropBlock, &t.keys, seg, pos, t.above, t.scale)
		}
		t.rest(y, x, whole, seg, pos)
	}
}

// rest does the elements of a row from c on, a multiple of 4.
func (t *dropTask) rest(y, x []float32, c int, seg, pos uint32) {
	key := device.PhiloxKey{t.keys[0], t.keys[1]}
	for ; c < len(x); c += 4 {
		for q, word := range device.Philox(key, [4]uint32{seg, pos, uint32(c / 4), 0}) {
			if c+q < len(x) && int32(word>>9) > t.above {
				y[c+q] += x[c+q] * t.scale
			}
		}
	}
}
