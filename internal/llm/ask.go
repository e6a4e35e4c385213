package llm

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/rubicon-rl/rubicon/rewards"
)

// key is the hash of all that determines an answer.
type key [sha256.Size]byte

// Ask implements rewards.Judge. The answer to a question with a Schema is one JSON value without anything around it, read
// strictly: it has no key twice. Whether it meets the Schema is for the question's Check to say.
func (c *Client) Ask(ctx context.Context, q rewards.Question) (string, error) {
	t, ok := c.tiers[q.Tier]
	if !ok {
		return "", unknownTier(q.Tier)
	}
	t.account.use()
	answer, err := c.answer(ctx, t, &q)
	unanswered := errors.Is(err, rewards.ErrNoAnswer)
	if unanswered {
		t.account.count(lost, 1)
	}
	if c.record != nil && (err == nil || unanswered) {
		if fault := c.record.add(&q, t.Model, answer, err); fault != nil {
			return "", fmt.Errorf("recording an answer: %w", fault)
		}
	}
	return answer, err
}

func (c *Client) answer(ctx context.Context, t *tier, q *rewards.Question) (string, error) {
	if c.replay != nil {
		return c.replay.answer(q)
	}
	call, err := c.call(t, q)
	if err != nil {
		return "", err
	}
	k, err := keyOf(t, call, q.Sample)
	if err != nil {
		return "", err
	}
	jitter := random(c.o.Seed, binary.LittleEndian.Uint64(k[:]))
	answer, mine, err := c.flights.share(ctx, k, func() (string, error) {
		if known, ok := c.cache.get(k); ok && accept(q, known) == nil {
			t.account.count(cacheHits, 1)
			return known, nil
		}
		answer, err := c.ask(ctx, t, q, call, jitter)
		if err == nil {
			err = c.cache.put(k, answer)
		}
		return answer, err
	})
	switch {
	case mine || err != nil:
		return answer, err
	case accept(q, answer) != nil: // the other asker's Check was another one
		return c.ask(ctx, t, q, call, jitter)
	}
	t.account.count(cacheHits, 1)
	return answer, nil
}

// Chat has a conversation continued with the settings of the scoring tier. The reply is taken as it is, and may be empty or cut off; sample
// tells several replies to the same conversation apart. An error is rewards.ErrNoAnswer if it is this conversation's fault.
func (c *Client) Chat(ctx context.Context, messages []Message, sample int) (*Reply, error) {
	t := c.tiers[rewards.TierScore]
	t.account.use()
	call := &Call{
		Model: t.Model, Messages: messages, Temperature: *t.Temperature, TopP: *t.TopP, MaxTokens: t.MaxTokens,
		Seed: random(c.o.Seed, uint64(sample)).Uint64N(1 << 31),
	}
	k, err := keyOf(t, call, sample)
	if err != nil {
		return nil, err
	}
	reply, err := c.send(ctx, t, call, random(c.o.Seed, binary.LittleEndian.Uint64(k[:])))
	if errors.Is(err, ErrEmpty) {
		return &Reply{}, nil
	}
	return reply, err
}

// call words a question for a tier's model. The schema is in the messages whatever the transport makes of it, since not
// every server takes one.
func (c *Client) call(t *tier, q *rewards.Question) (*Call, error) {
	call := &Call{
		Model: t.Model, Name: q.Name, Temperature: *t.Temperature, TopP: *t.TopP, MaxTokens: t.MaxTokens,
		Seed: random(c.o.Seed, uint64(q.Sample)).Uint64N(1 << 31), // servers read a signed 32-bit number
	}
	if q.System != "" {
		call.Messages = append(call.Messages, Message{"system", q.System})
	}
	user := q.User
	if q.Schema != nil {
		var schema bytes.Buffer
		if err := json.Compact(&schema, q.Schema); err != nil {
			return nil, fmt.Errorf("schema %s of a question to the judge: %w", q.Name, err)
		}
		call.Schema = schema.Bytes()
		user += "\n\nReply with one JSON value that meets the JSON Schema below, and with nothing else: no explanation, no Markdown.\n" + schema.String()
	}
	call.Messages = append(call.Messages, Message{"user", user})
	return call, nil
}

// keyOf hashes what determines the answer to a call.
func keyOf(t *tier, call *Call, sample int) (key, error) {
	kind := ""
	if named, ok := t.Transport.(Named); ok {
		kind = named.Name()
	}
	text, err := json.Marshal(struct {
		Format int // of the answers and of what is added to the questions
		Kind   string
		Call   *Call
		Sample int
	}{1, kind, call, sample})
	if err != nil {
		return key{}, fmt.Errorf("a question to the judge: %w", err)
	}
	return sha256.Sum256(text), nil
}

// ask gets an answer from the model: the first that is good, or the second, for which it is shown what is wrong.
func (c *Client) ask(ctx context.Context, t *tier, q *rewards.Question, call *Call, jitter *rand.Rand) (string, error) {
	answer, said, err := c.once(ctx, t, q, call, jitter)
	unusable, ok := errors.AsType[unusable](err)
	if !ok {
		return answer, err
	}
	t.account.count(repairs, 1)
	second := *call
	second.Messages = append(slices.Clip(call.Messages), corrections(said, unusable, q.Schema != nil)...)
	answer, _, err = c.once(ctx, t, q, &second, jitter)
	if errors.As(err, &unusable) {
		return "", noAnswer(fmt.Errorf("asked twice: %w", err))
	}
	return answer, err
}

// unusable is what is wrong with a reply.
type unusable struct{ error }

func (u unusable) Unwrap() error { return u.error }

// once sends a call and reads the reply. An error that the model can mend is unusable, and comes with what the model said.
func (c *Client) once(ctx context.Context, t *tier, q *rewards.Question, call *Call, jitter *rand.Rand) (answer, said string, err error) {
	reply, err := c.send(ctx, t, call, jitter)
	switch {
	case errors.Is(err, ErrEmpty):
		return "", "", unusable{err}
	case err != nil:
		return "", "", err
	case reply.Truncated:
		return "", reply.Text, unusable{fmt.Errorf("the reply was cut off after judge.max_tokens, %d", call.MaxTokens)}
	}
	answer, err = extract(reply.Text, q.Schema != nil)
	if err == nil {
		err = accept(q, answer)
	}
	if err != nil {
		return "", reply.Text, unusable{err}
	}
	return answer, "", nil
}

// accept runs a question's Check.
func accept(q *rewards.Question, answer string) error {
	if q.Check == nil {
		return nil
	}
	return q.Check(answer)
}

// corrections continue a conversation after an unusable reply.
func corrections(said string, fault error, schema bool) []Message {
	const most = 8000 // runes of the reply that are shown again; a good one is shorter
	if runes := []rune(said); len(runes) > most {
		said = string(runes[:most]) + " ..."
	}
	if said == "" {
		said = "(nothing)" // several chat templates refuse an empty turn
	}
	want := "Answer again, completely."
	if schema {
		want += " Reply with the JSON value alone."
	}
	return []Message{{"assistant", said}, {"user", fmt.Sprintf("This reply cannot be used: %v. %s", fault, want)}}
}
