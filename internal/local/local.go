// Package local answers an llm.Client's calls with a model in this process: the run's frozen base, without any adapter.
// An answer that has a schema is sampled under a grammar, so that even a small model keeps to it.
//
// An answer depends on its call alone. What is asked at the same time is sampled together, which changes how long it
// takes and nothing else.
package local

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/rubicon-rl/rubicon/internal/llm"
	"github.com/rubicon-rl/rubicon/policy"
	"github.com/rubicon-rl/rubicon/policy/grammar"
	"github.com/rubicon-rl/rubicon/policy/token"
)

// Transport is an llm.Transport over a model. Whenever no call of Complete is in progress, the model is free for others.
type Transport struct {
	// Lock, if it is set before the first call, is held while the model computes. A model's owner that goes on computing
	// while calls are in progress holds it too.
	Lock sync.Locker

	tok *token.Tokenizer

	mu      sync.Mutex
	model   *model // nil: not bound
	queue   []*job
	batch   *batch // what the model computes; nil: nothing
	running bool   // somebody takes jobs from the queue
}

var (
	_ llm.Transport = (*Transport)(nil)
	_ llm.Named     = (*Transport)(nil)
)

// New makes a transport for a model that is bound later, and the tokenizer that goes with it.
func New(tok *token.Tokenizer) *Transport { return &Transport{tok: tok} }

// Bind sets the model that answers from now on. No call may be in progress.
func (t *Transport) Bind(m *policy.Model) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.model = newModel(m, t.tok)
}

// Bound reports whether there is a model.
func (t *Transport) Bound() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.model != nil
}

// bound is the model, once there is one.
func (t *Transport) bound() (*model, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.model == nil {
		return nil, errors.New("the local judge has no model yet: its questions have to wait until the run's model is loaded")
	}
	return t.model, t.model.err
}

// Name implements llm.Named: answers of one model are not another's.
func (t *Transport) Name() string {
	m, err := t.bound()
	if err != nil {
		return "local"
	}
	return "local " + m.Fingerprint()
}

// Preflight implements llm.Transport. Before Bind it looks at the tokenizer alone. The model's name does not matter.
func (t *Transport) Preflight(_ context.Context, _ string) error {
	_, err := t.encode(&llm.Call{Messages: []llm.Message{{Role: "user", Content: "?"}}})
	t.mu.Lock()
	m := t.model
	t.mu.Unlock()
	if err == nil && m != nil {
		err = m.err
	}
	if err != nil {
		return fmt.Errorf("the run's model cannot be its judge (judge.url local): %w", err)
	}
	return nil
}

// Complete implements llm.Transport. A call that the model cannot answer is refused with the status that a server would
// give: 413 if its prompt is too long, 400 for a schema that is not supported or too few tokens, 422 for messages that the
// chat template refuses.
func (t *Transport) Complete(ctx context.Context, c *llm.Call) (*llm.Reply, error) {
	m, err := t.bound()
	if err != nil {
		return nil, err
	}
	j, err := t.prepare(m, c)
	if err != nil {
		return nil, err
	}
	return t.await(ctx, j)
}

// refuse is a server's way to refuse a call.
func refuse(status int, format string, args ...any) error {
	return &llm.StatusError{Code: status, Body: fmt.Sprintf(format, args...)}
}

// prepare makes a job of a call, or refuses it.
func (t *Transport) prepare(m *model, c *llm.Call) (*job, error) {
	ids, err := t.encode(c)
	if err != nil {
		return nil, refuse(http.StatusUnprocessableEntity, "%v", err)
	}
	j := &job{model: m, settings: settings{c.Temperature, c.TopP, c.MaxTokens}, done: make(chan struct{})}
	j.request = policy.Request{Prompt: ids, N: 1, Stream: []uint64{c.Seed, digest(c)}}
	need := 1
	if c.Schema != nil {
		constraint, err := m.constraint(c.Schema)
		if err != nil {
			return nil, refuse(http.StatusBadRequest, "%v", err)
		}
		j.request.Constraint, need = constraint, constraint.Least()
	}
	room := m.Config().MaxPositions
	if len(ids)+need > room {
		return nil, refuse(http.StatusRequestEntityTooLarge, "the question has %d tokens (instructions, criteria, prompt and completion) and its answer at least %d, but the model's context is %d: use fewer criteria or a lower rollout.max_completion_length, or set judge.url to a model with a longer context", len(ids), need, room)
	}
	if c.MaxTokens < need {
		return nil, refuse(http.StatusBadRequest, "an answer has at least %d tokens: set judge.max_tokens to more than %d", need, c.MaxTokens)
	}
	return j, nil
}

// digest is a hash of what a call asks, its seed apart.
func digest(c *llm.Call) uint64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %v %v %d", c.Messages, c.Name, c.Schema, c.Temperature, c.TopP, c.MaxTokens))
	return binary.LittleEndian.Uint64(sum[:])
}

// encode renders the messages of a call with the chat template, or, if there is none, as lines of "role: content".
func (t *Transport) encode(c *llm.Call) ([]int32, error) {
	if !t.tok.HasChat() {
		var text strings.Builder
		for _, m := range c.Messages {
			fmt.Fprintf(&text, "%s: %s\n\n", m.Role, m.Content)
		}
		text.WriteString("assistant:")
		return t.tok.Encode(text.String(), token.EncodeOptions{AddSpecial: true, Plain: true}), nil
	}
	var messages []token.Message
	for _, m := range c.Messages {
		messages = append(messages, token.Message{Role: m.Role, Content: m.Content})
	}
	o := token.ChatOptions{AddGenerationPrompt: true, Now: date()}
	if c.Schema != nil { // no room for reasoning before the value
		o.Kwargs = map[string]any{"enable_thinking": false}
	}
	_, ids, err := t.tok.Chat(messages, o)
	return ids, err
}

// model is a policy.Model that answers.
type model struct {
	*policy.Model
	tok *token.Tokenizer
	eos []int32
	err error // why it cannot answer

	vocab       *grammar.Vocab
	mu          sync.Mutex
	constraints map[string]*grammar.Constraint // by schema
}

// maxConstraints bounds the schemas that are remembered.
const maxConstraints = 16

func newModel(m *policy.Model, tok *token.Tokenizer) *model {
	x := &model{Model: m, tok: tok, eos: append(m.Config().EOS[:len(m.Config().EOS):len(m.Config().EOS)], tok.EOS())}
	x.vocab, x.err = grammar.NewVocab(tok, m.Config().Vocab, x.eos)
	x.constraints = map[string]*grammar.Constraint{}
	return x
}

// constraint is the one of a schema.
func (m *model) constraint(schema []byte) (*grammar.Constraint, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.constraints[string(schema)]; known != nil {
		return known, nil
	}
	g, err := grammar.Compile(schema)
	if err != nil {
		return nil, err
	}
	c, err := g.For(m.vocab)
	if err != nil {
		return nil, err
	}
	if len(m.constraints) >= maxConstraints {
		clear(m.constraints)
	}
	m.constraints[string(schema)] = c
	return c, nil
}
