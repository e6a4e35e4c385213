package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// talk is a Replier with so many turns: what it says depends on what it was told, and it takes its time differently for each
// sample, so that samples overtake each other.
func talk(turns int) Replier {
	return func(_ context.Context, sample int, turn []int32, finish string) (Reply, error) {
		time.Sleep(time.Duration(sample%3) * time.Millisecond)
		if int(turn[0])%7 == 0 || finish == FinishStop {
			return Reply{}, nil
		}
		r := Reply{MaxNewTokens: 3 + sample}
		for i := range 5 + len(turn)%40 {
			r.Tokens = append(r.Tokens, (turn[len(turn)-1]+int32(i*31+turns))%990)
		}
		return r, nil
	}
}

func talking(dev device.Device) []Request {
	reqs := mixedRequests(dev)
	for i := range reqs {
		reqs[i].Reply, reqs[i].MaxTokens = talk(i), 90
		if isReference(dev) {
			reqs[i].MaxTokens = 30
		}
	}
	return reqs
}

// Turns are the sample's own tokens: they cover what LogP and Filtered say something of, and nothing else.
func checkTurns(t *testing.T, s Sample, most int) {
	t.Helper()
	own := make([]bool, len(s.Tokens))
	for _, turn := range s.Turns {
		for i := turn.Start; i < turn.End; i++ {
			own[i] = true
		}
	}
	for i := range own {
		if own[i] != (s.LogP[i] != 0) || !own[i] && s.Filtered[i] != 0 {
			t.Errorf("token %d of %v: log-probabilities %v, %v", i, s.Turns, s.LogP[i], s.Filtered[i])
		}
	}
	if len(s.Turns) == 0 || s.Turns[0].Start != 0 || s.Turns[len(s.Turns)-1].End != len(s.Tokens) || len(s.Tokens) > most {
		t.Errorf("turns %v of %d tokens, at most %d", s.Turns, len(s.Tokens), most)
	}
}

// Episodes have the same bits whatever is generated beside them, however slow the replies are, and when the cache is so
// small that samples that wait for a reply are dropped from it; and the bits of a forward pass over each as a whole.
func TestTurnsDoNotDependOnTheBatch(t *testing.T) {
	onDevices(t, func(t *testing.T, dev device.Device) {
		m, reqs, p := loadTiny(t, dev, "qwen3", LoadOptions{}), talking(dev), mixedParams(dev, 1)
		want := generate(t, m, reqs, GenerateOptions{SamplingParams: p})
		several := 0
		for i, r := range reqs {
			for _, s := range want[i] {
				checkTurns(t, s, r.MaxTokens)
				if len(s.Turns) > 1 {
					several++
				}
				checkEpisode(t, m, r, s, ForwardOptions{Temperature: p.Temperature})
			}
		}
		if several < len(reqs) {
			t.Fatalf("%d episodes with more than a turn: the test says little", several)
		}
		for _, o := range []GenerateOptions{{MaxBatch: 1}, {MaxBatch: 5, PrefillChunk: 7}, {KVTokens: 192, MaxBatch: 6}} {
			o.SamplingParams = p
			checkSamples(t, fmt.Sprintf("%+v", o), generate(t, m, reqs, o), want)
			m.FreeCache()
		}
	})
}

func checkEpisode(t *testing.T, m *Model, r Request, s Sample, o ForwardOptions) {
	t.Helper()
	score := make([]bool, len(r.Prompt)+len(s.Tokens))
	var own []float32
	for _, turn := range s.Turns {
		for i := turn.Start; i < turn.End; i++ {
			score[len(r.Prompt)+i] = true
			own = append(own, s.LogP[i])
		}
	}
	whole := append(slices.Clone(r.Prompt), s.Tokens...)
	f := &Forest{Segments: []Segment{{Parent: Root, Tokens: whole, Score: score}}}
	checkBits(t, "logp of an episode", forward(t, m, f, o).LogP, own)
}

// A turn ends by its own limit, and stop strings of earlier turns and replies do not end later ones.
func TestTurnLimits(t *testing.T) {
	onDevices(t, func(t *testing.T, dev device.Device) {
		m := loadTiny(t, dev, "qwen2", LoadOptions{})
		p := plain(4)
		p.Stop, p.Decode = []string{"<1>"}, func(ids []int32) (text string) {
			for _, id := range ids {
				text += fmt.Sprintf("<%d>", id)
			}
			return text
		}
		reply := func(_ context.Context, _ int, _ []int32, finish string) (Reply, error) {
			if finish != FinishLength {
				t.Errorf("a turn ends by %s", finish)
			}
			return Reply{Tokens: []int32{1, 1, 1}, MaxNewTokens: 6}, nil
		}
		got := generate(t, m, []Request{{Prompt: []int32{5, 6}, N: 1, Reply: reply, MaxTokens: 30}}, GenerateOptions{SamplingParams: p})[0][0]
		// 4, then three times 3 and 6, which would be 31: the last turn has 5.
		want := []Turn{{0, 4}, {7, 13}, {16, 22}, {25, 30}}
		if !slices.Equal(got.Turns, want) || got.Finish != FinishLength || len(got.Tokens) != 30 {
			t.Errorf("turns %v, finish %s, %d tokens, want %v", got.Turns, got.Finish, len(got.Tokens), want)
		}
	})
}

// What goes wrong in a reply ends the generation with the place, and no call is left behind.
func TestRepliesThatFail(t *testing.T) {
	onDevices(t, func(t *testing.T, dev device.Device) {
		m := loadTiny(t, dev, "qwen2", LoadOptions{})
		for name, c := range map[string]struct {
			reply Reply
			err   error
			says  []string
		}{
			"error":    {err: errors.New("the tool is gone"), says: []string{"request 1", "turn 1", "the tool is gone"}},
			"bad id":   {reply: Reply{Tokens: []int32{1 << 20}}, says: []string{"request 1", "turn 1", "1048576"}},
			"no token": {},
		} {
			still := func(context.Context, int, []int32, string) (Reply, error) { return Reply{}, nil }
			bad := func(context.Context, int, []int32, string) (Reply, error) { return c.reply, c.err }
			reqs := []Request{{Prompt: []int32{5}, N: 2, Reply: still}, {Prompt: []int32{6}, N: 1, Reply: bad}}
			samples, err := m.Generate(t.Context(), reqs, GenerateOptions{SamplingParams: plain(3)})
			if c.says == nil {
				must(t, err)
				if n := len(samples[1][0].Turns); n != 1 {
					t.Errorf("%s: %d turns", name, n)
				}
				continue
			}
			wantError(t, err, c.says...)
		}
		ctx, cancel := context.WithCancel(t.Context())
		slow := func(ctx context.Context, _ int, _ []int32, _ string) (Reply, error) {
			cancel()
			<-ctx.Done()
			return Reply{}, ctx.Err()
		}
		if _, err := m.Generate(ctx, []Request{{Prompt: []int32{5}, N: 1, Reply: slow}}, GenerateOptions{SamplingParams: plain(3)}); !errors.Is(err, context.Canceled) {
			t.Errorf("a cancelled wait gives %v", err)
		}
	})
}
