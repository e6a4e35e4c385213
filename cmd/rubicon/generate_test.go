package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rubicon-rl/rubicon/internal/golden"
	"github.com/rubicon-rl/rubicon/policy"
	"github.com/rubicon-rl/rubicon/trainer"
)

// pieces are the writes of a generation, which a run that is killed can end between. After the first one it calls after.
type pieces struct {
	all   []string
	after func() error
}

func (p *pieces) Write(b []byte) (int, error) {
	p.all = append(p.all, string(b))
	if err := p.after(); err != nil {
		return 0, err
	}
	return len(b), nil
}

func openGeneration(t *testing.T, out *pieces, tokens int) (*generation, []generateRow) {
	t.Helper()
	f := modelFlags{model: golden.Path("models", "qwen2"), dtype: "auto"}
	l, err := f.load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.close)
	var input strings.Builder
	for i := range 40 {
		fmt.Fprintf(&input, "{\"prompt\": \"%d\"}\n", i)
	}
	rows, err := readRows(strings.NewReader(input.String()), "jsonl")
	if err == nil {
		err = l.encode(rows, time.Now())
	}
	if err != nil {
		t.Fatal(err)
	}
	s := samplingFlags{p: policy.SamplingParams{Temperature: 1, TopP: 1, RepetitionPenalty: 1, MaxNewTokens: tokens}}
	return &generation{
		loaded: l, n: 2, out: out, log: &bytes.Buffer{}, now: time.Now,
		options: policy.GenerateOptions{SamplingParams: s.params(l), MaxBatch: 4},
	}, rows
}

// A run that is interrupted has answered the first lines, each whole and written at once, and says so with the error that
// the process tells by its exit code.
func TestGenerateInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	out := &pieces{after: func() error { cancel(); return nil }}
	g, rows := openGeneration(t, out, 8)
	err := g.run(ctx, rows)
	if !errors.Is(err, trainer.ErrInterrupted) || !strings.Contains(err.Error(), fmt.Sprintf("%d of 40 prompts", len(out.all))) {
		t.Errorf("error %v after %d replies", err, len(out.all))
	}
	if len(out.all) == 0 || len(out.all) > 8 {
		t.Fatalf("%d replies", len(out.all))
	}
	for i, line := range out.all {
		var r generateReply
		if err := json.Unmarshal([]byte(line), &r); err != nil || !strings.HasSuffix(line, "}\n") || r.Line != i+1 || len(r.Completions) != 2 {
			t.Errorf("write %d: %q, %v", i, line, err)
		}
	}
}

// A reader that goes away ends the run with its own error.
func TestGenerateCannotWrite(t *testing.T) {
	full := errors.New("no space left")
	out := &pieces{after: func() error { return full }}
	g, rows := openGeneration(t, out, 8)
	if err := g.run(t.Context(), rows); !errors.Is(err, full) || errors.Is(err, trainer.ErrInterrupted) || len(out.all) != 1 {
		t.Errorf("error %v after %d writes", err, len(out.all))
	}
}

// The same prompt on another line, and each of its completions, has random numbers of its own; the seed changes all.
func TestGenerateSeeds(t *testing.T) {
	said := map[string]bool{}
	for _, seed := range []uint64{1, 2} {
		out := &pieces{after: func() error { return nil }}
		g, rows := openGeneration(t, out, 8)
		rows, g.seed = rows[:3], seed
		for i := range rows {
			rows[i].prompt = rows[0].prompt
		}
		if err := g.run(t.Context(), rows); err != nil {
			t.Fatal(err)
		}
		for i, line := range out.all {
			var r generateReply
			if err := json.Unmarshal([]byte(line), &r); err != nil || r.Seed != seed || r.Line != i+1 {
				t.Fatalf("%s: %v", line, err)
			}
			for _, c := range r.Completions {
				said[fmt.Sprint(c.IDs)] = true
			}
		}
	}
	if len(said) != 2*3*2 {
		t.Errorf("%d different completions, want 12", len(said))
	}
}
