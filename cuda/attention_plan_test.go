package cuda

import (
	"slices"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/cuda/driver"
	"github.com/rubicon-rl/rubicon/internal/device"
)

// Three samples share 128 keys, the last two of them 200, and one has none in common. It catches ranges that are planned for the wrong
// samples, and keys that are read once for each sample.
func TestAttentionSharesRanges(t *testing.T) {
	task := func(row int, keys ...device.Span) device.AttentionTask {
		n := -1
		for _, s := range keys {
			n += s.N
		}
		return device.AttentionTask{Q: device.Span{Row: row, N: 1}, Pos: n, Keys: keys}
	}
	prompt, more := device.Span{Row: 1000, N: 128}, device.Span{Row: 2000, N: 72}
	var p attentionPlan
	p.build(planKey{heads: 2, kvHeads: 1, processors: 108}, []device.AttentionTask{
		task(4, prompt, device.Span{Row: 10, N: 5}), task(5, prompt, more, device.Span{Row: 20, N: 3}),
		task(6, prompt, more, device.Span{Row: 30, N: 1}), task(7, device.Span{Row: 40, N: 70}),
	})
	// query, queries, where the path's position 0 would be in paths, first and end position, slot
	want := []int32{
		0, 3, 0, 0, 128, 0,
		0, 1, 0, 128, 133, 3,
		1, 2, 5, 128, 200, 4,
		1, 1, 5, 200, 203, 6,
		2, 1, 8, 200, 201, 7,
		3, 1, 209, 0, 70, 8,
	}
	if !slices.Equal(p.narrow.ints, want) || p.slots != 9 || p.wide.n != 0 {
		t.Errorf("items %v, %d slots, want %v, 9 slots", p.narrow.ints, p.slots, want)
	}
	if want := []int32{0, 3, 1, 4, 6, 2, 5, 7, 8}; !slices.Equal(p.partOf.ints, want) {
		t.Errorf("slots by query %v, want %v", p.partOf.ints, want)
	}
	if n := len(p.paths.ints); n != 128+5+72+3+1+70 {
		t.Errorf("%d rows of paths", n)
	}
}

// Plans of steps that are alike allocate nothing: generation makes one a step.
func TestAttentionPlanAllocates(t *testing.T) {
	a, queries, keys := grove(device.Attention{}, []stem{{-1, 100, 0}, {0, 20, 1}, {0, 30, 1}, {0, 90, 90}, {-1, 40, 40}})
	for _, backward := range []bool{false, true} {
		var p attentionPlan
		k := planKey{backward: backward, heads: 2, kvHeads: 1, qRows: queries, kRows: keys, processors: 108}
		if n := testing.AllocsPerRun(10, func() { p.build(k, a.Tasks) }); n > 0 {
			t.Errorf("backward %v: a plan allocates %g times", backward, n)
		}
	}
}

// A view whose rows are not at multiples of 16 bytes cannot be read by the tensor cores' kernels.
func TestAttentionAlignment(t *testing.T) {
	c := attention{gpu: &gpu{}, a: device.Attention{Heads: 1, KVHeads: 1, HeadDim: 64, Scale: 1}}
	for _, m := range []struct {
		why    string
		m      driver.Matrix
		tensor bool
	}{
		{"aligned", driver.Matrix{At: 256, Stride: 64, Type: driver.BF16}, true},
		{"absent", driver.Matrix{}, true},
		{"float32", driver.Matrix{At: 256, Stride: 64}, false},
		{"odd offset", driver.Matrix{At: 256 + 2, Stride: 64, Type: driver.BF16}, false},
		{"odd stride", driver.Matrix{At: 256, Stride: 68, Type: driver.BF16}, false},
	} {
		if k := c.key(m.m); (k.lanes == 0) != m.tensor {
			t.Errorf("%s: tensor cores %v", m.why, k.lanes == 0)
		}
	}
}

// Heads larger than the shared memory's room are refused in words, not by a failed launch.
func TestAttentionLargeHeads(t *testing.T) {
	dev := simulated(driver.F32)(t)
	defer dev.Close()
	m, err := dev.Alloc(device.Act, 258)
	if err != nil {
		t.Fatal(err)
	}
	x := device.View(m, 1, 258)
	dev.Attention(x, device.Mat{}, x, x, x, device.Attention{Heads: 1, KVHeads: 1, HeadDim: 258, Scale: 1})
	if err := dev.Err(); err == nil || !strings.Contains(err.Error(), "at most 256") {
		t.Errorf("error %v", err)
	}
}
