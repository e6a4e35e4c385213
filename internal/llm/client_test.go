package llm

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rubicon-rl/rubicon/rewards"
)

// fake is a model in this process. Its type cannot be compared, as that of any Transport need not.
type fake func(ctx context.Context, c *Call) (*Reply, error)

func (f fake) Complete(ctx context.Context, c *Call) (*Reply, error) { return f(ctx, c) }
func (f fake) Preflight(context.Context, string) error               { return nil }

// says is a fake that says the texts one after the other, and the last one forever.
func says(texts ...string) (fake, *[]Call) {
	var mu sync.Mutex
	var calls []Call
	return func(_ context.Context, c *Call) (*Reply, error) {
		mu.Lock()
		defer mu.Unlock()
		text := texts[min(len(calls), len(texts)-1)]
		calls = append(calls, *c)
		if text == "" {
			return &Reply{PromptTokens: 10}, ErrEmpty
		}
		short, cut := strings.CutSuffix(text, "[cut]")
		return &Reply{Text: short, Truncated: cut, PromptTokens: 10, CompletionTokens: 5}, nil
	}, &calls
}

// options are the defaults for a fake, with pauses that take no time.
func options(f Transport) Options {
	o := DefaultOptions()
	o.Transport, o.Model = f, "m"
	o.Sleep = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	return o
}

func client(t testing.TB, o Options) *Client {
	t.Helper()
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

var verdict = rewards.Question{
	Tier: rewards.TierScore, System: "You judge.", User: "Is it good?", Name: "verdict", Schema: verdictSchema,
	Check: func(answer string) error {
		var v struct{ OK *bool }
		if err := json.Unmarshal([]byte(answer), &v); err != nil {
			return err
		}
		if v.OK == nil {
			return errors.New("ok is missing")
		}
		return nil
	},
}

func TestAskAndRepair(t *testing.T) {
	for name, c := range map[string]struct {
		says  []string
		want  string // the answer; "": none
		calls int
		fault string // what the model is told, or the error if there is no answer
	}{
		"good at once":      {[]string{`{"ok": true}`}, `{"ok": true}`, 1, ""},
		"fence and thought": {[]string{"<think>hm</think>```json\n{\"ok\": true}```"}, `{"ok": true}`, 1, ""},
		"prose":             {[]string{`Yes: {"ok": true}`, `{"ok": false}`}, `{"ok": false}`, 2, "not one JSON value"},
		"fails its Check":   {[]string{`{"okay": true}`, `{"ok": true}`}, `{"ok": true}`, 2, "ok is missing"},
		"empty":             {[]string{"", `{"ok": true}`}, `{"ok": true}`, 2, "no content"},
		"cut off":           {[]string{`{"ok": true}[cut]`, `{"ok": true}`}, `{"ok": true}`, 2, "cut off after judge.max_tokens, 2048"},
		"bad twice":         {[]string{`Yes.`, `{"okay": true}`}, "", 2, "asked twice: ok is missing"},
		"empty twice":       {[]string{"", ""}, "", 2, "asked twice: the reply has no content"},
	} {
		f, calls := says(c.says...)
		answer, err := client(t, options(f)).Ask(t.Context(), verdict)
		if answer != c.want || len(*calls) != c.calls || (c.want == "") != errors.Is(err, rewards.ErrNoAnswer) || (c.want != "") != (err == nil) {
			t.Errorf("%s: %q, %v after %d calls", name, answer, err, len(*calls))
			continue
		}
		if c.want == "" && !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%s: %v, want %q", name, err, c.fault)
		}
		first := (*calls)[0].Messages
		if len(first) != 2 || first[0] != (Message{"system", "You judge."}) || !strings.HasPrefix(first[1].Content, "Is it good?\n") ||
			!strings.HasSuffix(first[1].Content, "\n"+string(verdictSchema)) {
			t.Errorf("%s: asked %q", name, first)
		}
		if c.calls < 2 {
			continue
		}
		second := (*calls)[1].Messages
		if len(second) != 4 || !reflect.DeepEqual(second[:2], first) || second[2].Role != "assistant" || second[3].Role != "user" {
			t.Errorf("%s: asked again %q", name, second)
		} else if said := strings.TrimSuffix(c.says[0], "[cut]"); said != "" && second[2].Content != said || second[2].Content == "" {
			t.Errorf("%s: the model is shown %q as its own words", name, second[2].Content)
		} else if c.want != "" && !strings.Contains(second[3].Content, c.fault) {
			t.Errorf("%s: the model is told %q, want %q", name, second[3].Content, c.fault)
		}
	}
}

// A reply without end must not come back in full.
func TestCorrectionsAreShort(t *testing.T) {
	m := corrections(strings.Repeat("é", 1e6), errors.New("too long"), false)
	if n := len([]rune(m[0].Content)); n > 8010 || !strings.HasPrefix(m[0].Content, "éé") {
		t.Errorf("%d runes", n)
	}
}

