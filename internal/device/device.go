// Package device declares what the model needs from a machine: memory and about twenty fused
// operations, forward and backward. internal/cpu and cuda implement it; internal/device/reference
// is the plain float64 specification that both are tested against (internal/device/devicetest).
//
// Conventions that every implementation keeps:
//
//   - Matrices are row-major. T is the number of token rows of a call, whatever segments they belong to.
//   - A forward operation overwrites its output. A backward operation (…Grad) skips the gradients whose Mat is zero. It
//     ADDS to those of parameters and, where its comment says +=, to those of activations; it overwrites the others.
//   - Operations return no error. A misuse or a device failure is sticky: later operations do nothing, and
//     Err (and Sync, Download) report the first one. Callers check once per pass.
//   - Row invariance: on a device whose Info says Invariant, the bits of an output row depend only on the
//     inputs of that row (for Attention: on the keys along its path, by path position), never on how many
//     rows there are, which rows share the call, how a path is cut into spans, or how many threads run.
package device

// Kind is the element type of a Mem.
type Kind uint8

const (
	F32 Kind = iota // float32 on every device: parameters, gradients, moments, log-probabilities
	Act             // activations: float32 on the CPU, the compute type on a GPU
	I32             // int32: token ids, row numbers, positions
)

// DType is how a Weight is stored. The quantised types, from Int8 on, are
// compressed forms of a bfloat16 matrix (see Form).
type DType uint8

const (
	Float32 DType = iota
	BFloat16
	Int8    // 8.5 bits a weight; GGUF's Q8_0
	Int4    // 5 bits, with minima; GGUF's Q4_1
	Int4Sym // 4.5 bits; GGUF's Q4_0
	Int8K   // 8.5625 bits, small groups in super-blocks; GGUF's Q6_K
	Int4K   // 4.625 bits, with minima, in super-blocks; GGUF's Q4_K
)

// Mem is a block of device memory. Only the device that made it can use it.
type Mem interface {
	Kind() Kind
	Len() int // elements
}

// Mat is a row-major view [Rows, Cols] of a Mem; element (r, c) is at Off + r*Stride + c.
// The zero Mat means "absent" wherever an operation documents an argument as optional.
type Mat struct {
	Mem                     Mem
	Off, Rows, Cols, Stride int
}

// View returns the whole of mem as a [rows, cols] matrix.
func View(mem Mem, rows, cols int) Mat { return Mat{Mem: mem, Rows: rows, Cols: cols, Stride: cols} }

// Absent reports whether the view is the zero Mat.
func (m Mat) Absent() bool { return m.Mem == nil }

// RowsOf returns the rows [r0, r1) of m.
func (m Mat) RowsOf(r0, r1 int) Mat {
	m.Off += r0 * m.Stride
	m.Rows = r1 - r0
	return m
}

// ColsOf returns the columns [c0, c1) of m.
func (m Mat) ColsOf(c0, c1 int) Mat {
	m.Off += c0
	m.Cols = c1 - c0
	return m
}

// Weight is a matrix [N, K] in the device's own packed layout, the one that forward, backward and decode
// share. It takes part in products only; its gradient, if it is trained, goes to an ordinary Mat.
type Weight interface {
	Shape() (n, k int)
	DType() DType
	Bytes() int64
}

// Info describes a device to people and to the planner.
type Info struct {
	Name      string // "cpu (AVX-512, 2 threads)"
	Threads   int
	Memory    int64 // bytes that may be allocated, 0 if unknown
	Invariant bool  // row invariance holds (package comment)
}

// Footprint is how a device keeps what it is asked for, and what it takes of its memory beside that, for the plan of a run. The
// zero Footprint is one of float32 activations and packed weights that takes nothing, as the CPU, where scratch is small. A
// device that has another says so by a method Footprint.
type Footprint struct {
	ActBytes int   // of an element of kind Act; 0: 4
	Dense    bool  // weights that are not float32 take as much as activations, quantised ones too
	Fixed    int64 // bytes as long as the device is open: context, code, workspaces
	Head     int64 // bytes that the logits of Head and HeadGrad may take; they are made in chunks
}

// Device is one accelerator, or the CPU. One goroutine at a time uses it.
type Device interface {
	Memory
	Ops
}

