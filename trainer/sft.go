package trainer

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/rubicon-rl/rubicon/configs"
	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/internal/dist"
	"github.com/rubicon-rl/rubicon/policy"
	"github.com/rubicon-rl/rubicon/trainer/data"
)

// Example is one row of supervised fine-tuning: tokens, and which of them are learned.
type Example struct {
	Tokens []int32
	Learn  []bool // the first token has nothing before it and cannot be learned
}

// prefix is the number of tokens before the first learned one.
func (e Example) prefix() int { return max(0, slices.Index(e.Learn, true)) }

func (e Example) learned() int {
	n := 0
	for _, l := range e.Learn {
		if l {
			n++
		}
	}
	return n
}

// SFT trains a policy on examples: the mean cross-entropy of the learned tokens of an optimiser step, as TRL's SFTTrainer.
type SFT struct {
	*core
	Examples, HeldOut []Example
	accum             int
	bins              [][]int // packing: the examples of each row; otherwise one example a row
	order             []int   // of this epoch's rows
	ordered           int     // the epoch that order is of; -1: none
}

// NewSFT prepares a supervised run in its folder.
func NewSFT(p Parts, examples, heldOut []Example) (*SFT, error) {
	cfg := p.Config
	if len(examples) == 0 {
		return nil, fmt.Errorf("there is no example to learn from: look at data.train_files")
	}
	c, err := newCore(p, "sft")
	if err != nil {
		return nil, err
	}
	s := &SFT{core: c, Examples: examples, HeldOut: heldOut, ordered: -1, accum: max(1, cfg.Optim.GradientAccumulationSteps)}
	s.state.Data = fingerprint(len(examples), func(i int) []int32 { return examples[i].Tokens })
	s.bins = make([][]int, len(examples))
	for i := range examples {
		s.bins[i] = []int{i}
	}
	if cfg.Data.Packing {
		s.bins = fill(examples, cfg.Data.MaxLength)
	}
	s.state.MicroRows = s.batchSize() * p.Group.World()
	s.micro = ceilDiv(len(s.bins), s.state.MicroRows)
	s.steps = ceilDiv(s.micro, s.accum)
	s.total = totalSteps(cfg.Optim, s.steps)
	return s, nil
}

// Run makes the run's steps, from its checkpoint if it resumes.
func (s *SFT) Run(ctx context.Context) error { return s.run(ctx, s) }

// batchSize is the number of rows of a micro-batch in one process.
func (s *SFT) batchSize() int { return max(1, s.Config.Optim.PerDeviceTrainBatchSize) }

// fill puts examples into rows of up to length tokens: longest first, each into the fullest row that has room (TRL's bfd).
func fill(examples []Example, length int) [][]int {
	order := make([]int, len(examples))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return len(examples[b].Tokens) - len(examples[a].Tokens) })
	var bins [][]int
	room := make([][]int, length+1) // bins by the tokens that they have left
	for _, i := range order {
		n := len(examples[i].Tokens)
		bin := -1
		for left := min(n, length); left <= length && bin < 0; left++ {
			if k := len(room[left]); k > 0 {
				bin = room[left][k-1]
				room[left] = room[left][:k-1]
				room[left-n] = append(room[left-n], bin)
			}
		}
		if bin < 0 {
			bin = len(bins)
			bins = append(bins, nil)
			room[max(0, length-n)] = append(room[max(0, length-n)], bin)
		}
		bins[bin] = append(bins[bin], i)
	}
	return bins
}

// Step is one optimiser step.
func (s *SFT) Step(ctx context.Context) error {
	s.Console.Tick(s.state.Step+1, "learning")
	micros, mine := s.next()
	learned, tokens := 0, 0
	for _, m := range micros {
		for _, e := range m {
			learned += e.learned()
			tokens += len(e.Tokens)
		}
	}
	s.batch = func() any { return micros }
	entropy := 0.0
	for _, m := range mine {
		if err := ctx.Err(); err != nil {
			return err
		}
		sum, e, err := s.accumulate(m, learned)
		if err != nil {
			return fmt.Errorf("step %d: %w", s.state.Step+1, err)
		}
		s.loss += sum
		entropy += e
	}
	s.state.NumTokens += int64(tokens)
	s.parts = []grpo.Metrics{{"entropy": {Rule: grpo.Sum, Sum: entropy}}}
	return s.update(ctx)
}

// next returns the micro-batches of the next optimiser step, and this rank's part of each.
func (s *SFT) next() (all, mine [][]Example) {
	s.shuffle(s.state.Step / s.steps)
	for k := s.state.Micro; k < min(s.state.Micro+s.accum, s.micro); k++ {
		rows := s.order[k*s.state.MicroRows : min((k+1)*s.state.MicroRows, len(s.order))]
		from, to := s.Group.Share(len(rows))
		all, mine = append(all, s.examples(rows)), append(mine, s.examples(rows[from:to]))
	}
	s.state.Micro = (s.state.Micro + len(all)) % s.micro
	return all, mine
}

