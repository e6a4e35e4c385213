package policy

import (
	"strings"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// Finish reasons of a Sample.
const (
	FinishEOS    = "eos"    // it ends in an end-of-sequence token
	FinishStop   = "stop"   // its text contains a stop string
	FinishLength = "length" // it has MaxNewTokens tokens, or the context is full
)

// sequence is one sample in the making. Its node holds the prompt's last token and then what was generated, so that its
// first step is like all others.
type sequence struct {
	node
	request, sample int
	params          *SamplingParams
	limit           int // tokens at most, replies included
	turn, end       int // where the current turn begins, and has to end, in generated
	turns           []Turn
	replier         Replier // nil: the sample has one turn
	parked          bool    // it waits for a reply
	key             device.PhiloxKey
	logp, filtered  []float32
	finish          string
	seen            []int32  // distinct tokens so far, if they are penalised
	have            []uint64 // the same as a bit set
	matcher         Matcher  // of the request's constraint, nil if it has none
	allowed         []uint64 // what matcher wrote last

	// Of a session:
	listen func(Event)
	top    int                                      // alternatives to each token that are wanted; -1: none, nor its own log-probability
	said   func(token int32) (float32, []TokenLogP) // of the token drawn last
}

// generated are the tokens so far.
func (s *sequence) generated() []int32 { return s.tokens[1:] }

// see notes tokens for the repetition penalty.
func (s *sequence) see(ids ...int32) {
	for _, id := range ids {
		if bit := uint64(1) << (id % 64); s.have[id/64]&bit == 0 {
			s.have[id/64] |= bit
			s.seen = append(s.seen, id)
		}
	}
}

// row says how the sequence's next token is drawn.
func (s *sequence) row() (device.SampleRow, error) {
	p := s.params
	allowed, err := s.mask()
	r := device.SampleRow{
		Temp: p.Temperature, Greedy: p.Greedy, TopK: p.TopK, TopP: p.TopP, MinP: p.MinP, Penalty: p.RepetitionPenalty,
		Seen: s.seen, Allowed: allowed, Key: s.key, Index: uint32(len(s.generated())),
	}
	if r.Greedy && r.Temp == 0 {
		r.Temp = 1
	}
	return r, err
}

// take appends a token that was drawn and decides whether the turn ends with it.
func (s *sequence) take(id int32, logp, filtered float32) (done bool) {
	s.tokens = append(s.tokens, id)
	s.logp, s.filtered = append(s.logp, logp), append(s.filtered, filtered)
	if s.have != nil {
		s.see(id)
	}
	if s.matcher != nil {
		s.matcher.Accept(id)
	}
	switch {
	case s.params.ends(id):
		s.finish = FinishEOS
	case s.params.stops(s.generated()[s.turn:]):
		s.finish = FinishStop
	case len(s.generated()) >= s.end:
		s.finish = FinishLength
	}
	return s.finish != ""
}

func (p *SamplingParams) ends(id int32) bool {
	for _, eos := range p.EOS {
		if id == eos {
			return true
		}
	}
	return false
}

// stopSlack is how many tokens before a stop string are decoded with it: special tokens may decode to nothing, and a
// character may be cut at the front.
const stopSlack = 16

// stops reports whether the text of the last tokens contains a stop string. Earlier ones were seen when they were new.
func (p *SamplingParams) stops(ids []int32) bool {
	if len(p.Stop) == 0 {
		return false
	}
	longest := 0
	for _, stop := range p.Stop {
		longest = max(longest, len(stop))
	}
	text := p.Decode(ids[max(0, len(ids)-longest-stopSlack):])
	for _, stop := range p.Stop {
		if strings.Contains(text, stop) {
			return true
		}
	}
	return false
}

// result is the finished sample.
func (s *sequence) result() Sample {
	r := Sample{Tokens: s.generated(), LogP: s.logp, Filtered: s.filtered, Finish: s.finish}
	if s.replier != nil {
		r.Turns = s.turns
	}
	return r
}