func TestPlainText(t *testing.T) {
	f, calls := says("<think>What now?</think>\nAll is well.")
	answer, err := client(t, options(f)).Ask(t.Context(), rewards.Question{Tier: rewards.TierSummarize, User: "How is it?"})
	if err != nil || answer != "All is well." {
		t.Errorf("%q, %v", answer, err)
	}
	if m := (*calls)[0].Messages; !reflect.DeepEqual(m, []Message{{"user", "How is it?"}}) || (*calls)[0].Schema != nil {
		t.Errorf("asked %q", m)
	}
}

func TestUnknownTier(t *testing.T) {
	f, _ := says("x")
	_, err := client(t, options(f)).Ask(t.Context(), rewards.Question{Tier: "scores"})
	if err == nil || !strings.Contains(err.Error(), `did you mean "score"?`) {
		t.Error(err)
	}
}

// Which refusals are worth another try, which cost one question its answer, and which end the run.
func TestStatuses(t *testing.T) {
	const lasting, unanswered, fatal = "lasting", "unanswered", "fatal"
	for code, want := range map[int]string{
		400: unanswered, 413: unanswered, 422: unanswered, 451: unanswered,
		401: fatal, 402: fatal, 403: fatal, 404: fatal, 405: fatal, 307: fatal,
		408: lasting, 409: lasting, 425: lasting, 429: lasting, 500: lasting, 502: lasting, 503: lasting, 504: lasting, 529: lasting,
		0: lasting, // the network
	} {
		calls := 0
		o := options(fake(func(_ context.Context, c *Call) (*Reply, error) {
			if c.Messages[0].Content == probeText {
				return &Reply{Text: "yes"}, nil
			}
			calls++
			if code == 0 {
				return nil, errors.New("connection reset")
			}
			return nil, &StatusError{Code: code, Body: "because"}
		}))
		o.MaxFailures = 0
		_, err := client(t, o).Ask(t.Context(), verdict)
		tries := 1
		if want == lasting {
			tries = 6
		}
		if calls != tries || errors.Is(err, rewards.ErrNoAnswer) == (want == fatal) {
			t.Errorf("status %d: %d calls, %v", code, calls, err)
		}
		if want == fatal && !strings.Contains(err.Error(), "check judge.api_key_env, judge.url and judge.model: HTTP") {
			t.Errorf("status %d: %v does not say what to check", code, err)
		}
	}
}

// A model that fails at every question leaves none of them unanswered: the run has to wait for it.
func TestDownIsNotUnanswered(t *testing.T) {
	calls := 0
	o := options(fake(func(context.Context, *Call) (*Reply, error) {
		calls++
		return nil, errors.New("connection refused")
	}))
	o.MaxRetries = 1
	_, err := client(t, o).Ask(t.Context(), verdict)
	if err == nil || errors.Is(err, rewards.ErrNoAnswer) || !strings.Contains(err.Error(), "the judge is down") || calls != 4 {
		t.Errorf("%d calls, %v", calls, err)
	}
}

// pauses returns the pauses of a question that fails always.
func pauses(t *testing.T, seed uint64, change func(*Options), err error) (list []time.Duration) {
	t.Helper()
	o := options(fake(func(_ context.Context, c *Call) (*Reply, error) {
		if c.Messages[0].Content == probeText {
			return &Reply{Text: "yes"}, nil
		}
		return nil, err
	}))
	now := time.Unix(0, 0)
	o.Seed, o.MaxFailures, o.MaxRetries, o.MaxElapsed = seed, 0, 8, time.Hour
	o.Now = func() time.Time { return now }
	o.Sleep = func(_ context.Context, d time.Duration) error {
		list = append(list, d)
		now = now.Add(d)
		return nil
	}
	change(&o)
	if _, err := client(t, o).Ask(t.Context(), verdict); !errors.Is(err, rewards.ErrNoAnswer) {
		t.Fatal(err)
	}
	return list
}

func TestPauses(t *testing.T) {
	keep := func(*Options) {}
	down := errors.New("down")
	first := pauses(t, 1, keep, down)
	// RetryMin 1 s, doubled up to RetryMax 1 min, each times something between a half and one and a half.
	for i, mean := range []float64{1, 2, 4, 8, 16, 32, 60, 60} {
		if got := first[i].Seconds(); got < mean/2 || got > mean*1.5 {
			t.Errorf("pause %d is %v s, want about %v", i, got, mean)
		}
	}
	if again := pauses(t, 1, keep, down); !reflect.DeepEqual(first, again) {
		t.Errorf("the same seed gives %v and then %v", first, again)
	}
	if other := pauses(t, 2, keep, down); reflect.DeepEqual(first, other) {
		t.Error("another seed gives the same pauses")
	}
	busy := &StatusError{Code: 429, RetryAfter: 10 * time.Second}
	for i, got := range pauses(t, 1, keep, busy) {
		if want := max(first[i], 10*time.Second); got != want {
			t.Errorf("pause %d after Retry-After is %s, want %s", i, got, want)
		}
	}
	short := func(o *Options) { o.MaxElapsed = 25 * time.Second }
	if got := pauses(t, 1, short, busy); len(got) != 2 { // a third pause would end after 30 s
		t.Errorf("%v within 25 s", got)
	}
	if got := pauses(t, 1, keep, &StatusError{Code: 429, RetryAfter: 2 * time.Hour}); len(got) != 0 {
		t.Errorf("%v before giving up on a server that wants two hours", got)
	}
}
