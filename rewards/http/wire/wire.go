// Package wire is the messages between a run and a scorer of the user's own: what the kind http posts to a reward server
// and the kind exec writes to a command, and what both read back. A request is
//
//	{"version": 1, "step": 12, "items": [
//	  {"id": "12/0", "prompt_id": "train.jsonl:8", "prompt": "2 + 2 =", "completion": "4", "completion_ids": [19, 2],
//	   "truncated": false, "columns": {"answer": 4}}]}
//
// and its reply has one result for each item, in the same order and under the same id:
//
//	{"results": [{"id": "12/0", "score": 1.0, "reason": "right",
//	  "parts": [{"name": "number", "weight": 1, "credit": 1, "reason": "is 4"}]}]}
package wire

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/rewards"
)

// Version stands in every request. A reply may leave it out.
const Version = 1

// Request is a batch to score.
type Request struct {
	Version int    `json:"version"`
	Step    int    `json:"step"`  // from 0; -1: held-out prompts
	Items   []Item `json:"items"` // empty: the run only asks whether the scorer is there
}

// Item is one completion.
type Item struct {
	ID            string         `json:"id"` // step/index, to be given back
	PromptID      string         `json:"prompt_id"`
	Prompt        string         `json:"prompt,omitempty"`   // of a prompt that is plain text
	Messages      []grpo.Message `json:"messages,omitempty"` // of a prompt that is a conversation: {role, content}
	Completion    string         `json:"completion"`
	CompletionIDs []int32        `json:"completion_ids"` // its tokens
	Truncated     bool           `json:"truncated"`      // the length limit cut it
	Columns       map[string]any `json:"columns"`        // the row's columns that the option columns names
}

// Columns are the names of the data columns that a scorer is sent; nil: all of them.
type Columns []string

// Check returns what is wrong with the columns of a row.
func (c Columns) Check(row *grpo.Prompt) error {
	columns, err := c.of(row)
	if err == nil {
		if _, err = json.Marshal(columns); err != nil {
			err = fmt.Errorf("the row's columns cannot be sent: %w: name the ones to send in columns", err)
		}
	}
	if err != nil {
		return &rewards.Error{Prompt: row.ID, Completion: -1, Err: err}
	}
	return nil
}

// of picks a row's columns.
func (c Columns) of(row *grpo.Prompt) (map[string]any, error) {
	if c == nil && row.Columns != nil {
		return row.Columns, nil
	}
	columns := make(map[string]any, len(c))
	for _, name := range c {
		value, there := row.Columns[name]
		if !there {
			return nil, fmt.Errorf("the row has no column %s: take it out of columns, or map it in data.columns", name)
		}
		columns[name] = value
	}
	return columns, nil
}

// Batch is the completions of one request.
type Batch struct {
	step  int
	first int // index of its first completion among those of the step
	rows  []row
}

// row is one completion and where it comes from.
type row struct {
	prompt     *grpo.Prompt
	index      int // in its group
	completion *grpo.Completion
}

// Cut makes batches of at most size completions, in order. A group is cut only if it alone is larger than that.
func Cut(step int, groups []grpo.Group, size int) []Batch {
	var all []Batch
	b := Batch{step: step}
	flush := func() {
		if len(b.rows) > 0 {
			all = append(all, b)
		}
		b = Batch{step: step, first: b.first + len(b.rows)}
	}
	for _, g := range groups {
		if len(b.rows)+len(g.Completions) > size {
			flush()
		}
		for i, c := range g.Completions {
			if len(b.rows) == size {
				flush()
			}
			b.rows = append(b.rows, row{g.Prompt, i, c})
		}
	}
	flush()
	return all
}

// Probe is the batch without items by which a run asks whether a scorer is there.
func Probe() Batch { return Batch{step: rewards.HeldOut} }

// Encode returns the request as one line of JSON, with the line's end.
func (b Batch) Encode(columns Columns) ([]byte, error) {
	r := Request{Version: Version, Step: b.step, Items: make([]Item, len(b.rows))}
	for i, w := range b.rows {
		own, err := columns.of(w.prompt)
		if err != nil {
			return nil, &rewards.Error{Prompt: w.prompt.ID, Completion: -1, Err: err}
		}
		tokens := w.completion.Tokens
		if tokens == nil {
			tokens = []int32{}
		}
		r.Items[i] = Item{
			ID: b.id(i), PromptID: w.prompt.ID, Prompt: w.prompt.Text, Messages: w.prompt.Messages, Completion: w.completion.Text,
			CompletionIDs: tokens, Truncated: w.completion.Truncated, Columns: own,
		}
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(r); err != nil {
		return nil, b.Wrap(fmt.Errorf("writing the request: %w", err))
	}
	return out.Bytes(), nil
}

// id names the i-th completion of the batch.
func (b Batch) id(i int) string { return fmt.Sprintf("%d/%d", b.step, b.first+i) }

// Unscorable is the scores of a batch that no reply came for.
func (b Batch) Unscorable(reason string) []rewards.Score {
	scores := make([]rewards.Score, len(b.rows))
	for i := range scores {
		scores[i] = rewards.Unscorable(reason)
	}
	return scores
}

// Wrap says in an error which completions it is about; nil stays nil.
func (b Batch) Wrap(err error) error {
	if err == nil || len(b.rows) == 0 {
		return err
	}
	first, last := b.rows[0], b.rows[len(b.rows)-1]
	return fmt.Errorf("prompt %q, completion %d to prompt %q, completion %d: %w", first.prompt.ID, first.index, last.prompt.ID, last.index, err)
}

// at is an error about the i-th completion of the batch.
func (b Batch) at(i int, err error) error {
	return &rewards.Error{Prompt: b.rows[i].prompt.ID, Completion: b.rows[i].index, Err: err}
}
