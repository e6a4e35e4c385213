package policy

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/golden"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// heard collects what a session says of a request.
type heard struct {
	ticket  *Ticket
	asked   Asked
	samples []Sample
}

func (h *heard) listen(e Event) {
	s := &h.samples[e.Sample]
	s.Tokens, s.LogP, s.Finish = append(s.Tokens, e.Token), append(s.LogP, e.LogP), e.Finish
}

func (h *heard) done() bool {
	return !slices.ContainsFunc(h.samples, func(s Sample) bool { return s.Finish == "" })
}

func startSession(t *testing.T, m *Model, o SessionOptions) *Session {
	t.Helper()
	s, err := m.NewSession(o)
	must(t, err)
	t.Cleanup(s.Close)
	return s
}

func addTo(t *testing.T, s *Session, a Asked) *heard {
	t.Helper()
	h := &heard{asked: a, samples: make([]Sample, a.N)}
	h.asked.Listen = h.listen
	var err error
	h.ticket, err = s.Add(h.asked)
	must(t, err)
	return h
}

func step(t *testing.T, s *Session) {
	t.Helper()
	_, err := s.Step(t.Context())
	must(t, err)
}

// randomAsked makes a request whose prompt begins like others do.
func randomAsked(random *rand.Rand, vocab int, history [][]int32, i int) Asked {
	var prompt []int32
	if len(history) > 0 && random.IntN(4) > 0 {
		from := history[random.IntN(len(history))]
		prompt = append(prompt, from[:random.IntN(len(from)+1)]...)
	}
	for range 1 + random.IntN(90) {
		prompt = append(prompt, int32(random.IntN(min(vocab, 8)))) // few different ones, so that there are chance matches too
	}
	p := plain(1 + random.IntN(40))
	p.Temperature = 0.5 + random.Float32()
	if random.IntN(3) == 0 {
		p.Greedy = true
	}
	if random.IntN(3) == 0 {
		p.TopK, p.RepetitionPenalty = 5, 1.2
	}
	p.EOS = []int32{int32(random.IntN(vocab))}
	a := Asked{Request: Request{Prompt: prompt, N: 1 + random.IntN(3), Stream: []uint64{7, uint64(i)}}, Params: p, LogProbs: -1}
	if random.IntN(2) == 0 {
		a.Adapter = "x"
	}
	return a
}

// What a request gets from a session is, on the bits, what it gets from Generate alone: whatever comes, goes, is cancelled, shares a beginning
// with it or takes its place in a cache that is too small for all.
func TestSessionGivesWhatGenerateGives(t *testing.T) {
	m := loadTiny(t, openCPU(t), "qwen2", LoadOptions{})
	must(t, m.LoadAdapter("x", golden.Path("lora", "qwen2-all-plain", "adapter")))
	for round := range 4 {
		random := rand.New(rand.NewPCG(uint64(round), 1))
		s := startSession(t, m, SessionOptions{MaxBatch: 2 + random.IntN(6), KVTokens: []int{1280, 12 * pageLen * 2}[round%2], PrefillChunk: 1 + random.IntN(64)})
		var all, ended []*heard
		var history [][]int32
		shared := 0
		for i := 0; i < 40 || slices.ContainsFunc(all, func(h *heard) bool { return !h.done() }); i++ {
			if i < 40 {
				a := randomAsked(random, m.cfg.Vocab, history, i)
				if pagesFor(len(a.Prompt)-1)+pagesFor(a.Params.MaxNewTokens) > s.cache.pages || len(a.Prompt)+a.Params.MaxNewTokens > m.cfg.MaxPositions {
					continue
				}
				all = append(all, addTo(t, s, a))
				history = append(history, a.Prompt)
			}
			if h := all[random.IntN(len(all))]; random.IntN(12) == 0 && !h.done() {
				s.Cancel(h.ticket)
				all = slices.DeleteFunc(all, func(x *heard) bool { return x == h })
				if len(all) == 0 {
					continue
				}
			}
			for range 1 + random.IntN(4) {
				step(t, s)
			}
			if i > 100000 {
				t.Fatal("the session does not get on")
			}
		}
		ended = all
		for _, h := range ended {
			shared += h.ticket.Cached()
			for k := range h.samples {
				history = append(history, append(slices.Clone(h.asked.Prompt), h.samples[k].Tokens...))
			}
		}
		if l := s.Load(); l.Running+l.Waiting != 0 || l.Free != l.Tokens {
			t.Errorf("round %d: at the end %+v", round, l)
		}
		if shared == 0 {
			t.Errorf("round %d: nothing was shared", round)
		}
		s.Close()
		m.FreeCache()
		for i, h := range ended {
			want := generate(t, m, []Request{h.asked.Request}, GenerateOptions{SamplingParams: h.asked.Params, Adapter: h.asked.Adapter})[0]
			for k, w := range want {
				got := h.samples[k]
				if !slices.Equal(got.Tokens, w.Tokens) || !slices.Equal(got.LogP, w.LogP) || got.Finish != w.Finish {
					t.Fatalf("round %d, request %d of %d tokens (%d cached), sample %d: %v %s, want %v %s", round, i, len(h.asked.Prompt), h.ticket.Cached(), k, got.Tokens, got.Finish, w.Tokens, w.Finish)
				}
			}
		}
	}
}

