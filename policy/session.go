package policy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// SessionOptions say how much a session computes at a time and keeps.
type SessionOptions struct {
	MaxBatch     int // samples generated at a time, of each adapter set; 0: 64
	KVTokens     int // size of the cache of keys and values, tokens; it is taken at once
	PrefillChunk int // prompt tokens that a step computes beside the samples' tokens; 0: 256
}

// Session generates continuously: requests come and go between two steps, each with its own sampling and adapter set, and share what
// is computed of the beginnings that they have in common, also with requests that have ended. What a request gets depends, on an Invariant
// device, on nothing else. While there is a session, nothing else may generate with the model. It is for one goroutine.
type Session struct {
	m       *Model
	o       GenerateOptions
	mem     *scope
	d       *decoder
	cache   *cache
	shelf   *shelf
	lanes   map[string]*lane // by adapter set
	turn    string           // the lane that had the last step
	arrived int
}

// lane is the requests of one adapter set.
type lane struct {
	queue
	set *adapter
}

// Asked is a request of a session.
type Asked struct {
	Request
	Params  SamplingParams
	Adapter string // "": the frozen weights alone
	// LogProbs asks for the log-probabilities of tokens and of so many alternatives, as the model says them, before temperature, filters and
	// penalties; -1: none.
	LogProbs int
	// Listen is called with every token, within Step. nil: nobody is told.
	Listen func(Event)
}

// Event is a token of a sample.
type Event struct {
	Sample int
	Token  int32
	LogP   float32     // under the temperature, as Sample.LogP
	Raw    float32     // as the model says it; 0 unless LogProbs asked for it
	Top    []TokenLogP // the likeliest tokens, likeliest first
	Finish string      // of the last token: how the sample ended; else ""
}

// TokenLogP is a token with its log-probability.
type TokenLogP struct {
	Token int32
	LogP  float32
}

// Ticket names a request of a session.
type Ticket struct {
	lane *lane
	seqs []*sequence
}

// NewSession takes the memory of a session.
func (m *Model) NewSession(o SessionOptions) (*Session, error) {
	g := GenerateOptions{MaxBatch: o.MaxBatch, PrefillChunk: o.PrefillChunk}.withDefaults()
	if g.MaxBatch < 1 || g.PrefillChunk < 1 {
		return nil, fmt.Errorf("policy: a session with max batch %d and prefill chunk %d: give positive ones", g.MaxBatch, g.PrefillChunk)
	}
	if o.KVTokens < pageLen {
		return nil, fmt.Errorf("policy: a session with a cache of %d tokens: give at least %d", o.KVTokens, pageLen)
	}
	if err := m.needPositions(min(o.KVTokens, m.cfg.MaxPositions)); err != nil {
		return nil, err
	}
	c, err := m.needCache(o.KVTokens / pageLen)
	if err != nil {
		return nil, err
	}
	s := &Session{m: m, o: g, mem: m.pool.scope(), cache: c, shelf: &shelf{cache: c}, lanes: map[string]*lane{}}
	s.d = m.decoder(s.mem, &s.o)
	if s.mem.err != nil {
		s.mem.release()
		return nil, s.mem.err
	}
	return s, nil
}

// Close gives the session's memory back to the model.
func (s *Session) Close() { s.mem.release() }

// Add takes a request in. What can never be generated is an error.
func (s *Session) Add(a Asked) (*Ticket, error) {
	o := s.o
	o.SamplingParams = a.Params
	if err := o.check(); err != nil {
		return nil, err
	}
	if a.Reply != nil {
		return nil, errors.New("policy: a session has no episodes")
	}
	if err := s.m.checkRequest(&a.Request); err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	n := len(a.Prompt)
	limit := a.limit(&o, s.m.cfg.MaxPositions-n)
	if err := a.checkConstraint(limit, &a.Params); err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	if need := pagesFor(n-1) + pagesFor(limit); need > s.cache.pages {
		return nil, fmt.Errorf("policy: the prompt of %d tokens and %d more need a cache of %d, there are %d: ask for fewer tokens, or give the session more", n, limit, need*pageLen, s.cache.pages*pageLen)
	}
	l, err := s.lane(a.Adapter)
	if err != nil {
		return nil, err
	}
	t := &Ticket{lane: l}
	prompt := &node{tokens: a.Prompt[:n-1]}
	for k := range a.N {
		q := s.m.sequence(prompt, &a.Request, s.arrived, k, limit, &o)
		q.listen, q.top = a.Listen, a.LogProbs
		t.seqs = append(t.seqs, q)
	}
	s.arrived++
	l.waiting = append(l.waiting, t.seqs...)
	return t, nil
}

func (s *Session) lane(adapter string) (*lane, error) {
	set, err := s.m.named(adapter)
	if err != nil {
		return nil, err
	}
	l := s.lanes[adapter]
	if l == nil {
		l = &lane{queue: queue{cache: s.cache, maxBatch: s.o.MaxBatch}}
		l.kept = s.shelf.prefixes()
		s.lanes[adapter] = l
	}
	l.set = set
	return l, nil
}

