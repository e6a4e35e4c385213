package policy

// Root is the parent of a segment that has none.
const Root = -1

// Segment is a run of tokens below its parent's. A token attends causally to its own segment and to the whole of
// every ancestor; position ids run along the path from the root.
type Segment struct {
	Parent int // index of an earlier segment of the forest, or Root
	Tokens []int32
	// Score marks the tokens whose log-probability (given everything before them on the path) is wanted; nil: none.
	// The first token of a root has nothing before it and cannot be scored.
	Score []bool
	// ID names the segment in dropout's counters. A caller that trains with dropout gives every segment of a step its
	// own, so that a mask depends on the token and not on what else is in the batch.
	ID uint32
}

// Forest is a batch: a prompt is a root, its completions are its children, each turn of an episode hangs below the
// one before.
type Forest struct{ Segments []Segment }

// Tokens is the number of tokens that a pass over f computes.
func (f *Forest) Tokens() int {
	n := 0
	for _, s := range f.Segments {
		n += len(s.Tokens)
	}
	return n
}

// ForwardOptions say what a forward pass computes.
type ForwardOptions struct {
	Adapter     string  // "" = the frozen weights alone
	Temperature float32 // of the log-probabilities, entropy and KL; > 0 if any token is scored
	Entropy     bool
	KL          string // with HasKL: adapter set R (or "") of which KL(R || this one) is wanted per scored token
	HasKL       bool
	Pool        []bool // per segment: mean of the last hidden states over its path from the root; nil: none
	Grad        bool   // keep what Backward needs
	Step        uint64 // dropout key: the same Step and Seed give the same masks
	Seed        uint64
	Train       bool // apply dropout
	KeepAll     bool // with Grad: keep every activation instead of recomputing layer by layer in Backward; same bits, more memory
}

// Output has one entry per scored token (segments in order, tokens in order) and one pooled vector per pooled segment.
type Output struct {
	LogP, Entropy, KL []float32
	Pooled            [][]float32
}

// Gradients of the loss with respect to an Output; nil = none.
type Gradients struct {
	LogP, Entropy, KL []float32
	Pooled            [][]float32
}

// Request asks for N continuations of one prompt.
type Request struct {
	Prompt []int32
	N      int
	// Stream identifies the random stream: (run seed, step, prompt). The sample index and token index are added.
	Stream []uint64
	// Constraint limits what the continuations may say; nil: nothing does.
	Constraint Constraint
	// Reply makes each continuation an episode of several turns; nil: it has one.
	Reply Replier
	// MaxTokens is the most tokens of such a continuation, replies included. 0: what the context leaves.
	MaxTokens int
}

// SamplingParams are the settings of a generation; names as in TRL and transformers.
type SamplingParams struct {
	Temperature       float32
	TopK              int     // 0: off
	TopP              float32 // 1: off
	MinP              float32 // 0: off
	RepetitionPenalty float32 // 1: off
	Greedy            bool
	MaxNewTokens      int
	EOS               []int32
	Stop              []string                 // stop strings: generation ends when the decoded text contains one
	Decode            func(ids []int32) string // needed with Stop
}

// Sample is one continuation, its end-of-sequence token included if it has one.
type Sample struct {
	Tokens         []int32
	LogP, Filtered []float32
	Finish         string // of its last turn: "eos", "stop", "length"
	Turns          []Turn // the sample's own tokens if it has replies in it, where LogP and Filtered are 0; nil: all are
}
