package trainer

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/policy"
)

// byPrompt orders rows so that those of one prompt stand together, prompts in order of first appearance, and leaves out
// the rows without a token to train on: the order in which pack lays them out and Forward returns their tokens.
func byPrompt(rows []grpo.Row) []grpo.Row {
	at := map[*grpo.Prompt]int{}
	var families [][]grpo.Row
	n := 0
	for _, r := range rows {
		if r.Own() == 0 {
			continue
		}
		i, ok := at[r.Prompt]
		if !ok {
			i = len(families)
			at[r.Prompt] = i
			families = append(families, nil)
		}
		families[i] = append(families[i], r)
		n++
	}
	out := make([]grpo.Row, 0, n)
	for _, f := range families {
		out = append(out, f...)
	}
	return out
}

// pack lays rows, in byPrompt order, out as a forest: a root per prompt, computed once, and a child per completion, whose
// trained tokens are scored.
func pack(rows []grpo.Row) *policy.Forest {
	f := &policy.Forest{}
	root := policy.Root
	var last *grpo.Prompt
	for _, r := range rows {
		if r.Prompt != last {
			root, last = len(f.Segments), r.Prompt
			f.Segments = append(f.Segments, policy.Segment{Parent: policy.Root, Tokens: r.Prompt.Tokens, ID: segmentID(r.Prompt.Tokens, nil)})
		}
		f.Segments = append(f.Segments, policy.Segment{
			Parent: root, Tokens: r.Completion.Tokens, Score: scored(r), ID: segmentID(r.Prompt.Tokens, r.Completion.Tokens),
		})
	}
	return f
}

// scored marks the tokens of r that are trained on.
func scored(r grpo.Row) []bool {
	if r.Mask != nil {
		return r.Mask
	}
	m := make([]bool, len(r.Completion.Tokens))
	for i := range m {
		m[i] = true
	}
	return m
}

// spread puts the values of the scored tokens of rows at their places among all tokens; the others get 0.
func spread(rows []grpo.Row, values []float32) []float32 {
	var out []float32
	for _, r := range rows {
		for _, m := range scored(r) {
			if !m {
				out = append(out, 0)
				continue
			}
			out = append(out, values[0])
			values = values[1:]
		}
	}
	return out
}

// gather is the inverse of spread: the values of the scored tokens. nil stays nil.
func gather(rows []grpo.Row, values []float32) []float32 {
	if values == nil {
		return nil
	}
	var out []float32
	for _, r := range rows {
		for i, m := range scored(r) {
			if m {
				out = append(out, values[i])
			}
		}
		values = values[len(r.Completion.Tokens):]
	}
	return out
}

// segmentID names a segment in dropout's counters by what it holds, so that a mask does not depend on the batch.
func segmentID(parts ...[]int32) uint32 {
	h := fnv.New32a()
	for _, p := range parts {
		binary.Write(h, binary.LittleEndian, p)
		h.Write([]byte{0})
	}
	return h.Sum32()
}

// fingerprint tells training data apart by the tokens of its n rows, in order.
func fingerprint(n int, row func(i int) []int32) string {
	h := fnv.New64a()
	for i := range n {
		binary.Write(h, binary.LittleEndian, uint32(len(row(i))))
		binary.Write(h, binary.LittleEndian, row(i))
	}
	return fmt.Sprintf("%d rows, %016x", n, h.Sum64())
}

// promptKey is a stable number for a prompt, from its ID.
func promptKey(p *grpo.Prompt) uint64 {
	h := fnv.New64a()
	h.Write([]byte(p.ID))
	return h.Sum64()
}
