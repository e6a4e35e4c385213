package llm

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/rewards"
)

func TestRecordAndReplay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run", "judge.jsonl")
	f, _ := says(`{"ok": true}`, "A <b> & c\xff", "no", "no")
	o := options(f)
	o.Record = path
	odd := rewards.Question{Tier: rewards.TierSummarize, User: "not UTF-8: \xff <b>", Sample: 2}
	bad := verdict
	bad.User = "another"
	ask := func(c *Client) (texts []string) {
		for _, q := range []rewards.Question{verdict, odd, bad, verdict} {
			answer, err := c.Ask(t.Context(), q)
			if err != nil {
				answer = err.Error()
			}
			if errors.Is(err, rewards.ErrNoAnswer) {
				answer = "none: " + answer
			}
			texts = append(texts, answer)
		}
		return texts
	}
	o.Cache = t.TempDir() // the last question is answered from it, and recorded like the others
	said := ask(client(t, o))
	if want := "none: the judge gave no usable answer: asked twice: "; !strings.HasPrefix(said[2], want) || said[0] != said[3] {
		t.Fatalf("%q", said)
	}
	lines, err := os.ReadFile(path)
	if err != nil || strings.Count(string(lines), "\n") != 4 || !strings.Contains(string(lines), `"answer":"A <b> & c`) {
		t.Errorf("%v: %s", err, lines)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(lines)), "\n") {
		if !json.Valid([]byte(line)) {
			t.Errorf("not JSON: %s", line)
		}
	}

	replaying := DefaultOptions()
	replaying.Replay = path // with neither URL nor model
	c := client(t, replaying)
	if err := c.Preflight(t.Context()); err != nil {
		t.Error(err)
	}
	said[1] = strings.ToValidUTF8(said[1], "\uFFFD")
	if again := ask(c); strings.Join(again, "\n") != strings.Join(said, "\n") {
		t.Errorf("replayed %q\nwant %q", again, said)
	}
	for name, q := range map[string]rewards.Question{
		"no answer to a score question": {Tier: rewards.TierScore, User: "never asked"},
		"no answer to a summarize":      {Tier: odd.Tier, User: odd.User, Sample: 3},
		"cannot be used: too short":     {Tier: odd.Tier, User: odd.User, Sample: 2, Check: func(string) error { return errors.New("too short") }},
	} {
		if _, err := c.Ask(t.Context(), q); err == nil || errors.Is(err, rewards.ErrNoAnswer) || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want %q", err, name)
		}
	}
}

// A recording that was killed within a line must go on after the last whole one.
func TestRecordAfterAKill(t *testing.T) {
	path := write(t, "judge.jsonl", `{"tier":"score","user":"a","sample":0,"answer":"1"}`+"\n"+`{"tier":"score","us`)
	f, _ := says("2")
	o := options(f)
	o.Record = path
	if _, err := client(t, o).Ask(t.Context(), rewards.Question{Tier: rewards.TierScore, User: "b"}); err != nil {
		t.Fatal(err)
	}
	replaying := DefaultOptions()
	replaying.Replay = path
	c := client(t, replaying)
	for user, want := range map[string]string{"a": "1", "b": "2"} {
		if answer, err := c.Ask(t.Context(), rewards.Question{Tier: rewards.TierScore, User: user}); answer != want {
			t.Errorf("%s: %q, %v", user, answer, err)
		}
	}
}

// What a replay answers must not depend on how often a question is asked; an answer wins over none.
func TestReplayOfSeveralAnswers(t *testing.T) {
	line := func(end string) string { return `{"tier":"score","user":"a","sample":0,` + end + "}\n" }
	o := DefaultOptions()
	o.Replay = write(t, "judge.jsonl", line(`"error":"down"`)+line(`"answer":"1"`)+line(`"answer":"2"`)+line(`"error":"down"`))
	c := client(t, o)
	for range 2 {
		if answer, err := c.Ask(t.Context(), rewards.Question{Tier: rewards.TierScore, User: "a"}); answer != "2" {
			t.Errorf("%q, %v", answer, err)
		}
	}
}

func TestBadReplays(t *testing.T) {
	good := `{"tier":"score","user":"a","sample":0,"answer":"1"}` + "\n"
	for text, want := range map[string]string{
		good + "?\n": "line 2: invalid character",
		good + good + `{"tier":"score","user":"a","sample":0}` + "\n": "line 3: it needs an answer or an error",
		`{"tier":"score","user":"a","answr":"1"}` + "\n":              `line 1: json: unknown field "answr"`,
	} {
		o := DefaultOptions()
		o.Replay = write(t, "judge.jsonl", text)
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
