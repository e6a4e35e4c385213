package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/cpu"
	"github.com/rubicon-rl/rubicon/internal/embedded"
	"github.com/rubicon-rl/rubicon/internal/golden"
	"github.com/rubicon-rl/rubicon/internal/llm"
	"github.com/rubicon-rl/rubicon/policy"
	"github.com/rubicon-rl/rubicon/policy/token"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// open makes a transport over the model in a folder.
func open(t *testing.T, dir string) *Transport {
	t.Helper()
	tok, err := token.Load(dir)
	must(t, err)
	return over(t, dir, tok)
}

func over(t *testing.T, dir string, tok *token.Tokenizer) *Transport {
	t.Helper()
	dev, err := cpu.New(cpu.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, dev.Close()) })
	m, err := policy.Load(t.Context(), dev, dir, policy.LoadOptions{})
	must(t, err)
	t.Cleanup(func() { must(t, m.Close()) })
	x := New(tok)
	x.Bind(m)
	return x
}

func tiny() string { return golden.Path("models", "qwen2") }

const schema = `{"type":"object","properties":{"credit":{"type":"integer","minimum":0,"maximum":3},"reason":{"type":"string","maxLength":20}},"required":["credit","reason"]}`

func question(text string) *llm.Call {
	return &llm.Call{Messages: []llm.Message{{Role: "user", Content: text}}, TopP: 1, Temperature: 1, MaxTokens: 60, Seed: 7}
}

// questions are calls of several kinds.
func questions() (calls []*llm.Call) {
	for i := range 14 {
		c := question(fmt.Sprintf("Question %d?", i%12)) // two are asked twice
		if i%3 > 0 {
			c.Schema = json.RawMessage(schema)
		}
		if i%4 == 3 {
			c.Temperature = 0
		}
		if i%5 == 4 {
			c.MaxTokens = 80
		}
		calls = append(calls, c)
	}
	return calls
}

// A reply is the same whatever is asked at the same time, and JSON that meets the schema. It catches random numbers or
// masks that depend on the batch, and replies that reach the wrong caller.
func TestRepliesDoNotDependOnEachOther(t *testing.T) {
	x := open(t, tiny())
	calls := questions()
	alone, together := make([]*llm.Reply, len(calls)), make([]*llm.Reply, len(calls))
	for i, c := range calls {
		alone[i] = complete(t, x, c)
	}
	var wg sync.WaitGroup
	for i, c := range calls {
		wg.Go(func() { together[i] = complete(t, x, c) })
	}
	wg.Wait()
	if !reflect.DeepEqual(alone, together) {
		t.Errorf("replies differ:\n%v\n%v", alone, together)
	}
	for i, c := range calls {
		if c.Schema != nil {
			checkVerdict(t, alone[i])
		}
	}
	if alone[1].Text != alone[13].Text && calls[1].Temperature == calls[13].Temperature && calls[1].MaxTokens == calls[13].MaxTokens {
		t.Errorf("the same call got %q and %q", alone[1].Text, alone[13].Text)
	}
	other := *calls[1]
	other.Seed++
	if complete(t, x, &other).Text == alone[1].Text {
		t.Error("another seed gives the same reply")
	}
	other = *calls[1]
	other.Name = "other"
	if complete(t, x, &other).Text == alone[1].Text {
		t.Error("another call gives the same reply: it has the same random numbers")
	}
}

func complete(t *testing.T, x *Transport, c *llm.Call) *llm.Reply {
	t.Helper()
	r, err := x.Complete(t.Context(), c)
	if err != nil && !errors.Is(err, llm.ErrEmpty) {
		t.Error(err)
	}
	return r
}

func checkVerdict(t *testing.T, r *llm.Reply) {
	t.Helper()
	var v struct {
		Credit *int
		Reason *string
	}
	err := json.Unmarshal([]byte(r.Text), &v)
	if err != nil || v.Credit == nil || *v.Credit < 0 || *v.Credit > 3 || v.Reason == nil || len([]rune(*v.Reason)) > 20 || r.Truncated {
		t.Errorf("%q is no verdict: %v", r.Text, err)
	}
	if r.CompletionTokens < 5 || r.PromptTokens < 5 {
		t.Errorf("%d and %d tokens", r.PromptTokens, r.CompletionTokens)
	}
}

