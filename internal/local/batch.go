package local

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/rubicon-rl/rubicon/internal/llm"
	"github.com/rubicon-rl/rubicon/policy"
)

const (
	maxBatch = 32 // calls that are sampled together
	// cacheTokens is the size of the cache of keys and values, unless one call needs more. Calls that do not fit wait.
	cacheTokens = 1 << 14
	pageSlack   = 64 // tokens by which the cache's pages may exceed what a call has
)

// date is what chat templates see as today: always the same, so that prompts are too.
func date() time.Time { return time.Date(2025, time.January, 1, 0, 0, 0, 0, time.UTC) }

// settings are what calls that are sampled together have in common.
type settings struct {
	temperature, topP float64
	maxTokens         int
}

// job is a call that waits for its reply. reply and err are there when done is closed.
type job struct {
	model    *model
	settings settings
	request  policy.Request
	left     bool // its caller no longer waits; guarded by Transport.mu

	done  chan struct{}
	reply *llm.Reply
	err   error
}

// batch are jobs that the model computes together.
type batch struct {
	jobs   []*job
	cancel context.CancelFunc
	over   chan struct{} // closed when the model is free again
}

// await has a job done, unless ctx ends before it is.
func (t *Transport) await(ctx context.Context, j *job) (*llm.Reply, error) {
	t.enter(j)
	select {
	case <-j.done:
	case <-ctx.Done():
	}
	t.leave(j)
	select {
	case <-j.done:
		return j.reply, j.err
	default:
		return nil, ctx.Err()
	}
}

// enter puts a job into the queue, and makes sure that somebody takes it.
func (t *Transport) enter(j *job) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.queue = append(t.queue, j)
	if !t.running {
		t.running = true
		go t.run()
	}
}

// leave takes a job out of the queue. The last one who leaves a batch stops what is left of it, and waits until the model
// is free, which takes a step of generation: so nothing goes on behind the back of callers that are gone.
func (t *Transport) leave(j *job) {
	t.mu.Lock()
	j.left = true
	t.queue = slices.DeleteFunc(t.queue, func(x *job) bool { return x == j })
	b := t.batch
	if b != nil && slices.ContainsFunc(b.jobs, func(x *job) bool { return !x.left }) {
		b = nil
	}
	t.mu.Unlock()
	if b != nil {
		b.cancel()
		<-b.over
	}
}

// run computes batches until the queue is empty. Callers wait for it in leave.
func (t *Transport) run() {
	for t.more() {
		if t.Lock != nil {
			t.Lock.Lock()
		}
		ctx, cancel := context.WithCancel(context.Background())
		b := t.take(cancel)
		if len(b.jobs) > 0 {
			b.generate(ctx)
		}
		cancel()
		t.mu.Lock()
		t.batch = nil
		t.mu.Unlock()
		if t.Lock != nil {
			t.Lock.Unlock()
		}
		close(b.over)
	}
}

// more reports whether the queue holds anything; if not, the next to enter has to call run.
func (t *Transport) more() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running = len(t.queue) > 0
	return t.running
}

// take makes a batch of the jobs that go with the first one. There is none if the callers have left meanwhile.
func (t *Transport) take(cancel context.CancelFunc) *batch {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := &batch{cancel: cancel, over: make(chan struct{})}
	var rest []*job
	for _, j := range t.queue {
		if first := t.queue[0]; len(b.jobs) < maxBatch && j.settings == first.settings && j.model == first.model {
			b.jobs = append(b.jobs, j)
		} else {
			rest = append(rest, j)
		}
	}
	t.queue, t.batch = rest, b
	return b
}

// generate gives each job its reply as soon as it is there.
func (b *batch) generate(ctx context.Context) {
	m, s := b.jobs[0].model, b.jobs[0].settings
	o := policy.GenerateOptions{MaxBatch: maxBatch, KVTokens: cacheTokens}
	o.SamplingParams = policy.SamplingParams{
		Temperature: float32(s.temperature), Greedy: s.temperature == 0, TopP: float32(s.topP), RepetitionPenalty: 1,
		MaxNewTokens: s.maxTokens, EOS: m.eos,
	}
	reqs := make([]policy.Request, len(b.jobs))
	for i, j := range b.jobs {
		reqs[i] = j.request
		n := len(j.request.Prompt)
		o.KVTokens = max(o.KVTokens, n+min(s.maxTokens, m.Config().MaxPositions-n)+pageSlack)
	}
	waiting := map[int]bool{}
	for i := range b.jobs {
		waiting[i] = true
	}
	o.OnSample = func(i, _ int, sample policy.Sample) {
		delete(waiting, i)
		b.jobs[i].finish(sample)
	}
	_, err := m.Generate(ctx, reqs, o)
	for i := range waiting {
		b.jobs[i].err = err
		close(b.jobs[i].done)
	}
}

func (j *job) finish(s policy.Sample) {
	j.reply = &llm.Reply{
		Text: j.model.tok.Decode(s.Tokens, true), Truncated: s.Finish == policy.FinishLength,
		PromptTokens: len(j.request.Prompt), CompletionTokens: len(s.Tokens),
	}
	if strings.TrimSpace(j.reply.Text) == "" {
		j.err = llm.ErrEmpty
	}
	close(j.done)
}