// Cached is how many of the prompt's tokens were there already when the request was begun.
func (t *Ticket) Cached() int {
	p := t.seqs[0].parent
	if p.whole == nil {
		return 0
	}
	return p.cached
}

// Cancel ends a request's samples that have not ended; nobody is told. What was computed may still serve others.
func (s *Session) Cancel(t *Ticket) {
	for _, q := range t.seqs {
		if q.finish == "" {
			q.finish = "cancelled"
			t.lane.leave(q, true)
		}
	}
}

// Forget drops what is kept of an adapter set, whose weights are to change. It must have no requests.
func (s *Session) Forget(adapter string) error {
	l := s.lanes[adapter]
	if l == nil {
		return nil
	}
	if n := len(l.running) + len(l.waiting); n > 0 {
		return fmt.Errorf("policy: adapter set %q has %d samples in the making", adapter, n)
	}
	l.kept.forget()
	delete(s.lanes, adapter)
	return nil
}

// SessionLoad is what a session has to do and has room for.
type SessionLoad struct {
	Running, Waiting int // samples
	Tokens, Free     int // room for keys and values, tokens; what is kept for later requests counts as free
}

// Load tells how busy the session is.
func (s *Session) Load() SessionLoad {
	l := SessionLoad{Tokens: s.cache.pages * pageLen, Free: (s.cache.free + s.shelf.idle) * pageLen}
	for _, lane := range s.lanes {
		l.Running, l.Waiting = l.Running+len(lane.running), l.Waiting+len(lane.waiting)
	}
	return l
}

// Busy says whether there is anything to generate.
func (s *Session) Busy(adapter string) bool {
	l := s.lanes[adapter]
	return l != nil && len(l.running)+len(l.waiting) > 0
}

// Step computes one step of one adapter set, those that have something to do by turns, and tells the listeners. false: there is nothing to do.
func (s *Session) Step(ctx context.Context) (bool, error) {
	name, ok := s.next()
	if !ok {
		return false, nil
	}
	l := s.lanes[name]
	s.turn = name
	s.d.queue, s.d.net, s.d.drawing = &l.queue, s.m.net(netOptions{set: l.set}), s.d.drawing[:0]
	_, err := s.d.step(ctx)
	if err != nil {
		return true, err
	}
	if len(l.waiting) > 0 && s.Load().Running == 0 { // what is kept stands in the way of the first that waits: its own beginning, on more pages than it needs
		l.kept.evict(l.kept.spare())
	}
	for i, q := range s.d.drawing {
		e := Event{Sample: q.sample, Token: s.d.out.IDs[i], LogP: s.d.out.LogP[i], Finish: q.finish}
		if q.top >= 0 {
			e.Raw, e.Top = q.said(e.Token)
		}
		if q.listen != nil {
			q.listen(e)
		}
	}
	return true, nil
}

// next is the adapter set whose turn it is: the first one behind the last that has something to do.
func (s *Session) next() (string, bool) {
	names := slices.Sorted(maps.Keys(s.lanes))
	at, found := slices.BinarySearch(names, s.turn)
	if found {
		at++
	}
	for i := range names {
		if name := names[(at+i)%len(names)]; s.Busy(name) {
			return name, true
		}
	}
	return "", false
}

// alternatives notes the log-probabilities of the rows [i, j) of a step that wants them.
func (d *decoder) alternatives(logits device.Mat, i, j int) error {
	for k := i; k < j; k++ {
		s := d.drawing[k]
		if s.listen == nil || s.top < 0 {
			continue
		}
		row, err := d.m.download(logits.RowsOf(k-i, k-i+1))
		if err != nil {
			return err
		}
		s.said = distribution(row, s.top)
	}
	return nil
}

// distribution returns what the model says of a token, given logits [V], and the top likeliest tokens.
func distribution(logits []float32, top int) func(token int32) (float32, []TokenLogP) {
	most := float64(slices.Max(logits))
	sum := 0.0
	for _, x := range logits {
		sum += math.Exp(float64(x) - most)
	}
	norm := most + math.Log(sum)
	logp := func(id int32) float32 { return float32(float64(logits[id]) - norm) }
	best := likeliest(logits, top)
	list := make([]TokenLogP, len(best))
	for i, id := range best {
		list[i] = TokenLogP{id, logp(id)}
	}
	return func(token int32) (float32, []TokenLogP) { return logp(token), list }
}

// likeliest are the ids of the n largest logits, the largest first, equal ones by id.
func likeliest(logits []float32, n int) []int32 {
	var best []int32
	less := func(a, b int32) int { return cmp.Or(cmp.Compare(logits[b], logits[a]), cmp.Compare(a, b)) }
	for id := range logits {
		if len(best) == n && (n == 0 || logits[id] <= logits[best[n-1]]) {
			continue
		}
		at, _ := slices.BinarySearchFunc(best, int32(id), less)
		best = slices.Insert(best, at, int32(id))
		best = best[:min(len(best), n)]
	}
	return best
}