// Memory moves data between the host and the device.
type Memory interface {
	Info() Info
	Alloc(k Kind, n int) (Mem, error) // zeroed
	Free(m Mem)
	Allocated() int64 // bytes now held by Alloc and NewWeight

	// Upload writes src to dst[off:]; Download reads src[off:off+len(dst)]. Act converts from and to float32.
	Upload(dst Mem, off int, src []float32)
	UploadInts(dst Mem, off int, src []int32)
	Download(dst []float32, src Mem, off int) error
	DownloadInts(dst []int32, src Mem, off int) error

	NewWeight(t DType, n, k int) (Weight, error)
	FreeWeight(w Weight)
	// LoadWeight packs rows [row, row+rows) of w from float32 host memory, row-major [rows, K];
	// LoadWeightBF16 from bfloat16 bits. A Float32 weight widens, a BFloat16 weight rounds to nearest even, an Int8 or
	// Int4 weight takes what Quantise makes of it. The other quantised types take quantised rows only.
	LoadWeight(w Weight, row int, src []float32) error
	LoadWeightBF16(w Weight, row int, src []uint16) error
	// LoadWeightQuant packs rows from row on that are in the form of w's type.
	LoadWeightQuant(w Weight, row int, src Quant) error
	// Repack packs rows [row, row+src.Rows) of w from device memory (trained weights, after an optimiser step).
	Repack(w Weight, row int, src Mat)

	Sync() error
	Err() error
	Close() error
}

// Ops are the operations of a decoder-only transformer. D width, V vocabulary, H heads, F feed-forward width.
type Ops interface {
	// Embed: y[t] = W[ids[t]].                                                      y [T,D], w [V,D], ids [T]
	Embed(y Mat, w Weight, ids Mem)
	// EmbedGrad: dW[ids[t]] += dy[t], t ascending.
	EmbedGrad(dW, dy Mat, ids Mem)

	// RMSNorm: if res is given, x += res first (in place); then y = x / sqrt(mean(x²) + eps) * w.   w [1,D]
	RMSNorm(y, x, res, w Mat, eps float32)
	// RMSNormGrad: x is the normalised input (after the residual was added). dx += , dW += (optional).
	RMSNormGrad(dx, dW, dy, x, w Mat, eps float32)

	// Linear: y = x·Wᵀ + bias + Σ_parts scale·(drop(x)·Aᵀ)·Bᵀ on the part's columns.       x [T,K], y [T,N]
	Linear(y, x Mat, l Linear)
	// LinearGrad: dx (optional), and the parameter gradients that l carries (dA, dB, dW, dBias).
	LinearGrad(dx, dy, x Mat, l Linear)

	// Rotary: per head, optional RMS norm over the head (Qwen3), then rotation by position, halves paired
	// (i, i+HeadDim/2) as in transformers.                                          x, y [T,H*HeadDim]; y may be x
	// unless r.Norm is given.
	Rotary(y, x Mat, r Rotary)
	// RotaryGrad: x is Rotary's input (read only if r.Norm is given). dx (optional), which may be dy unless r.Norm is given;
	// r.DNorm (optional).
	RotaryGrad(dx, dy, x Mat, r Rotary)

	// Attention: softmax(scale·q·kᵀ)·v along each task's path. lse [T,H] (F32, optional) receives the
	// log-sum-exp of the scaled scores, which AttentionGrad needs.                   q, o [T,H*HeadDim]; k, v [*,KV*HeadDim]
	Attention(o, lse, q, k, v Mat, a Attention)
	// AttentionGrad: dq, dk, dv (each optional); rows that are in no task, or that none sees, become 0.
	AttentionGrad(dq, dk, dv, do, o, lse, q, k, v Mat, a Attention)

	// SwiGLU: y = silu(g)·u, with gu = [g | u].                                     gu [T,2F], y [T,F]
	SwiGLU(y, gu Mat)
	SwiGLUGrad(dgu, dy, gu Mat)

	// Head: log-probabilities of h's targets, in chunks; the logits [N,V] are never in memory whole.
	Head(out HeadOut, h Mat, l Head)
	// HeadGrad: dh, l.DW (optional), for the gradients given in g; out is what Head wrote.
	HeadGrad(dh Mat, g HeadGrad, out HeadOut, h Mat, l Head)
	// Logits: y = h·Wᵀ, untempered float32.                                         h [N,D], y [N,V] (F32)
	Logits(y, h Mat, w Weight)
	// Sample draws one token per row of logits [N,V]; logits are destroyed. The LogP it writes has the bits
	// that Head would write for the drawn token on an Invariant device.
	Sample(out SampleOut, logits Mat, rows []SampleRow)

	// GatherRows: y[i] = x[rows[i]]. ScatterRows: y[rows[i]] = x[i]. ScatterAddRows: y[rows[i]] += x[i], i ascending.
	GatherRows(y, x Mat, rows Mem)
	ScatterRows(y, x Mat, rows Mem)
	ScatterAddRows(y, x Mat, rows Mem)
	// MeanRows: y[i] = mean of the rows of x in spans[i], float32 result of a sum in ascending row order.
	MeanRows(y, x Mat, spans []Span)
	// MeanRowsGrad: dx +=.
	MeanRowsGrad(dx, dy Mat, spans []Span)

	// Add: y += a·x. Scale: x *= a. Zero, Copy as named. Same shapes.
	Add(y, x Mat, a float32)
	Scale(x Mat, a float32)
	Zero(x Mat)
	Copy(y, x Mat)
	// SumSquares is Σx², accumulated in float64 in a fixed order; it waits for the device. A NaN or Inf in x shows in it.
	SumSquares(x Mat) float64
	// AdamW updates w in place with decoupled weight decay (numerics.md sec. 1.6).  w, g, m, v of one shape
	AdamW(w, g, m, v Mat, h AdamW)
}

