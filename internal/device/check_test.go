package device

import "testing"

// plainMem and plainWeight are shapes without contents.
type plainMem struct {
	kind Kind
	n    int
}

func (m plainMem) Kind() Kind { return m.kind }
func (m plainMem) Len() int   { return m.n }

type plainWeight struct{ n, k int }

func (w plainWeight) Shape() (n, k int) { return w.n, w.k }
func (w plainWeight) DType() DType      { return Float32 }
func (w plainWeight) Bytes() int64      { return 0 }

// The checks of a decoded token are small change beside its arithmetic only if they allocate nothing. (What they
// refuse is tested in package devicetest, through a device.)
func TestChecksOfRightCallsAllocateNothing(t *testing.T) {
	const rows, width, vocab = 3, 1000, 2000
	act := View(&plainMem{Act, rows * width}, rows, width)
	f32 := View(&plainMem{F32, vocab * width}, vocab, width)
	ints := &plainMem{I32, rows}
	col := View(&plainMem{F32, rows}, rows, 1)
	l := Linear{W: &plainWeight{width, width}, Bias: f32.RowsOf(0, 1), LoRA: []LoRA{
		{A: f32.RowsOf(0, 300), B: f32.RowsOf(0, 500).ColsOf(0, 300), Drop: &Dropout{P: 0.5, Seg: ints, Pos: ints}},
		{Col: 500, A: f32.RowsOf(0, 300), B: f32.RowsOf(0, 500).ColsOf(0, 300)},
	}}
	tasks := []AttentionTask{{Q: Span{0, 1}, Pos: 1, Keys: []Span{{0, 1}, {2, 1}}}, {Q: Span{1, 2}, Keys: []Span{{0, 2}}}}
	head := Head{W: &plainWeight{vocab, width}, Temp: 1, Targets: ints, Ref: act, DW: f32}
	out := HeadOut{LogP: col, LSE: col, Entropy: col, KL: col, RefLSE: col}
	logits := View(&plainMem{F32, rows * vocab}, rows, vocab)
	sampled := SampleOut{IDs: make([]int32, rows), LogP: make([]float32, rows), Filtered: make([]float32, rows)}
	sampling := make([]SampleRow, rows)
	for i := range sampling {
		sampling[i] = SampleRow{Temp: 1, TopP: 1, Penalty: 1, Seen: []int32{500}}
	}
	for name, check := range map[string]func() error{
		"embed":   func() error { return CheckEmbed(act, head.W, ints) },
		"rmsnorm": func() error { return CheckRMSNorm(act, act, act, f32.RowsOf(0, 1), 0) },
		"linear":  func() error { return CheckLinear(act, act, l) },
		"rotary": func() error {
			return CheckRotary(act, act, Rotary{HeadDim: 500, Cos: f32.ColsOf(0, 250), Sin: f32.ColsOf(0, 250), Pos: ints})
		},
		"attention": func() error { return CheckAttention(act, Mat{}, act, act, act, Attention{10, 10, 100, 1, tasks}) },
		"swiglu":    func() error { return CheckSwiGLU(act.ColsOf(0, 500), act) },
		"head":      func() error { return CheckHead(out, act, head) },
		"logits":    func() error { return CheckLogits(logits, act, head.W) },
		"sample":    func() error { return CheckSample(sampled, logits, sampling) },
		"gather":    func() error { return CheckGatherRows(act, f32, ints) },
		"same":      func() error { return CheckSame("add", act, act) },
	} {
		if err := check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if n := testing.AllocsPerRun(10, func() { _ = check() }); n > 0 {
			t.Errorf("%s allocates %g times", name, n)
		}
	}
}
