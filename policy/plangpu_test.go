package policy

import (
	"math"
	"slices"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// qwen7B is the shape of Qwen2.5-7B: 7,615,616,512 parameters.
func qwen7B() Config {
	return Config{
		Arch: "qwen2", Width: 3584, Hidden: 18944, Layers: 28, Heads: 28, KVHeads: 4, HeadDim: 128,
		Vocab: 152064, MaxPositions: 32768, NormEps: 1e-6, QKVBias: true, DType: "bfloat16",
	}
}

// card80 is GRPO with LoRA on a card of 80 GiB: 32 prompts of 512 tokens with 8 samples of 1024 each, all at a time, and
// micro-batches of 16384 tokens, half of them scored.
func card80() PlanOptions {
	return PlanOptions{
		LoRA: &LoRAConfig{R: 16, Alpha: 32, TargetModules: []string{AllLinear}}, Update: true,
		Tokens: 16384, Scored: 8192, Samples: 256, Prompts: 32, Prompt: 512,
		Generate: GenerateOptions{SamplingParams: SamplingParams{MaxNewTokens: 1024}, MaxBatch: 256},
		Device:   device.Footprint{ActBytes: 2, Dense: true, Fixed: 2 << 30, Head: 2048 * 152064 * 4},
		Memory:   80 << 30,
	}
}

// The plan of a run on a graphics card is what one computes by hand, and what a table of such a run, made before this code
// was, says in GiB: 14.2 of weights, 0.6 of adapter, 14.9 of keys and values, 3.1 of layer inputs, 1.2 of logits. A wrong size
// of an activation, a shared prompt counted per sample, or a dropped part would show.
func TestPlanOfALargeCard(t *testing.T) {
	p, err := MemoryPlan(qwen7B(), card80())
	must(t, err)
	const gib = 1 << 30
	// By row: the inputs of 28 layers and the last output; 6 of width 3584 (a branch, the final norm, two normed inputs,
	// attention's output, the stream between), gate, q|k|v, gate|up; as gradients x, h, q|k|v, o, gate|up, gate, and the final
	// norm's.
	const perRow = 29*3584 + (6*3584 + 18944 + 4608 + 2*18944) + (3*3584 + 4608 + 2*18944 + 18944) + 3584
	const pass = 2*16384*perRow + 4*16384*28 /* log-sum-exps */ + 2*2*8192*3584 /* scored rows, their gradient */
	for _, c := range []struct {
		what    string
		bytes   int64
		byHand  float64
		table   float64 // GiB, rounded to 0.1; 0: not in it
		rounded float64 // how much more the rounding of blocks may take, relative
	}{
		{"weights", p.Weights, 2*(7615616512-333312) + 4*333312, 14.2, 0}, // norms and biases are float32
		{"adapter", p.Adapters + p.Gradients + p.Optimizer, 16 * 40370176, 0.6, 0},
		{"cache", p.Cache, 56 * 1024 * (256*1024 + 32*512), 14.9, 0},
		{"logits", p.Logits, 4 * 2048 * 152064, 1.2, 0},
		{"activations", p.Activations, pass, 0, 1. / 8},
		{"layer inputs", 2 * 28 * 16384 * 3584, 0, 3.1, 0},
	} {
		if x := float64(c.bytes); c.byHand > 0 && (x < c.byHand || x > c.byHand*(1+c.rounded)) {
			t.Errorf("%s: %d bytes, %.0f by hand", c.what, c.bytes, c.byHand)
		}
		if x := float64(c.bytes) / gib; c.table > 0 && math.Abs(x-c.table) > 0.05 {
			t.Errorf("%s: %.2f GiB, the table has %.1f", c.what, x, c.table)
		}
	}
	if p.KVTokens != p.WantedKVTokens || p.KVTokens != 278528 {
		t.Errorf("the cache has room for %d of %d tokens, want 278528 of as many", p.KVTokens, p.WantedKVTokens)
	}
	// The table's total is 39 to 40; this layout takes 2 more, as it has gate|up and its gradient at a time.
	if total := float64(p.Total()) / gib; total < 39 || total > 44 {
		t.Errorf("total %.1f GiB, want 39 to 44", total)
	}
}

// The cache gets what the other parts leave, in whole pages, but never less than one sample needs.
func TestCacheGetsTheRest(t *testing.T) {
	o := card80()
	full, err := MemoryPlan(qwen7B(), o)
	must(t, err)
	rest := full.Total() - full.Cache
	o.Memory = rest + 1000*32*56*1024 + 17
	p, err := MemoryPlan(qwen7B(), o)
	must(t, err)
	if p.KVTokens != 32000 || p.WantedKVTokens != 278528 || p.Total() != o.Memory-17 {
		t.Errorf("room for %d of %d tokens in %d bytes, want 32000 of 278528 in %d", p.KVTokens, p.WantedKVTokens, p.Total(), o.Memory-17)
	}
	o.Memory = rest / 2
	if p, err = MemoryPlan(qwen7B(), o); err != nil || p.KVTokens != 512+1024 || p.Total() <= o.Memory {
		t.Errorf("room for %d tokens, want the 1536 of one sample (%v)", p.KVTokens, err)
	}
	o.Memory, o.Generate.KVTokens = rest/2, 64000
	if p, err = MemoryPlan(qwen7B(), o); err != nil || p.KVTokens != 64000 {
		t.Errorf("room for %d tokens, want the 64000 that were asked for (%v)", p.KVTokens, err)
	}
}

// A smaller setting is proposed if it saves, with what it saves.
func TestSavings(t *testing.T) {
	o := card80()
	o.KeepAll, o.Device.Dense = true, false
	savings, err := Savings(qwen7B(), o)
	must(t, err)
	got := map[Change]int64{}
	for _, s := range savings {
		got[s.Change] = s.Bytes
	}
	if !slices.IsSortedFunc(savings, func(a, b Saving) int { return int(b.Bytes>>20 - a.Bytes>>20) }) {
		t.Errorf("not the largest first: %v", savings)
	}
	if want := int64(8 * 40370176); got[HalfRank] != want { // half of weights, gradients and two moments
		t.Errorf("half the rank saves %d bytes, want %d", got[HalfRank], want)
	}
	layers := int64(7615283200 - 2*152064*3584) // the embedding and the head stay bfloat16
	if want := layers * 2 * 15 / 32; got[Int8] != want {
		t.Errorf("int8 saves %d bytes, want %d", got[Int8], want)
	}
	if want := layers * 11 / 8; got[Int4] != want {
		t.Errorf("int4 saves %d bytes, want %d", got[Int4], want)
	}
	// Recomputation gives back what 27 layers keep: q|k|v, o, gate|up, the stream between, and the log-sum-exps.
	kept := float64(27 * 16384 * (2*(4608+3584+37888+3584) + 4*28))
	if x := float64(got[Recompute]); x < kept || x > 1.125*kept {
		t.Errorf("recomputation saves %d bytes, want %.0f to 1/8 more", got[Recompute], kept)
	}
	o.Device.Dense = true
	savings, err = Savings(qwen7B(), o)
	must(t, err)
	for _, s := range savings {
		if s.Change == Int8 || s.Change == Int4 {
			t.Errorf("%v would save %d bytes on a device that keeps such weights as bfloat16", s.Change, s.Bytes)
		}
	}
	o.KeepAll, o.LoadOptions, o.LoRA, o.Generate.MaxBatch = false, LoadOptions{Train: "full"}, nil, 1
	savings, err = Savings(qwen7B(), o)
	must(t, err)
	if len(savings) != 2 || savings[0] != (Saving{BFloat16, 2 * 7615283200}) || savings[1].Change != HalfPass {
		t.Errorf("%v would help, want bfloat16 weights beside the float32 masters, and half the pass", savings)
	}
}

// Logits are in memory in chunks, but never more than there are.
func TestPlanOfLogits(t *testing.T) {
	o := card80()
	o.Scored = 10
	for _, c := range []struct {
		kl, update bool
		act        int
		want       int64 // bytes of a logit
	}{{false, true, 2, 6}, {true, true, 2, 10}, {true, false, 2, 8}, {false, true, 4, 4}} {
		o.HasKL, o.Update, o.Device.ActBytes = c.kl, c.update, c.act
		if p, err := MemoryPlan(qwen7B(), o); err != nil || p.Logits != c.want*10*152064 {
			t.Errorf("%+v: %d bytes of logits, want %d (%v)", c, p.Logits, c.want*10*152064, err)
		}
	}
}

// A device's activations are not the parameters' size: log-sum-exps and integers are 4 bytes everywhere.
func TestBytesByKind(t *testing.T) {
	s := &scope{}
	s.mem(device.Act, 8)
	s.mem(device.F32, 8)
	s.mem(device.I32, 8)
	if n := s.bytes(device.Footprint{}); n != 96 {
		t.Errorf("%d bytes with activations of float32, want 96", n)
	}
	if n := s.bytes(device.Footprint{ActBytes: 2}); n != 80 {
		t.Errorf("%d bytes with activations of bfloat16, want 80", n)
	}
}
