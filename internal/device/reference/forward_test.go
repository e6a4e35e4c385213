package reference_test

import (
	"math"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/internal/device/reference"
)

// Values calculated by hand. (Whole models against transformers' are tested in package policy.)

// hand is a reference device with matrices of given values.
type hand struct {
	device.Device
	t *testing.T
}

func newHand(t *testing.T) hand { return hand{reference.New(), t} }

func (d hand) mat(rows int, values ...float64) device.Mat {
	m, err := d.Alloc(device.F32, len(values))
	if err != nil {
		d.t.Fatal(err)
	}
	copy(reference.Float64s(m), values)
	return device.View(m, rows, len(values)/rows)
}

func (d hand) weight(n int, values ...float64) device.Weight {
	w, err := d.NewWeight(device.Float32, n, len(values)/n)
	if err != nil {
		d.t.Fatal(err)
	}
	copy(reference.WeightFloat64s(w), values)
	return w
}

func (d hand) ints(values ...int32) device.Mem {
	m, err := d.Alloc(device.I32, len(values))
	if err != nil {
		d.t.Fatal(err)
	}
	d.UploadInts(m, 0, values)
	return m
}

func (d hand) want(what string, m device.Mat, values ...float64) {
	d.t.Helper()
	if err := d.Err(); err != nil {
		d.t.Fatal(err)
	}
	for i, x := range reference.Float64s(m.Mem) {
		if !(math.Abs(x-values[i]) <= 1e-12) {
			d.t.Errorf("%s: element %d is %.15g, want %.15g", what, i, x, values[i])
		}
	}
}

// mean(x²) of (3,4) is 12.5, of (1,-1) 1; with eps 3.5 the roots are of 16 and of 4.5.
func TestRMSNormByHand(t *testing.T) {
	d := newHand(t)
	x, y := d.mat(2, 1, 5, 0, 0), d.mat(2, 0, 0, 0, 0)
	d.RMSNorm(y, x, d.mat(2, 2, -1, 1, -1), d.mat(1, 2, -1), 3.5)
	d.want("x", x, 3, 4, 1, -1)
	s := math.Sqrt(4.5)
	d.want("y", y, 1.5, -1, 2/s, 1/s)
}

// One row (1,2,3,4); W = (1,0,0,0; 0,1,0,0), bias (10,20). The part on column 1 has A = (1,1,1,1), B = (3), scale 0.5.
// Philox's first known answer has uniforms 0.399, 0.881, 0.736, 0.606: dropout 0.75 keeps x1, dropout 0.625 x1 and x2.
func TestLinearByHand(t *testing.T) {
	d := newHand(t)
	x, y := d.mat(1, 1, 2, 3, 4), d.mat(1, 0, 0)
	l := device.Linear{W: d.weight(2, 1, 0, 0, 0, 0, 1, 0, 0), Bias: d.mat(1, 10, 20),
		LoRA: []device.LoRA{{Col: 1, A: d.mat(1, 1, 1, 1, 1), B: d.mat(1, 3), Scale: 0.5}}}
	d.Linear(y, x, l)
	d.want("y", y, 11, 22+0.5*3*10)
	l.LoRA[0].Drop = &device.Dropout{P: 0.75, Seg: d.ints(0), Pos: d.ints(0)}
	d.Linear(y, x, l)
	d.want("y with dropout 0.75", y, 11, 22+0.5*3*2/0.25)
	l.LoRA[0].Drop.P = 0.625
	d.Linear(y, x, l)
	d.want("y with dropout 0.625", y, 11, 22+0.5*3*(2+3)/0.375)
}

// A column of a row is kept by the word that the row's segment and position and the column point to.
func TestDropoutCounter(t *testing.T) {
	const width, p = 9, 0.5
	d := newHand(t)
	seg, pos, key := []int32{3, 4, 3}, []int32{10, 10, 11}, device.PhiloxKey{6, 7}
	ones := make([]float64, width*len(seg))
	for i := range ones {
		ones[i] = 1
	}
	for c := range width {
		pick := make([]float64, width)
		pick[c] = 1
		y := d.mat(len(seg), 0, 0, 0)
		d.Linear(y, d.mat(len(seg), ones...), device.Linear{W: d.weight(1, make([]float64, width)...), LoRA: []device.LoRA{{
			A: d.mat(1, pick...), B: d.mat(1, 1), Scale: 1, Drop: &device.Dropout{P: p, Key: key, Seg: d.ints(seg...), Pos: d.ints(pos...)}}}})
		var want []float64
		for r := range seg {
			words := device.Philox(key, [4]uint32{uint32(seg[r]), uint32(pos[r]), uint32(c / 4), 0})
			kept := 0.0
			if device.Uniform(words[c%4]) >= p {
				kept = 1 / (1 - p)
			}
			want = append(want, kept)
		}
		d.want("kept", y, want...)
	}
}

