package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/rubicon-rl/rubicon/policy"
	"github.com/rubicon-rl/rubicon/policy/token"
	"github.com/rubicon-rl/rubicon/trainer"
)

type generateQuery struct {
	ID       json.RawMessage `json:"id"`
	Prompt   *string         `json:"prompt"`
	Messages []token.Message `json:"messages"`
}

type generateReply struct {
	ID          json.RawMessage `json:"id,omitempty"`
	Line        int             `json:"line"`
	Seed        uint64          `json:"seed"`
	Completions []completion    `json:"completions"`
}

type completion struct {
	Text     string    `json:"text"`
	Finish   string    `json:"finish_reason"`
	IDs      []int32   `json:"ids"`
	LogProbs []float32 `json:"logprobs"`
}

// generateRow is a line of the input with its prompt.
type generateRow struct {
	line   int
	query  generateQuery
	prompt []int32
}

// maxFaults is how many faults of an input are listed.
const maxFaults = 10

// faults collects what is wrong with lines.
type faults []error

func (f *faults) add(line int, err error) { *f = append(*f, fmt.Errorf("line %d: %w", line, err)) }

// err lists the first faults, a line each; nil: there are none.
func (f faults) err() error {
	if len(f) > maxFaults {
		return errors.Join(append(slices.Clone(f[:maxFaults]), fmt.Errorf("%d more lines are bad", len(f)-maxFaults))...)
	}
	return errors.Join(f...)
}

// readRows reads the lines of an input; blank ones are left out.
func readRows(in io.Reader, format string) ([]generateRow, error) {
	var rows []generateRow
	var bad faults
	r := bufio.NewReader(in)
	for n := 1; ; n++ {
		line, err := r.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if len(bytes.TrimSpace(line)) > 0 {
			row, err := parseRow(line, format)
			if row.line = n; err != nil {
				bad.add(n, err)
			}
			rows = append(rows, row)
		}
		if err != nil {
			return rows, bad.err()
		}
	}
}

func parseRow(line []byte, format string) (row generateRow, err error) {
	text := strings.TrimRight(string(line), "\r\n")
	switch format {
	case "prompts":
		row.query.Prompt = &text
		return row, nil
	case "messages":
		row.query = userMessage(text)
		return row, nil
	}
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&row.query); err != nil {
		return row, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return row, errors.New("more than one JSON value")
	}
	if (row.query.Prompt == nil) == (row.query.Messages == nil) {
		return row, errors.New(`give either "prompt" or "messages"`)
	}
	return row, nil
}

// encode gives every row its prompt; now is for chat templates that tell the time.
func (l *loaded) encode(rows []generateRow, now time.Time) error {
	var bad faults
	for i := range rows {
		r := &rows[i]
		var err error
		if r.query.Prompt != nil {
			r.prompt = l.tok.Encode(*r.query.Prompt, token.EncodeOptions{AddSpecial: true})
		} else {
			_, r.prompt, err = l.tok.Chat(r.query.Messages, token.ChatOptions{AddGenerationPrompt: true, Now: now})
		}
		if n, most := len(r.prompt), l.model.Config().MaxPositions; err == nil && (n == 0 || n >= most) {
			err = fmt.Errorf("the prompt has %d tokens; it needs 1 to %d, so that the model's context has room for an answer", n, most-1)
		}
		if err != nil {
			bad.add(r.line, err)
		}
	}
	return bad.err()
}

// generation answers rows.
type generation struct {
	*loaded
	n          int
	seed       uint64
	constraint policy.Constraint
	options    policy.GenerateOptions
	out, log   io.Writer
	plain      bool             // texts alone
	now        func() time.Time // for the speed

	replies []generateReply // of the part in work
	missing []int           // completions that each of them still lacks
	written int             // replies of the part that are written
	failed  error           // of the first write that failed
	tokens  int
}

// partSamples is how many completions are asked for at a time at least: so many that few of them are at work alone at the
// end, so few that an input of any length fits in memory.
const partSamples = 2048

// run answers the rows in parts; each reply is written, as a whole line, as soon as it and those before it are done.
func (g *generation) run(ctx context.Context, rows []generateRow) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	begin, done := g.now(), 0
	for rest := rows; len(rest) > 0; {
		size := min(len(rest), max(1, (partSamples+g.n-1)/g.n))
		err := g.part(ctx, rest[:size])
		done += g.written
		if errors.Is(err, context.Canceled) {
			return interruption{done, len(rows)}
		}
		if err != nil {
			return err
		}
		rest = rest[size:]
	}
	if !g.plain {
		seconds := g.now().Sub(begin).Seconds()
		fmt.Fprintf(g.log, "%d prompts, %d completions, %d tokens in %.1f s: %.0f tokens/s\n", len(rows), len(rows)*g.n, g.tokens, seconds, float64(g.tokens)/seconds)
	}
	return nil
}

func (g *generation) part(ctx context.Context, rows []generateRow) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g.replies, g.missing, g.written = make([]generateReply, len(rows)), make([]int, len(rows)), 0
	requests := make([]policy.Request, len(rows))
	for i, r := range rows {
		requests[i] = policy.Request{Prompt: r.prompt, N: g.n, Stream: []uint64{g.seed, uint64(r.line)}, Constraint: g.constraint}
		g.replies[i] = generateReply{ID: r.query.ID, Line: r.line, Seed: g.seed, Completions: make([]completion, g.n)}
		g.missing[i] = g.n
	}
	o := g.options
	o.OnSample = func(request, sample int, s policy.Sample) {
		g.replies[request].Completions[sample] = completion{g.tok.Decode(s.Tokens, true), s.Finish, s.Tokens, s.LogP}
		g.missing[request]--
		g.tokens += len(s.Tokens)
		if g.failed != nil {
			return
		}
		if g.failed = g.write(); g.failed != nil {
			cancel()
		}
	}
	_, err := g.model.Generate(ctx, requests, o)
	if g.failed != nil {
		return fmt.Errorf("write the completions: %w", g.failed)
	}
	return err
}

// interruption is the error of a generation that was asked to stop.
type interruption struct{ done, all int }

func (i interruption) Error() string {
	return fmt.Sprintf("interrupted: %d of %d prompts are answered", i.done, i.all)
}

// Is makes it one of the errors that the process tells by its exit code.
func (i interruption) Is(target error) bool { return target == trainer.ErrInterrupted }

// write writes the replies that are done and come next, each in one piece.
func (g *generation) write() error {
	for g.written < len(g.replies) && g.missing[g.written] == 0 {
		var line bytes.Buffer
		r := &g.replies[g.written]
		if g.plain {
			for _, c := range r.Completions {
				fmt.Fprintln(&line, c.Text)
			}
		} else {
			enc := json.NewEncoder(&line)
			enc.SetEscapeHTML(false)
			if err := enc.Encode(r); err != nil {
				return err
			}
		}
		if _, err := g.out.Write(line.Bytes()); err != nil {
			return err
		}
		*r = generateReply{}
		g.written++
	}
	return nil
}