// Linear is one (possibly fused: q|k|v, gate|up) projection with what is trained on it.
type Linear struct {
	W     Weight // [N,K]
	Bias  Mat    // [1,N], optional
	LoRA  []LoRA
	DW    Mat // [N,K] F32, optional: gradient of W when all weights are trained
	DBias Mat // [1,N], optional
}

// LoRA is a low-rank part on the columns [Col, Col+B.Rows) of a Linear's output.
type LoRA struct {
	Col    int
	A, B   Mat // [r,K], [n,r] F32
	DA, DB Mat // optional gradients
	Scale  float32
	Drop   *Dropout // nil: none
}

// Dropout zeroes column c of row t of LoRA's input, and scales the kept ones by 1/(1-P), by the bits of
// Philox(Key, counter = {Seg[t], Pos[t], c/4, 0}) word c%4: kept iff its uniform >= P. Independent of batch composition.
type Dropout struct {
	P        float32
	Key      PhiloxKey
	Seg, Pos Mem // [T] I32
}

// Rotary are the rotation tables and the optional q/k norm.
type Rotary struct {
	HeadDim  int
	Cos, Sin Mat // [positions, HeadDim/2] F32
	Pos      Mem // [T] I32
	Norm     Mat // [1,HeadDim], optional
	DNorm    Mat // [1,HeadDim], optional
	Eps      float32
}

// Span is the rows [Row, Row+N).
type Span struct{ Row, N int }

// AttentionTask is one run of queries that share a path. Query i (row Q.Row+i) stands at path position Pos+i and sees
// the keys at path positions 0..Pos+i. Keys lists where those lie in k and v, root first; they cover at least
// Pos+Q.N positions.
type AttentionTask struct {
	Q    Span
	Pos  int
	Keys []Span
}

// Attention is grouped-query attention over a forest: Heads is a multiple of KVHeads.
type Attention struct {
	Heads, KVHeads, HeadDim int
	Scale                   float32
	Tasks                   []AttentionTask
}

// Head is the language-model head at temperature Temp: z = h·Wᵀ/Temp.
type Head struct {
	W       Weight // [V,D]
	Temp    float32
	Targets Mem // [N] I32
	Ref     Mat // [N,D], optional: hidden states of another adapter set, for KL
	DW      Mat // [V,D] F32, optional
}

// HeadOut is what Head writes, all F32 [N,1]. LogP and LSE are required, Entropy and KL optional.
// LogP = z_target - LSE; Entropy = -Σ p log p (nats); KL = Σ p_ref (log p_ref - log p) (needs Head.Ref).
// RefLSE is scratch that HeadGrad needs when KL is given.
type HeadOut struct{ LogP, LSE, Entropy, KL, RefLSE Mat }

// HeadGrad are the gradients of the loss in Head's outputs, F32 [N,1], each optional. No gradient flows to Head.Ref.
type HeadGrad struct{ LogP, Entropy, KL Mat }

// SampleRow says how to draw one row's token. Processors apply in transformers' order: repetition penalty,
// temperature, top-k, top-p, min-p.
type SampleRow struct {
	Temp    float32  // > 0; Greedy ignores it for the choice but LogP uses it
	Greedy  bool     // arg max, lowest id wins ties
	TopK    int      // 0: off
	TopP    float32  // 1: off
	MinP    float32  // 0: off
	Penalty float32  // 1: off
	Seen    []int32  // distinct ids that Penalty applies to
	Allowed []uint64 // optional bit mask over V: others are removed before the processors
	Key     PhiloxKey
	Index   uint32 // index of the token in its completion
}

// SampleOut receives, per row, the id, its log-probability under the full distribution at Temp (no other processor)
// and under the filtered one that it was drawn from.
type SampleOut struct {
	IDs            []int32
	LogP, Filtered []float32
}

// AdamW are one update's constants; Step counts from 1.
type AdamW struct {
	LR, Beta1, Beta2, Eps, WeightDecay float64
	Step                               int
	GradScale                          float64 // gradient is multiplied by it first (clipping); 1: none
}
