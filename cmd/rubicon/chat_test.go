package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/golden"
	"github.com/rubicon-rl/rubicon/policy"
	"github.com/rubicon-rl/rubicon/policy/token"
)

// openChat begins a greedy conversation; out and log are what the user sees. l is the same model once more, to compare with.
func openChat(t *testing.T, change func(*chatFlags)) (c *chat, l *loaded, out, log *bytes.Buffer) {
	t.Helper()
	f := chatFlags{modelFlags: modelFlags{model: "embedded:quickstart", dtype: "auto"}}
	f.sampling = samplingFlags{seed: 1, p: policy.SamplingParams{TopP: 1, RepetitionPenalty: 1, MaxNewTokens: 40}}
	change(&f)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	load := func() *loaded {
		l, err := f.load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(l.close)
		return l
	}
	out, log = &bytes.Buffer{}, &bytes.Buffer{}
	c, err := f.open(load(), out, log)
	if err != nil {
		t.Fatal(err)
	}
	l = load()
	t.Cleanup(c.close)
	return c, l, out, log
}

// asked are the tokens of messages as a whole, by the template, up to where the answer begins.
func asked(t *testing.T, l *loaded, messages ...string) []int32 {
	t.Helper()
	var turns []token.Message
	for i, text := range messages {
		turns = append(turns, token.Message{Role: []string{"user", "assistant"}[i%2], Content: text})
	}
	_, ids, err := l.tok.Chat(turns, token.ChatOptions{AddGenerationPrompt: true})
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

// checkPrompt compares what the model gets with the next message with the messages as a whole.
func checkPrompt(t *testing.T, c *chat, l *loaded, messages ...string) {
	t.Helper()
	got, err := c.prompt(c.sides[0], messages[len(messages)-1])
	if want := asked(t, l, messages...); err != nil || !slices.Equal(got, want) {
		t.Errorf("%q: tokens %v, %v\nwant %v", messages, got, err, want)
	}
}

// answerOf is what the model says to messages as a whole, without a cache of earlier turns.
func answerOf(t *testing.T, l *loaded, c *chat, adapter string, messages ...string) string {
	t.Helper()
	requests := []policy.Request{{Prompt: asked(t, l, messages...), N: 1}}
	s, err := l.model.Generate(t.Context(), requests, policy.GenerateOptions{Adapter: adapter, SamplingParams: c.sampling})
	if err != nil {
		t.Fatal(err)
	}
	return l.tok.Decode(s[0][0].Tokens, true)
}

// Each answer is the one to the conversation as a whole; what was taken back or forgotten leaves no trace in it.
func TestChatIsTheConversation(t *testing.T) {
	c, l, out, _ := openChat(t, func(*chatFlags) {})
	const one, two, three = "Name exactly 2 tools.", "Name exactly 3 fruits.", "Write a slogan for our honey."
	first := answerOf(t, l, c, "", one)
	second := answerOf(t, l, c, "", one, first, two)
	if strings.Contains(first+second, "\n") || first == second {
		t.Fatalf("answers %q, %q: the test takes them for two lines", first, second)
	}
	lines := strings.Join([]string{one, three, "/undo", two, "/reset", one}, "\n")
	if err := c.run(t.Context(), strings.NewReader(lines)); err != nil {
		t.Fatal(err)
	}
	said := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(said) != 4 || said[0] != first || said[2] != second || said[3] != first {
		t.Errorf("said %q\nwant %q, ..., %q, %q", said, first, second, first)
	}
	checkPrompt(t, c, l, one, first, two)
}

// stopper ends a context at the third write.
type stopper struct {
	bytes.Buffer
	writes int
	stop   context.CancelFunc
}

func (s *stopper) Write(p []byte) (int, error) {
	if s.writes++; s.writes == 3 {
		s.stop()
	}
	return s.Buffer.Write(p)
}

// An answer that the user stops stays as far as it got, its turn is closed, and the next answer is one to that.
func TestChatStops(t *testing.T) {
	c, l, _, log := openChat(t, func(*chatFlags) {})
	out := &stopper{}
	c.out = out
	c.stoppable = func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(ctx)
		out.stop = cancel
		return ctx, cancel
	}
	const one, two = "Name exactly 2 tools.", "Name exactly 3 fruits."
	whole := answerOf(t, l, c, "", one)
	if err := c.say(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	cut := c.sides[0].exchanges[0].answer
	if cut == "" || cut == whole || !strings.HasPrefix(whole, cut) || !strings.Contains(log.String(), "(stopped)") {
		t.Fatalf("stopped at %q of %q, %q", cut, whole, log)
	}
	out.Reset()
	out.writes = 10
	if err := c.say(t.Context(), two); err != nil {
		t.Fatal(err)
	}
	checkPrompt(t, c, l, one, cut, two, strings.TrimSuffix(out.String(), "\n"), one)
	if want := answerOf(t, l, c, "", one, cut, two); strings.TrimSpace(out.String()) != strings.TrimSpace(want) {
		t.Errorf("after the stop %q, want %q", out, want)
	}
}

// Compared sides answer with the adapter and without it, each in its own conversation.
func TestChatCompares(t *testing.T) {
	c, l, out, _ := openChat(t, func(f *chatFlags) {
		f.model, f.adapter = golden.Path("models", "qwen2"), golden.Path("lora", "qwen2-all-plain", "adapter")
		f.compare, f.sampling.p.MaxNewTokens = "base", 6
	})
	if err := c.run(t.Context(), strings.NewReader("hi\nyes\n")); err != nil {
		t.Fatal(err)
	}
	tuned := answerOf(t, l, c, adapterName, "hi")
	base := answerOf(t, l, c, "", "hi")
	if tuned == base || !strings.HasPrefix(out.String(), "adapter: "+tuned+"\nbase: "+base+"\n") {
		t.Errorf("said %q, want %q with the adapter and %q without", out, tuned, base)
	}
	if a, b := c.sides[0].exchanges, c.sides[1].exchanges; len(a) != 2 || len(b) != 2 || a[0].answer != tuned || b[0].answer != base {
		t.Errorf("the sides hold %v and %v", a, b)
	}
}

// Samples follow from the seed, and a message that is taken back and said again gets another answer.
func TestChatSeeds(t *testing.T) {
	c, _, out, _ := openChat(t, func(f *chatFlags) { f.sampling.p.Temperature = 1 })
	again, _, other, _ := openChat(t, func(f *chatFlags) { f.sampling.p.Temperature = 1 })
	const lines = "Name exactly 4 fruits.\n/undo\nName exactly 4 fruits.\n"
	for _, one := range []*chat{c, again} {
		if err := one.run(t.Context(), strings.NewReader(lines)); err != nil {
			t.Fatal(err)
		}
	}
	half := len(c.sides[0].exchanges[0].answer) + 1
	if out.String() != other.String() || out.String()[:out.Len()-half] == out.String()[out.Len()-half:] {
		t.Errorf("said %q, and from the same seed %q", out, other)
	}
}

// A message that one side has no room for is none on the other either.
func TestChatFull(t *testing.T) {
	c, _, _, _ := openChat(t, func(f *chatFlags) { f.context = 60 })
	path := filepath.Join(t.TempDir(), "saved.jsonl")
	err := c.say(t.Context(), strings.Repeat("Name exactly 2 tools. ", 20))
	if err == nil || !strings.Contains(err.Error(), "60 tokens") || len(c.sides[0].exchanges) != 0 {
		t.Errorf("a message that is too long: %v, %d exchanges", err, len(c.sides[0].exchanges))
	}
	if err := c.say(t.Context(), "Name exactly 2 tools."); err != nil {
		t.Errorf("after it: %v", err)
	}
	if err := c.save(path); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil || strings.Count(string(text), "\n") != 1 || !strings.Contains(string(text), `"content":"Name exactly 2 tools."`) {
		t.Errorf("saved %s, %v", text, err)
	}
}

// Two conversations go on until the context is full, also after messages were taken back and begun anew: what is kept of them never
// stands in the way of an answer.
func TestChatFillsItsContext(t *testing.T) {
	c, _, _, _ := openChat(t, func(f *chatFlags) {
		f.model, f.adapter = golden.Path("models", "qwen2"), golden.Path("lora", "qwen2-all-plain", "adapter")
		f.compare, f.sampling.p.MaxNewTokens, f.context = "base", 6, 220
	})
	said := 0
	for n := 0; ; n++ {
		err := c.say(t.Context(), strings.Repeat("yes ", n%3+1))
		if err != nil {
			if !strings.Contains(err.Error(), "fills its 220 tokens") {
				t.Fatal(err)
			}
			break
		}
		if said++; n%4 == 3 {
			if err := c.undo(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if said < 6 {
		t.Errorf("only %d messages were answered", said)
	}
	c.reset()
	if err := c.say(t.Context(), "yes"); err != nil {
		t.Error(err)
	}
}