// examples are those in rows.
func (s *SFT) examples(rows []int) (batch []Example) {
	for _, row := range rows {
		for _, i := range s.bins[row] {
			batch = append(batch, s.Examples[i])
		}
	}
	return batch
}

// shuffle sets the order of an epoch's rows.
func (s *SFT) shuffle(epoch int) {
	if s.ordered == epoch {
		return
	}
	s.ordered = epoch
	if s.Config.Data.Shuffle {
		s.order = data.Order(len(s.bins), dataSeed(s.Config), epoch)
		return
	}
	s.order = s.order[:0]
	for i := range s.bins {
		s.order = append(s.order, i)
	}
}

// dataSeed is the seed of the data's order.
func dataSeed(c *configs.Config) uint64 {
	if c.Data.Seed != nil {
		return uint64(*c.Data.Seed)
	}
	return uint64(c.Seed)
}

// accumulate adds the gradient of one micro-batch in a step of learned tokens; it returns its part of the mean loss and
// of the mean entropy.
func (s *SFT) accumulate(batch []Example, learned int) (loss, entropy float64, err error) {
	if len(batch) == 0 { // fewer rows than ranks
		return 0, 0, nil
	}
	defer s.clock("timing_s/update_actor", s.Now())
	forest := packExamples(batch)
	s.tokens += forest.Tokens()
	pass, err := s.Model.Forward(forest, policy.ForwardOptions{
		Adapter: s.Adapter, Temperature: 1, Entropy: true, Grad: true, Train: true,
		KeepAll: !s.Config.Model.GradientCheckpointing, Step: uint64(s.state.Step), Seed: uint64(s.Config.Seed),
	})
	if err != nil {
		return 0, 0, fmt.Errorf("forward: %w", err)
	}
	grad := make([]float32, len(pass.Output.LogP))
	for i, lp := range pass.Output.LogP {
		grad[i] = -1 / float32(learned)
		loss -= float64(lp) / float64(learned)
		entropy += float64(pass.Output.Entropy[i]) / float64(learned)
	}
	if err := pass.Backward(policy.Gradients{LogP: grad}); err != nil {
		return 0, 0, fmt.Errorf("backward: %w", err)
	}
	return loss, entropy, nil
}

// packExamples lays examples out as a forest, in which those that begin alike share what stands before their first
// learned token.
func packExamples(batch []Example) *policy.Forest {
	f := &policy.Forest{}
	roots := map[string]int{}
	for _, e := range batch {
		n := e.prefix()
		root := policy.Root
		if n > 0 {
			key := fmt.Sprint(e.Tokens[:n])
			at, ok := roots[key]
			if !ok {
				at = len(f.Segments)
				roots[key] = at
				f.Segments = append(f.Segments, policy.Segment{Parent: policy.Root, Tokens: e.Tokens[:n], ID: segmentID(e.Tokens[:n])})
			}
			root = at
		}
		f.Segments = append(f.Segments, policy.Segment{Parent: root, Tokens: e.Tokens[n:], Score: e.Learn[n:], ID: segmentID(e.Tokens)})
	}
	return f
}

// Evaluate is the mean loss on the held-out examples; nil if there are none.
func (s *SFT) Evaluate(ctx context.Context, _ int) (map[string]float64, error) {
	if len(s.HeldOut) == 0 {
		return nil, nil
	}
	sum, learned := 0.0, 0
	from, to := s.Group.Share(len(s.HeldOut))
	for batch := range slices.Chunk(s.HeldOut[from:to], s.batchSize()) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		pass, err := s.Model.Forward(packExamples(batch), policy.ForwardOptions{Adapter: s.Adapter, Temperature: 1})
		if err != nil {
			return nil, err
		}
		for _, lp := range pass.Output.LogP {
			sum -= float64(lp)
		}
		learned += len(pass.Output.LogP)
		pass.Release()
	}
	all, err := dist.Gather(ctx, s.Group, "the held-out loss", [2]float64{sum, float64(learned)})
	if err != nil {
		return nil, err
	}
	loss := grpo.Metric{Rule: grpo.Mean}
	for _, part := range all {
		loss.Sum, loss.Count = loss.Sum+part[0], loss.Count+part[1]
	}
	return map[string]float64{"eval_loss": loss.Value()}, nil
}

func (s *SFT) show(io.Writer) {}

// An SFT run adds nothing to a checkpoint: its order follows from the seed and the step.
func (s *SFT) save(string) error { return nil }
func (s *SFT) load(string) error { return nil }

func ceilDiv(a, b int) int { return (a + b - 1) / b }
