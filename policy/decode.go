package policy

import (
	"context"
	"fmt"
	"slices"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// decoder computes the steps of generation: it feeds tokens to the model and draws the next ones.
type decoder struct {
	m     *Model
	net   *net
	queue *queue
	o     *GenerateOptions

	stack, view *stack // for the most rows; for this step's
	rows        rows
	at, pick    device.Mem // [T] rows of the cache; [N] rows to draw from
	hidden      device.Mat // [MaxBatch,D]
	logits      device.Mat // [some,V] F32

	// The step's rows on the host.
	ids, pos, cacheAt, from []int32
	drawing                 []*sequence // the sequence of each row of from
	sample                  []device.SampleRow
	out                     device.SampleOut
	replies                 replies
}

// maxLogits bounds the logits of a step that are in memory at a time, in elements.
const maxLogits = 1 << 24

func (m *Model) decoder(s *scope, o *GenerateOptions) *decoder {
	t, n := o.MaxBatch+o.PrefillChunk, o.MaxBatch
	d := &decoder{m: m, o: o, stack: m.stack(s, t, keepNothing)}
	d.view = &stack{keep: keepNothing, acts: make([]acts, len(d.stack.acts))}
	d.at, d.pick = s.mem(device.I32, t), s.mem(device.I32, n)
	d.rows = rows{ids: s.mem(device.I32, t), pos: s.mem(device.I32, t)}
	d.hidden = s.mat(device.Act, n, m.cfg.Width)
	d.logits = s.mat(device.F32, min(n, max(1, maxLogits/m.cfg.Vocab)), m.cfg.Vocab)
	d.sample = make([]device.SampleRow, n)
	d.out = device.SampleOut{IDs: make([]int32, n), LogP: make([]float32, n), Filtered: make([]float32, n)}
	return d
}

// run generates until every sample has ended, and calls done with each.
func (d *decoder) run(ctx context.Context, done func(*sequence)) error {
	defer d.replies.open(ctx, len(d.queue.waiting))()
	for len(d.queue.running)+len(d.queue.waiting) > 0 {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("policy: generation stopped: %w", err)
		}
		finished, err := d.step(ctx)
		if err != nil {
			return err
		}
		for _, s := range finished {
			done(s)
		}
	}
	return nil
}

// step begins what there is room for, feeds one step's tokens, draws, and returns the samples that ended.
func (d *decoder) step(ctx context.Context) ([]*sequence, error) {
	q := d.queue
	q.admit()
	finished, err := d.collect(ctx)
	if err != nil || q.idle() {
		return finished, err
	}
	d.ids, d.pos, d.cacheAt, d.from = d.ids[:0], d.pos[:0], d.cacheAt[:0], d.from[:0]
	d.rows.tasks, d.drawing = d.rows.tasks[:0], d.drawing[:0]
	d.assemble()
	d.forward()
	if err := d.draw(); err != nil {
		return nil, err
	}
	for i, s := range d.drawing {
		if !s.take(d.out.IDs[i], d.out.LogP[i], d.out.Filtered[i]) {
			continue
		}
		s.endTurn()
		if s.replier != nil && len(s.generated()) < s.limit {
			d.replies.ask(s)
			continue
		}
		finished = append(finished, s)
		q.leave(s, true)
	}
	return finished, nil
}

// assemble chooses the step's rows: of every running sample whose prompt is fed the tokens that are not, and as many
// tokens of prompts as the chunk has room for.
func (d *decoder) assemble() {
	q, room := d.queue, d.o.PrefillChunk
	for i := 0; i < len(q.running); i++ {
		s := q.running[i]
		if s.parked || s.parent.fed < len(s.parent.tokens) {
			continue
		}
		n := len(s.tokens) - s.fed
		if n > 1 { // it was begun before and has to be computed again
			n = min(n, room)
			room -= n
		}
		if n == 0 || !q.makeRoom(s, s.fed+n) {
			continue
		}
		d.feed(&s.node, n)
		if s.fed == len(s.tokens) {
			d.from = append(d.from, int32(len(d.ids)-1))
			d.drawing = append(d.drawing, s)
		}
	}
	for room > 0 && len(q.prompts) > 0 {
		p := q.prompts[0]
		n := min(room, len(p.tokens)-p.fed)
		d.feed(p, n)
		room -= n
		if p.fed == len(p.tokens) {
			q.prompts = q.prompts[1:]
		}
	}
}

// feed appends the node's next n tokens to the step.
func (d *decoder) feed(n *node, count int) {
	pos := n.start() + n.fed
	d.rows.tasks = append(d.rows.tasks, device.AttentionTask{Q: device.Span{Row: len(d.ids), N: count}, Pos: pos, Keys: n.path})
	for i := range count {
		d.ids = append(d.ids, n.tokens[n.fed+i])
		d.pos = append(d.pos, int32(pos+i))
		d.cacheAt = append(d.cacheAt, int32(n.row(n.fed+i)))
	}
	n.fed += count
}