// A conversation that goes on finds what was computed of it, the answer included but for its last token.
func TestSessionKeepsConversations(t *testing.T) {
	m := loadTiny(t, openCPU(t), "qwen2", LoadOptions{})
	s := startSession(t, m, SessionOptions{KVTokens: 1024})
	prompt := make([]int32, 70)
	for i := range prompt {
		prompt[i] = int32(i * i % m.cfg.Vocab)
	}
	run := func(prompt []int32) *heard {
		h := addTo(t, s, Asked{Request: Request{Prompt: prompt, N: 1}, Params: greedy(10), LogProbs: -1})
		for !h.done() {
			step(t, s)
		}
		return h
	}
	first := run(prompt)
	again := run(prompt)
	if again.ticket.Cached() != 69 || !slices.Equal(again.samples[0].Tokens, first.samples[0].Tokens) {
		t.Errorf("the same prompt again: %d tokens were there, want 69", again.ticket.Cached())
	}
	next := append(append(slices.Clone(prompt), first.samples[0].Tokens...), 5, 6, 7)
	if got := run(next).ticket.Cached(); got != 79 {
		t.Errorf("of the conversation %d tokens were there, want 79", got)
	}
	other := append(slices.Clone(prompt[:50]), 9, 9, 9)
	if got := run(other).ticket.Cached(); got != 32 {
		t.Errorf("of a prompt that has 50 tokens in common %d were there, want a page of 32", got)
	}
	must(t, s.Forget(""))
	if got := run(prompt).ticket.Cached(); got != 0 {
		t.Errorf("after it was told to forget it has %d tokens", got)
	}
}

// Cancelled requests give back what they have, and nobody hears of them.
func TestSessionCancels(t *testing.T) {
	m := loadTiny(t, openCPU(t), "qwen2", LoadOptions{})
	s := startSession(t, m, SessionOptions{KVTokens: 640, MaxBatch: 2, PrefillChunk: 8})
	var all []*heard
	for i := range 5 {
		all = append(all, addTo(t, s, Asked{Request: Request{Prompt: []int32{1, 2, 3, int32(i), 5, 6, 7, 8, 9, 10, 11, 12}, N: 2}, Params: plain(100), LogProbs: -1}))
	}
	step(t, s)
	step(t, s)
	for _, h := range all {
		s.Cancel(h.ticket)
		s.Cancel(h.ticket)
	}
	if l := s.Load(); l.Running+l.Waiting != 0 || l.Free != l.Tokens {
		t.Errorf("%+v", l)
	}
	if more, err := s.Step(t.Context()); more || err != nil {
		t.Errorf("there is something to do, %v", err)
	}
	for _, h := range all {
		if h.done() {
			t.Errorf("a cancelled request ended: %+v", h.samples)
		}
	}
}

// Log-probabilities as the model says them are those of a forward pass, whatever temperature and filters do; the alternatives come first to last.
func TestSessionLogProbs(t *testing.T) {
	onDevices(t, func(t *testing.T, dev device.Device) {
		m := loadTiny(t, dev, "qwen2", LoadOptions{})
		s := startSession(t, m, SessionOptions{KVTokens: 256})
		p := plain(6)
		p.Temperature, p.TopK = 0.3, 4
		prompt := []int32{3, 1, 4, 1, 5}
		var events []Event
		a := Asked{Request: Request{Prompt: prompt, N: 1, Stream: []uint64{1}}, Params: p, LogProbs: 3, Listen: func(e Event) { events = append(events, e) }}
		_, err := s.Add(a)
		must(t, err)
		for more := true; more; {
			more, err = s.Step(t.Context())
			must(t, err)
		}
		path := slices.Clone(prompt)
		for _, e := range events {
			path = append(path, e.Token)
		}
		s.Close()
		pass, err := m.Forward(&Forest{Segments: []Segment{{Parent: Root, Tokens: path, Score: scoreFrom(len(path), len(prompt))}}}, ForwardOptions{Temperature: 1})
		must(t, err)
		defer pass.Release()
		for i, e := range events {
			if math.Abs(float64(e.Raw-pass.Output.LogP[i])) > 1e-5 {
				t.Errorf("token %d: %v, a forward pass says %v", i, e.Raw, pass.Output.LogP[i])
			}
			if len(e.Top) != 3 || e.Top[0].LogP < e.Top[1].LogP || e.Top[1].LogP < e.Top[2].LogP {
				t.Errorf("token %d: alternatives %v", i, e.Top)
			}
		}
	})
}

// What cannot be generated is refused when it is asked.
func TestSessionRefuses(t *testing.T) {
	m := loadTiny(t, openCPU(t), "qwen2", LoadOptions{})
	s := startSession(t, m, SessionOptions{KVTokens: 64})
	for want, a := range map[string]Asked{
		"need a cache of":      {Request: Request{Prompt: make([]int32, 40), N: 1}, Params: plain(60)},
		"the prompt is empty":  {Request: Request{N: 1}, Params: plain(1)},
		"temperature":          {Request: Request{Prompt: []int32{1}, N: 1}, Params: SamplingParams{Temperature: -1}},
		"no such adapter":      {Request: Request{Prompt: []int32{1}, N: 1}, Params: plain(1), Adapter: "nobody"},
		"no room in the model": {Request: Request{Prompt: make([]int32, m.cfg.MaxPositions), N: 1}, Params: plain(1)},
	} {
		if _, err := s.Add(a); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