// Position 1 turns by a quarter in both pairs, (x0,x1,x2,x3) -> (-x2,-x3,x0,x1), position 2 by the angle of the 3-4-5
// triangle in the first pair. The norm's root is 5 for (1,-7,5,5).
func TestRotaryByHand(t *testing.T) {
	d := newHand(t)
	y := d.mat(1, 0, 0, 0, 0)
	r := device.Rotary{HeadDim: 4, Cos: d.mat(3, 1, 1, 0, 0, 0.8, 1), Sin: d.mat(3, 0, 0, 1, 1, 0.6, 0), Pos: d.ints(1)}
	d.Rotary(y, d.mat(1, 1, 2, 3, 4), r)
	d.want("y", y, -3, -4, 1, 2)
	two := r
	two.Pos = d.ints(2)
	d.Rotary(y, d.mat(1, 1, 2, 3, 4), two)
	d.want("y at position 2", y, 0.8-1.8, 2, 0.6+2.4, 4)
	r.Norm = d.mat(1, 5, 5, 10, 5)
	d.Rotary(y, d.mat(1, 1, -7, 5, 5), r)
	d.want("y with norm", y, -10, -5, 1, -7)
}

// Two keys with scores ln 3 and 0 for the second query, which weighs their values 3:1; the first query sees one key.
// Query heads 0, 1 read key head 0, and 2, 3 read key head 1, whose keys are equal and weigh 1:1.
func TestAttentionByHand(t *testing.T) {
	d := newHand(t)
	ln3 := math.Log(3)
	q := d.mat(2, 1, 1, 1, 1, 2*ln3, 2*ln3, 1, 1)
	k := d.mat(3, 0, 5, 77, 77, 1, 5) // path: row 2, row 0
	v := d.mat(3, 4, 10, 77, 77, 8, 20)
	o, lse := d.mat(2, 0, 0, 0, 0, 0, 0, 0, 0), d.mat(2, 0, 0, 0, 0, 0, 0, 0, 0)
	d.Attention(o, lse, q, k, v, device.Attention{Heads: 4, KVHeads: 2, HeadDim: 1, Scale: 0.5, Tasks: []device.AttentionTask{
		{Q: device.Span{Row: 0, N: 2}, Keys: []device.Span{{Row: 2, N: 1}, {Row: 0, N: 1}}},
	}})
	d.want("o", o, 8, 8, 20, 20, 7, 7, 15, 15)
	d.want("lse", lse, 0.5, 0.5, 2.5, 2.5, math.Log(4), math.Log(4), 2.5+math.Ln2, 2.5+math.Ln2)
}

// sigmoid(ln 3) is 3/4.
func TestSwiGLUByHand(t *testing.T) {
	d := newHand(t)
	y := d.mat(1, 9, 9)
	d.SwiGLU(y, d.mat(1, 0, math.Log(3), 5, 2))
	d.want("y", y, 0, 1.5*math.Log(3))
}

// Probabilities (1/4, 1/2, 1/4) at temperature 2, and (1/2, 1/4, 1/4) of the reference.
func TestHeadByHand(t *testing.T) {
	d := newHand(t)
	col := func() device.Mat { return d.mat(1, 0) }
	out := device.HeadOut{LogP: col(), LSE: col(), Entropy: col(), KL: col(), RefLSE: col()}
	l := device.Head{W: d.weight(3, 1, 0, 0, 1, 0, 0), Temp: 2, Targets: d.ints(2), Ref: d.mat(1, 2*math.Ln2, 0)}
	d.Head(out, d.mat(1, 0, 2*math.Ln2), l)
	d.want("logp", out.LogP, -2*math.Ln2)
	d.want("lse", out.LSE, 2*math.Ln2)
	d.want("entropy", out.Entropy, 1.5*math.Ln2)
	d.want("kl", out.KL, 0.25*math.Ln2)
	d.want("ref lse", out.RefLSE, 2*math.Ln2)
}