// A tokenizer without chat template gets plain text, in which special tokens are text: the reply is the model's own to
// those tokens.
func TestWithoutChatTemplate(t *testing.T) {
	tok, err := token.New("test", withoutTemplate(t))
	must(t, err)
	x := over(t, tiny(), tok)
	c := question("Say <|im_end|> twice")
	c.Temperature = 0
	want := tok.Encode("user: Say <|im_end|> twice\n\nassistant:", token.EncodeOptions{Plain: true})
	samples, err := x.model.Generate(t.Context(), []policy.Request{{Prompt: want, N: 1}}, policy.GenerateOptions{
		SamplingParams: policy.SamplingParams{Greedy: true, TopP: 1, RepetitionPenalty: 1, MaxNewTokens: 60, EOS: x.model.eos},
	})
	must(t, err)
	r := complete(t, x, c)
	if r.Text != tok.Decode(samples[0][0].Tokens, true) || r.PromptTokens != len(want) {
		t.Errorf("reply %+v, want %q for %d tokens", r, tok.Decode(samples[0][0].Tokens, true), len(want))
	}
}

func withoutTemplate(t *testing.T) token.Files {
	t.Helper()
	files := token.Files{}
	for _, name := range []string{"tokenizer.json", "tokenizer_config.json"} {
		b, err := os.ReadFile(filepath.Join(tiny(), name))
		must(t, err)
		files[name] = b
	}
	var config map[string]any
	must(t, json.Unmarshal(files["tokenizer_config.json"], &config))
	delete(config, "chat_template")
	var err error
	files["tokenizer_config.json"], err = json.Marshal(config)
	must(t, err)
	return files
}

// What the model cannot answer is refused with a status, and with what to set.
func TestRefusals(t *testing.T) {
	x := open(t, tiny())
	for _, c := range []struct {
		change func(c *llm.Call)
		code   int
		want   string
	}{
		{func(c *llm.Call) { c.Messages[0].Content = strings.Repeat("word ", 600) }, 413, "use fewer criteria"},
		{func(c *llm.Call) { c.Schema, c.MaxTokens = json.RawMessage(schema), 20 }, 400, "judge.max_tokens"},
		{func(c *llm.Call) { c.MaxTokens = 0 }, 400, "judge.max_tokens"},
		{func(c *llm.Call) { c.Schema = json.RawMessage(`{"pattern":"a"}`) }, 400, "#/pattern"},
		{func(c *llm.Call) { c.Messages = nil }, 422, "message"},
	} {
		call := question("Well?")
		c.change(call)
		_, err := x.Complete(t.Context(), call)
		status, ok := errors.AsType[*llm.StatusError](err)
		if !ok || status.Code != c.code || !strings.Contains(status.Body, c.want) {
			t.Errorf("error %v, want status %d and %q", err, c.code, c.want)
		}
	}
	must(t, x.Preflight(t.Context(), "any"))
	unbound := New(x.tok)
	must(t, unbound.Preflight(t.Context(), ""))
	if _, err := unbound.Complete(t.Context(), question("?")); err == nil || !strings.Contains(err.Error(), "no model yet") {
		t.Errorf("error %v without a model", err)
	}
	if unbound.Name() == x.Name() || !strings.Contains(x.Name(), x.model.Fingerprint()) {
		t.Errorf("names %q and %q", unbound.Name(), x.Name())
	}
}

// The small model that comes with the program answers as a judge has to.
func TestQuickstartModelJudges(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dir, err := embedded.Path("embedded:quickstart")
	must(t, err)
	x := open(t, filepath.Clean(dir))
	verdicts := json.RawMessage(`{"type":"object","properties":{"criteria":{"type":"array","minItems":2,"maxItems":2,"items":{"type":"object","properties":{
		"id":{"type":"string","enum":["length","topic"]},"score":{"type":"integer","minimum":0,"maximum":10},"reason":{"type":"string","maxLength":30}},
		"required":["id","score","reason"],"additionalProperties":false}}},"required":["criteria"],"additionalProperties":false}`)
	for seed := range uint64(4) {
		c := question("Name exactly 2 tools. A list: hammer; saw.")
		c.Schema, c.Seed, c.MaxTokens = verdicts, seed, 200
		c.Temperature = float64(seed % 2)
		r := complete(t, x, c)
		var v struct {
			Criteria []struct {
				ID, Reason string
				Score      *int
			}
		}
		dec := json.NewDecoder(strings.NewReader(r.Text))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&v); err != nil || len(v.Criteria) != 2 || r.Truncated {
			t.Errorf("%q: %v", r.Text, err)
		}
		for _, k := range v.Criteria {
			if k.ID != "length" && k.ID != "topic" || k.Score == nil || *k.Score < 0 || *k.Score > 10 || len([]rune(k.Reason)) > 30 {
				t.Errorf("%+v in %q", k, r.Text)
			}
		}
	}
}
