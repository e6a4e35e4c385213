package cuda

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/rubicon-rl/rubicon/cuda/driver"
	"github.com/rubicon-rl/rubicon/internal/device"
)

// maxVocabulary is what kernels/sample.cu has room for.
const maxVocabulary = 1 << 20

// Sizes of a Row and a Result of kernels/sample.cu, in words of 4 bytes.
const (
	rowWords    = 16
	resultWords = 3
)

// Sample implements device.Ops. The kernel writes to the logits of what was seen; nothing but the results comes back, once.
func (d *gpu) Sample(out device.SampleOut, logits device.Mat, rows []device.SampleRow) {
	if !d.ok(device.CheckSample(out, logits, rows)) || len(rows) == 0 {
		return
	}
	if logits.Cols > maxVocabulary {
		d.ok(fmt.Errorf("sample: a vocabulary of %d is more than %d", logits.Cols, maxVocabulary))
		return
	}
	z, c := d.mat(logits), countChoice(rows)
	words, saved, results := d.scratch(4*c.words()), d.scratch(4*c.seen), d.scratch(4*resultWords*len(rows))
	d.sendChoice(words, c)
	d.launch(kernel{"sample", "sample"}, perLogits(len(rows), logits.Cols),
		d.args().Matrix(z).Int(logits.Cols).Ptr(words).Ptr(saved).Ptr(results))
	d.receive(results, len(rows), 4*resultWords, func(b []byte, i, j int) {
		for r := i; r < j; r++ {
			at := b[4*resultWords*(r-i):]
			out.IDs[r] = int32(binary.LittleEndian.Uint32(at))
			out.LogP[r] = math.Float32frombits(binary.LittleEndian.Uint32(at[4:]))
			out.Filtered[r] = math.Float32frombits(binary.LittleEndian.Uint32(at[8:]))
		}
	})
	for r, id := range out.IDs {
		if d.err == nil && id < 0 {
			d.ok(fmt.Errorf("sample: the logits of row %d are not finite: the weights are damaged or have diverged, go back to an earlier checkpoint", r))
		}
	}
	for _, p := range [...]driver.Ptr{words, saved, results} {
		d.give(driver.Matrix{At: p})
	}
}

// choice is what the kernel is told: the rows, then their lists of seen ids, then their masks.
type choice struct {
	rows        []device.SampleRow
	seen, masks int // entries of all lists, and of all masks
}

func countChoice(rows []device.SampleRow) choice {
	c := choice{rows: rows}
	for i := range rows {
		c.seen += len(rows[i].Seen)
		c.masks += len(rows[i].Allowed)
	}
	return c
}

func (c choice) words() int { return rowWords*len(c.rows) + c.seen + 2*c.masks }

// sendChoice writes c to at. What fill is asked for comes in order.
func (d *gpu) sendChoice(at driver.Ptr, c choice) {
	seen := rowWords * len(c.rows)
	mask := seen + c.seen
	seenAt, maskAt := at+driver.Ptr(4*seen), at+driver.Ptr(4*mask)
	d.send(at, len(c.rows), 4*rowWords, func(b []byte, i, j int) {
		for r := range c.rows[i:j] {
			row := &c.rows[i+r]
			putRow(b[4*rowWords*r:], row, seen, mask)
			seen += len(row.Seen)
			mask += 2 * len(row.Allowed)
		}
	})
	row, next := 0, 0
	d.send(seenAt, c.seen, 4, func(b []byte, i, j int) {
		for q := range j - i {
			for ; next == len(c.rows[row].Seen); next = 0 {
				row++
			}
			binary.LittleEndian.PutUint32(b[4*q:], uint32(c.rows[row].Seen[next]))
			next++
		}
	})
	row, next = 0, 0
	d.send(maskAt, c.masks, 8, func(b []byte, i, j int) {
		for q := range j - i {
			for ; next == len(c.rows[row].Allowed); next = 0 {
				row++
			}
			binary.LittleEndian.PutUint64(b[8*q:], c.rows[row].Allowed[next])
			next++
		}
	})
}

// putRow writes a Row whose list of seen ids and whose mask begin at these words.
func putRow(b []byte, r *device.SampleRow, seen, mask int) {
	beyond, low, temp := uint64(0), math.Inf(-1), r.Temp
	if r.TopP < 1 {
		beyond = uint64(math.Ldexp(1-float64(r.TopP), 64))
	}
	if r.MinP > 0 {
		low = math.Log(float64(r.MinP))
	}
	if r.Greedy {
		temp = 1
	}
	if r.Allowed == nil {
		mask = -1
	}
	binary.LittleEndian.PutUint64(b, beyond)
	binary.LittleEndian.PutUint64(b[8:], math.Float64bits(low))
	for i, w := range [...]uint32{
		math.Float32bits(1 / r.Temp), math.Float32bits(temp), math.Float32bits(r.Penalty), r.Key[0], r.Key[1], r.Index,
		uint32(flag(r.Greedy)), uint32(flag(!r.Greedy && plain(r))), uint32(min(r.TopK, math.MaxInt32)), uint32(seen), uint32(len(r.Seen)), uint32(mask),
	} {
		binary.LittleEndian.PutUint32(b[16+4*i:], w)
	}
}

// plain reports whether no processor changes the distribution.
func plain(r *device.SampleRow) bool {
	return r.Allowed == nil && r.TopK == 0 && r.TopP == 1 && r.MinP == 0 && (r.Penalty == 1 || len(r.Seen) == 0)
}
