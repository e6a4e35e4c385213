package policy

import (
	"fmt"
	"slices"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// stairs lets token n of a sample be one of those that leave n%7 when divided by 7, and ends behind length tokens.
type stairs struct {
	t      *testing.T
	length int
	eos    int32
}

func (s *stairs) Least() int     { return s.length + 1 }
func (s *stairs) Begin() Matcher { return &climber{stairs: s} }

type climber struct {
	*stairs
	at int
}

func (c *climber) Mask(allowed []uint64, remaining int) error {
	if remaining < c.length+1-c.at {
		return fmt.Errorf("%d tokens left on step %d", remaining, c.at)
	}
	clear(allowed)
	for id := int32(c.at % 7); id < 990 && c.at < c.length; id += 7 {
		if id != c.eos {
			allowed[id/64] |= 1 << (id % 64)
		}
	}
	if c.at == c.length {
		allowed[c.eos/64] |= 1 << (c.eos % 64)
	}
	return nil
}

func (c *climber) Accept(id int32) {
	if c.at < c.length && int(id)%7 != c.at%7 || c.at == c.length && id != c.eos {
		c.t.Errorf("step %d: token %d is not allowed", c.at, id)
	}
	c.at++
}

// Constrained samples follow their constraint and end by themselves; beside them the others keep their bits. None of it
// depends on the batch, on waiting or on being computed again. It catches a state that does not follow the tokens.
func TestConstrainedSamples(t *testing.T) {
	onDevices(t, func(t *testing.T, dev device.Device) {
		m := loadTiny(t, dev, "qwen3", LoadOptions{})
		p := mixedParams(dev, 0)
		free := mixedRequests(dev)
		reqs := slices.Clone(free)
		length := p.MaxNewTokens - 2
		for i := range reqs {
			if i%2 == 0 {
				reqs[i].Constraint = &stairs{t: t, length: length, eos: p.EOS[0]}
			}
		}
		for v := range 3 {
			p := mixedParams(dev, v)
			p.EOS = p.EOS[:1]
			unbound := generate(t, m, free, GenerateOptions{SamplingParams: p})
			want := generate(t, m, reqs, GenerateOptions{SamplingParams: p})
			for i := range reqs {
				if reqs[i].Constraint == nil {
					checkSamples(t, "beside constrained ones", want[i:i+1], unbound[i:i+1])
				}
				for _, s := range want[i] {
					if reqs[i].Constraint != nil && (len(s.Tokens) != length+1 || s.Finish != FinishEOS) {
						t.Errorf("request %d: %d tokens, finish %q", i, len(s.Tokens), s.Finish)
					}
				}
			}
			for _, o := range []GenerateOptions{{MaxBatch: 1}, {KVTokens: 160}, {MaxBatch: 3, KVTokens: 224, PrefillChunk: 7}} {
				o.SamplingParams = p
				checkSamples(t, fmt.Sprintf("%+v", o), generate(t, m, reqs, o), want)
				m.FreeCache()
			}
			checkAgreement(t, m, reqs, want, ForwardOptions{Temperature: p.Temperature})
		}
	})
}

func TestConstraintRefuses(t *testing.T) {
	m := loadTiny(t, openCPU(t), "qwen2", LoadOptions{})
	reqs := []Request{{Prompt: []int32{1, 2}, N: 1, Constraint: &stairs{t: t, length: 9, eos: 3}}}
	p := plain(9)
	_, err := m.Generate(t.Context(), reqs, GenerateOptions{SamplingParams: p})
	wantError(t, err, "request 0", "at least 10 tokens", "raise max new tokens")

	p = plain(20)
	p.Stop, p.Decode = []string{"x"}, func([]int32) string { return "" }
	_, err = m.Generate(t.Context(), reqs, GenerateOptions{SamplingParams: p})
	wantError(t, err, "request 0", "stop string")

	reqs[0].Prompt = make([]int32, m.cfg.MaxPositions-5)
	_, err = m.Generate(t.Context(), reqs, GenerateOptions{SamplingParams: plain(20)})
	wantError(t, err, "room for 5", "shorten the prompt")
}
