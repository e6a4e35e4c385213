package analyst

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"sync"
	"testing"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/internal/llm"
	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/rewards/amaris"
)

// rows are the quickstart's training tasks: the first is a note, the second a list.
func rows(t testing.TB) []grpo.Prompt {
	t.Helper()
	f, err := os.Open("../embedded/quickstart/train.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []grpo.Prompt
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var p grpo.Prompt
		var text struct {
			ID     string
			Prompt []struct{ Role, Content string }
		}
		if err := json.Unmarshal(lines.Bytes(), &text); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(lines.Bytes(), &p.Columns); err != nil {
			t.Fatal(err)
		}
		p.ID, p.Text = text.ID, text.Prompt[0].Content
		out = append(out, p)
	}
	return out
}

// clothes is the task "Name exactly 2 clothes. Use semicolons, not commas. Start with "Sure:" End with "That is all."".
func clothes(t testing.TB) *grpo.Prompt {
	p := rows(t)[1]
	return &p
}

func taskOf(t testing.TB, p *grpo.Prompt) *Task {
	t.Helper()
	pool, err := json.Marshal(p.Columns["pool"])
	if err != nil {
		t.Fatal(err)
	}
	task, err := ReadTask(pool)
	if err != nil {
		t.Fatal(err)
	}
	return task
}

func group(p *grpo.Prompt, answers ...string) grpo.Group {
	g := grpo.Group{Prompt: p}
	for _, a := range answers {
		g.Completions = append(g.Completions, &grpo.Completion{Text: a})
	}
	return g
}

// watched is the judge, and all that it was asked.
type watched struct {
	*llm.Client
	mu        sync.Mutex
	questions []rewards.Question
}

func (w *watched) Ask(ctx context.Context, q rewards.Question) (string, error) {
	w.mu.Lock()
	w.questions = append(w.questions, q)
	w.mu.Unlock()
	return w.Client.Ask(ctx, q)
}

// named are the questions of a stage.
func (w *watched) named(stage string) (out []rewards.Question) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, q := range w.questions {
		if q.Name == stage {
			out = append(out, q)
		}
	}
	return out
}

func judge(t testing.TB) *watched {
	t.Helper()
	o := llm.DefaultOptions()
	o.Transport = Transport{}
	c, err := llm.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &watched{Client: c}
}

// start is the first rubric of configs/quickstart-amaris.yaml.
func start() []any {
	return []any{
		map[string]any{"id": "detail", "text": detail, "weight": 4}, map[string]any{"id": "mentions", "text": mentions, "weight": 2},
		map[string]any{"id": "form", "text": form, "weight": 1},
	}
}

// pipeline is the provider amaris with the judge, in a folder of its own; every step is an update.
func pipeline(t testing.TB, more map[string]any) (p *amaris.Provider, w *watched, dir string) {
	t.Helper()
	w, dir = judge(t), t.TempDir()
	settings := map[string]any{
		"goal": "Short texts.", "rubric": start(), "max_score": 100, "clip": "signed", "reference_column": "pool", "analysis_column": "pool",
		"execution": "sync",
	}
	for name, value := range more {
		settings[name] = value
	}
	run := rewards.Run{Dir: dir, Steps: 20, Judge: func() (rewards.Judge, error) { return w, nil }}
	made, err := amaris.New(run, settings)
	if err != nil {
		t.Fatal(err)
	}
	p = made.(*amaris.Provider)
	t.Cleanup(func() { p.Close() })
	return p, w, dir
}

func step(t testing.TB, p *amaris.Provider, n int, groups ...grpo.Group) []rewards.Score {
	t.Helper()
	scores, err := p.Score(t.Context(), n, groups)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Learn(t.Context(), n+1, groups); err != nil {
		t.Fatal(err)
	}
	return scores
}

// decided is the judge's answer to an update question.
func decided(t testing.TB, q rewards.Question) (d decision) {
	t.Helper()
	text, err := answer(&llm.Call{Name: q.Name, Messages: []llm.Message{{Role: "user", Content: q.User}}})
	if err == nil {
		err = json.Unmarshal([]byte(text), &d)
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}