// forward computes the last hidden states of the rows to draw from.
func (d *decoder) forward() {
	dev, t := d.m.dev, len(d.ids)
	dev.UploadInts(d.rows.ids, 0, d.ids)
	dev.UploadInts(d.rows.pos, 0, d.pos)
	dev.UploadInts(d.at, 0, d.cacheAt)
	d.rows.n, d.rows.cache = t, &cacheRows{d.queue.cache, d.at}
	d.stack.first(t, d.view)
	d.net.forward(&d.rows, d.view)
	if n := len(d.from); n > 0 {
		dev.UploadInts(d.pick, 0, d.from)
		dev.GatherRows(d.hidden.RowsOf(0, n), d.view.final, d.pick)
	}
}

// first makes view a stack of the first t rows of st, which keeps nothing.
func (st *stack) first(t int, view *stack) {
	a := st.acts[0]
	for _, x := range []*device.Mat{&a.x, &a.h, &a.qkv, &a.qk, &a.o, &a.mid, &a.h2, &a.gu, &a.gate} {
		*x = x.RowsOf(0, t)
	}
	for l := range view.acts {
		view.acts[l] = a
	}
	view.y, view.last, view.final = st.y.RowsOf(0, t), st.last.RowsOf(0, t), st.final.RowsOf(0, t)
}

// draw samples a token for every row of d.from.
func (d *decoder) draw() error {
	dev, n := d.m.dev, len(d.from)
	for i, s := range d.drawing {
		var err error
		if d.sample[i], err = s.row(); err != nil {
			return err
		}
	}
	for i := 0; i < n; i += d.logits.Rows {
		j := min(i+d.logits.Rows, n)
		logits := d.logits.RowsOf(0, j-i)
		dev.Logits(logits, d.hidden.RowsOf(i, j), d.m.head)
		if err := d.alternatives(logits, i, j); err != nil {
			return err
		}
		out := device.SampleOut{IDs: d.out.IDs[i:j], LogP: d.out.LogP[i:j], Filtered: d.out.Filtered[i:j]}
		dev.Sample(out, logits, d.sample[i:j])
	}
	return dev.Err()
}

// admit begins waiting samples, in order, while there is room: for the tokens that they begin with, and for another
// page of each running one.
func (q *queue) admit() {
	for len(q.waiting) > 0 && len(q.running) < q.maxBatch {
		s := q.waiting[0]
		need := pagesFor(len(s.tokens))
		if s.parent.users == 0 {
			q.kept.place(s.parent)
			need += pagesFor(len(s.parent.tokens))
		}
		if q.cache.free+q.kept.spare() < need+len(q.running) {
			if s.parent.users == 0 {
				q.kept.take(q, s.parent)
			}
			return
		}
		if s.parent.users == 0 && len(s.parent.tokens) > 0 {
			q.hold(s.parent, len(s.parent.tokens))
			q.prompts = append(q.prompts, s.parent)
		}
		s.parent.users++
		q.running = append(q.running, s)
		q.waiting = q.waiting[1:]
	}
}

// makeRoom takes pages for the first count tokens of a running sample, from the samples begun last if there are no
// others; false if those include this one, which then waits too.
func (q *queue) makeRoom(s *sequence, count int) bool {
	for !q.hold(&s.node, count) {
		last := q.running[len(q.running)-1]
		q.leave(last, false)
		q.waiting = slices.Insert(q.waiting, 0, last)
		if last == s {
			return false
		}
	}
	return true
}

// hold takes pages for a node's first count tokens, from what is kept for later requests if there are no others.
func (q *queue) hold(n *node, count int) bool {
	return q.cache.hold(n, count) || q.kept.evict(pagesFor(count)-len(n.pages)-q.cache.free) && q.cache.hold(n, count)
}

// leave takes s from the running samples, its pages from it, and, if it is the last of its prompt, the prompt's. One that
// had to wait has none. keep says that what was computed may serve later requests.
func (q *queue) leave(s *sequence, keep bool) {
	is := func(r *sequence) bool { return r == s }
	if !slices.ContainsFunc(q.running, is) {
		q.waiting = slices.DeleteFunc(q.waiting, is)
		return
	}
	q.running = slices.DeleteFunc(q.running, is)
	if q.kept != nil && keep {
		q.kept.keep(s)
	}
	q.cache.drop(&s.node)
	s.parent.users--
	switch {
	case s.parent.users > 0:
	case q.kept != nil:
		q.kept.retire(q, s.parent)
	default:
		q.cache.drop(s.parent)
		q.prompts = slices.DeleteFunc(q.prompts, func(p *node) bool { return p == s.parent })
	}
}