// Logits (0, 0, ln 2), so probabilities (1/4, 1/4, 1/2). Philox's first known answer gives the uniform 0.399: id 1 of
// all three, id 2 of the last two.
func TestSampleByHand(t *testing.T) {
	d := newHand(t)
	plain := device.SampleRow{Temp: 1, TopP: 1, Penalty: 1}
	masked, tempered, greedy := plain, plain, plain
	masked.Allowed = []uint64{0b110}
	tempered.Temp, tempered.TopK = 0.5, 1 // (1/6, 1/6, 2/3)
	greedy.Greedy = true
	out := device.SampleOut{IDs: make([]int32, 5), LogP: make([]float32, 5), Filtered: make([]float32, 5)}
	ln2 := math.Ln2
	logits := d.mat(5, 0, 0, ln2, 0, 0, ln2, 0, 0, ln2, 0, 0, ln2, ln2, ln2, 0) // the last row's top is tied
	d.Sample(out, logits, []device.SampleRow{plain, masked, tempered, greedy, greedy})
	if err := d.Err(); err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		id      int32
		p, from float64
	}{{1, 1. / 4, 1. / 4}, {2, 1. / 2, 2. / 3}, {2, 2. / 3, 1}, {2, 1. / 2, 1}, {0, 2. / 5, 1}} {
		p, from := math.Exp(float64(out.LogP[i])), math.Exp(float64(out.Filtered[i]))
		if out.IDs[i] != want.id || math.Abs(p-want.p) > 1e-6 || math.Abs(from-want.from) > 1e-6 {
			t.Errorf("row %d: drew %d with probability %g from %g, want %+v", i, out.IDs[i], p, from, want)
		}
	}
}

// Ten equal tokens cut (0,1) in ten: id is the first digit of the uniform that key and index point to.
func TestSampleByHandFollowsTheCounter(t *testing.T) {
	const n = 100
	d := newHand(t)
	rows := make([]device.SampleRow, n)
	for i := range rows {
		rows[i] = device.SampleRow{Temp: 1, TopP: 1, Penalty: 1, Key: device.PhiloxKey{5, 6}, Index: uint32(i)}
	}
	out := device.SampleOut{IDs: make([]int32, n), LogP: make([]float32, n), Filtered: make([]float32, n)}
	d.Sample(out, d.mat(n, make([]float64, n*10)...), rows)
	if err := d.Err(); err != nil {
		t.Fatal(err)
	}
	for i, id := range out.IDs {
		u := device.Uniform(device.Philox(rows[i].Key, [4]uint32{uint32(i), 0, 0, 0})[0])
		if id != int32(u*10) {
			t.Errorf("uniform %g drew %d", u, id)
		}
	}
}

func TestMeanRowsByHand(t *testing.T) {
	d := newHand(t)
	y := d.mat(2, 0, 0, 0, 0)
	d.MeanRows(y, d.mat(3, 1, 2, 3, 4, 8, 0), []device.Span{{Row: 0, N: 3}, {Row: 1, N: 1}})
	d.want("y", y, 4, 2, 3, 4)
}

func TestRowsByHand(t *testing.T) {
	d := newHand(t)
	y, x := d.mat(2, 0, 0, 0, 0), d.mat(3, 1, 2, 3, 4, 5, 6)
	d.GatherRows(y, x, d.ints(2, 0))
	d.want("gathered", y, 5, 6, 1, 2)
	d.ScatterAddRows(x, y, d.ints(1, 1))
	d.want("added", x, 1, 2, 3+5+1, 4+6+2, 5, 6)
	d.ScatterRows(x, y, d.ints(0, 2))
	d.want("scattered", x, 5, 6, 9, 12, 1, 2)
}

func TestElementwiseByHand(t *testing.T) {
	d := newHand(t)
	y, x := d.mat(2, 1, 2, 3, 4), d.mat(2, 1, -1, 2, 0)
	d.Add(y, x, 0.5)
	d.want("added", y, 1.5, 1.5, 4, 4)
	d.Scale(y, 4)
	d.want("scaled", y, 6, 6, 16, 16)
	if got := d.SumSquares(y); got != 36+36+256+256 {
		t.Errorf("sum of squares is %g", got)
	}
	d.Copy(y, x)
	d.want("copied", y, 1, -1, 2, 0)
	d.Zero(y)
	d.want("zeroed", y, 0, 0, 0, 0)
}
