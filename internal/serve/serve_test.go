package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	openai "github.com/sashabaranov/go-openai"

	"github.com/rubicon-rl/rubicon/internal/cpu"
	"github.com/rubicon-rl/rubicon/internal/golden"
	"github.com/rubicon-rl/rubicon/policy"
	"github.com/rubicon-rl/rubicon/policy/token"
)

// bench is a running server with its model.
type bench struct {
	*Server
	url string
	tok *token.Tokenizer
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// start serves a small model; its weights are random, its tokenizer and template are Qwen's in small.
func start(t testing.TB, change func(o *Options)) *bench {
	t.Helper()
	dir := golden.Path("models", "qwen2")
	dev, err := cpu.New(cpu.Options{Threads: 1})
	must(t, err)
	m, err := policy.Load(context.Background(), dev, dir, policy.LoadOptions{})
	must(t, err)
	tok, err := token.Load(dir)
	must(t, err)
	o := Options{
		Model: m, Tokenizer: tok, Name: "tiny", EOS: []int32{tok.EOS()}, Session: policy.SessionOptions{KVTokens: 4096},
		Now: func() time.Time { return time.Unix(1e9, 0) }, MaxTokens: 200, MaxQueue: 64, MaxBody: 1 << 20, Timeout: time.Minute,
	}
	if change != nil {
		change(&o)
	}
	s, err := New(o)
	must(t, err)
	server := httptest.NewServer(s)
	t.Cleanup(func() {
		server.Close()
		s.Close()
		must(t, o.Model.Close())
		must(t, dev.Close())
	})
	return &bench{s, server.URL + "/v1", tok}
}

// post sends a body and returns the status and the answer.
func (b *bench) post(t testing.TB, path, body string) (int, string) {
	t.Helper()
	r, err := http.Post(b.url+path, "application/json", strings.NewReader(body))
	must(t, err)
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	must(t, err)
	return r.StatusCode, string(text)
}

// ask posts and decodes a good answer.
func ask200[T any](t testing.TB, b *bench, path, body string) T {
	t.Helper()
	status, text := b.post(t, path, body)
	var v T
	if err := json.Unmarshal([]byte(text), &v); err != nil || status != http.StatusOK {
		t.Fatalf("%s %s: status %d, %s", path, body, status, text)
	}
	return v
}

func (b *bench) client(key string) *openai.Client {
	c := openai.DefaultConfig(key)
	c.BaseURL = b.url
	return openai.NewClientWithConfig(c)
}

// free waits until nothing is in the making, and fails if the cache is not free then.
func (b *bench) free(t testing.TB) {
	t.Helper()
	for range 1000 {
		l, err := b.engine.load(t.Context())
		must(t, err)
		if l.Running+l.Waiting == 0 {
			if l.Free != l.Tokens {
				t.Errorf("nothing is in the making, but %+v", l)
			}
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Error("the server goes on generating")
}

// What a client gets is what rubicon generate gives: the same tokens for the same seed.
func TestCompletionsAreGenerates(t *testing.T) {
	b := start(t, nil)
	got := ask200[textAnswer](t, b, "/completions", `{"prompt": "one two three", "n": 3, "seed": 9, "max_tokens": 12, "temperature": 0.7, "top_p": 0.9, "return_token_ids": true}`)
	b.Close()
	ids := b.tok.Encode("one two three", token.EncodeOptions{AddSpecial: true})
	want, err := b.o.Model.Generate(t.Context(), []policy.Request{{Prompt: ids, N: 3, Stream: []uint64{9, 1}}}, policy.GenerateOptions{
		SamplingParams: policy.SamplingParams{Temperature: 0.7, TopP: 0.9, RepetitionPenalty: 1, MaxNewTokens: 12, EOS: b.o.EOS},
	})
	must(t, err)
	for i, w := range want[0] {
		if !slices.Equal(got.Choices[i].TokenIDs, w.Tokens) || got.Choices[i].Text != b.tok.Decode(w.Tokens, true) {
			t.Errorf("choice %d: %v, want %v", i, got.Choices[i].TokenIDs, w.Tokens)
		}
	}
	if got.Usage.PromptTokens != len(ids) || !slices.Equal(got.Choices[0].PromptTokenIDs, ids) {
		t.Errorf("%+v", got.Usage)
	}
}

// A stream's pieces are the whole answer, with go-openai, and a stop string is nowhere in it.
func TestStreams(t *testing.T) {
	b := start(t, nil)
	client := b.client("")
	seed := 4
	q := openai.ChatCompletionRequest{Model: "tiny", Messages: []openai.ChatCompletionMessage{{Role: "user", Content: "hello"}}, MaxCompletionTokens: 40, Seed: &seed, N: 2}
	plain, err := client.CreateChatCompletion(t.Context(), q)
	must(t, err)
	first := []rune(plain.Choices[0].Message.Content)
	if len(first) < 12 {
		t.Fatalf("the model says only %q", string(first))
	}
	q.Stop = []string{string(first[6:9]), "never said"}
	whole, err := client.CreateChatCompletion(t.Context(), q)
	must(t, err)
	q.Stream, q.StreamOptions = true, &openai.StreamOptions{IncludeUsage: true}
	stream, err := client.CreateChatCompletionStream(t.Context(), q)
	must(t, err)
	defer stream.Close()
	texts, finish := map[int]string{}, map[int]openai.FinishReason{}
	var usage *openai.Usage
	for {
		piece, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		must(t, err)
		for _, c := range piece.Choices {
			texts[c.Index] += c.Delta.Content
			if c.FinishReason != "" {
				finish[c.Index] = c.FinishReason
			}
		}
		if piece.Usage != nil {
			usage = piece.Usage
		}
	}
	for i, c := range whole.Choices {
		if texts[i] != c.Message.Content || finish[i] != c.FinishReason || strings.Contains(texts[i], q.Stop[0]) {
			t.Errorf("choice %d: %q %s in pieces, %q %s in one, stop %q", i, texts[i], finish[i], c.Message.Content, c.FinishReason, q.Stop[0])
		}
	}
	if c := whole.Choices[0]; c.FinishReason != "stop" || !strings.HasPrefix(string(first), c.Message.Content) {
		t.Errorf("the first choice stops with %q: %q", c.FinishReason, c.Message.Content)
	}
	if usage == nil || usage.CompletionTokens != whole.Usage.CompletionTokens || usage.PromptTokensDetails.CachedTokens == 0 {
		t.Errorf("usage %+v, want %+v", usage, whole.Usage)
	}
}

// Echoed log-probabilities are those of a forward pass, and those of a chat too.
func TestLogProbs(t *testing.T) {
	b := start(t, nil)
	got := ask200[textAnswer](t, b, "/completions", `{"prompt": [[5, 6, 7, 8, 9]], "max_tokens": 3, "echo": true, "logprobs": 2, "temperature": 0.2, "top_k": 3, "return_token_ids": true}`).Choices[0]
	chat := ask200[chatAnswer](t, b, "/chat/completions", `{"messages": [{"role": "user", "content": "a"}], "max_tokens": 4, "logprobs": true, "top_logprobs": 3, "return_token_ids": true}`)
	score := ask200[textAnswer](t, b, "/completions", `{"prompt": [5, 6, 7, 8, 9], "max_tokens": 0, "echo": true, "logprobs": 1}`)
	b.Close()
	forward := func(ids []int32) []float32 {
		mark := make([]bool, len(ids))
		for i := range mark {
			mark[i] = i > 0
		}
		p, err := b.o.Model.Forward(&policy.Forest{Segments: []policy.Segment{{Parent: policy.Root, Tokens: ids, Score: mark}}}, policy.ForwardOptions{Temperature: 1})
		must(t, err)
		defer p.Release()
		return slices.Clone(p.Output.LogP)
	}
	near := func(what string, got *float32, want float32) {
		t.Helper()
		if got == nil || math.Abs(float64(*got-want)) > 1e-5 {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	want := forward(append([]int32{5, 6, 7, 8, 9}, got.TokenIDs...))
	if got.LogProbs.LogProbs[0] != nil || len(got.LogProbs.LogProbs) != len(want)+1 || len(got.LogProbs.Tokens) != len(want)+1 {
		t.Fatalf("%+v", got.LogProbs)
	}
	for i, w := range want {
		near(fmt.Sprint("text token ", i+1), got.LogProbs.LogProbs[i+1], w)
		if n := len(got.LogProbs.Top[i+1]); n < 2 || n > 3 {
			t.Errorf("token %d has %d alternatives", i+1, n)
		}
		if i < 4 {
			near(fmt.Sprint("scored token ", i+1), score.Choices[0].LogProbs.LogProbs[i+1], w)
		}
	}
	want = forward(append(slices.Clone(chat.PromptTokenIDs), chat.Choices[0].TokenIDs...))[len(chat.PromptTokenIDs)-1:]
	raw, err := json.Marshal(chat.Choices[0].LogProbs)
	must(t, err)
	var said map[string][]chatLogProb
	must(t, json.Unmarshal(raw, &said))
	for i, w := range want {
		near(fmt.Sprint("chat token ", i), &said["content"][i].LogProb, w)
		if len(said["content"][i].Top) != 3 {
			t.Errorf("chat token %d: %+v", i, said["content"][i])
		}
	}
}

// Answers meet the schema that response_format gives.
func TestResponseFormat(t *testing.T) {
	b := start(t, nil)
	got := ask200[chatAnswer](t, b, "/chat/completions", `{"messages": [{"role": "user", "content": [{"type": "text", "text": "go"}]}], "n": 4, "max_tokens": 60, "response_format":
		{"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object", "properties": {"a": {"enum": ["x", "y"]}, "b": {"type": "boolean"}}, "required": ["a", "b"], "additionalProperties": false}}}}`)
	for _, c := range got.Choices {
		var v struct {
			A *string
			B *bool
		}
		if err := json.Unmarshal([]byte(*c.Message.Content), &v); err != nil || v.A == nil || *v.A != "x" && *v.A != "y" || v.B == nil {
			t.Errorf("%q: %v", *c.Message.Content, err)
		}
	}
}

// What the model writes as calls of tools comes back as such, in Qwen's form and in Llama's; what is no call, as text.
func TestToolCalls(t *testing.T) {
	for said, want := range map[string]string{
		"Let me see.\n<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1}}\n</tool_call>": `{"content":"Let me see.","tool_calls":[{"id":"call_0_0","type":"function","function":{"name":"add","arguments":"{\"a\": 1}"}}]}`,
		"<think>hm</think>{\"name\": \"add\", \"parameters\": {}}":                               `{"tool_calls":[{"id":"call_0_0","type":"function","function":{"name":"add","arguments":"{}"}}]}`,
		"<tool_call>{\"name\": 3}</tool_call>":                                                   `{"content":"\u003ctool_call\u003e{\"name\": 3}\u003c/tool_call\u003e"}`,
		"Four.":                                                                                  `{"content":"Four."}`,
	} {
		c := &chatReply{q: &chatRequest{Tools: json.RawMessage(`[{"type": "function"}]`)}}
		m, finish := c.message(&choice{text: said, finish: "stop"})
		got, err := json.Marshal(m)
		must(t, err)
		if string(got) != want || (finish == "tool_calls") != (m.ToolCalls != nil) {
			t.Errorf("%q: %s %s, want %s", said, got, finish, want)
		}
	}
	b := start(t, nil)
	tools := `"tools": [{"type": "function", "function": {"name": "add_numbers", "parameters": {"type": "object"}}}]`
	body := `{"messages": [{"role": "user", "content": "a"}], "max_tokens": 1, "return_token_ids": true, %s}`
	with := ask200[chatAnswer](t, b, "/chat/completions", fmt.Sprintf(body, tools))
	without := ask200[chatAnswer](t, b, "/chat/completions", fmt.Sprintf(body, tools+`, "tool_choice": "none"`))
	if len(with.PromptTokenIDs) < len(without.PromptTokenIDs) {
		t.Error("the template does not get the tools")
	}
}

// A vector is the mean of the last hidden states; base64 is the same as little-endian floats.
func TestEmbeddings(t *testing.T) {
	b := start(t, nil)
	got, err := b.client("").CreateEmbeddings(t.Context(), openai.EmbeddingRequestStrings{Input: []string{"one two", "three"}, Model: "tiny", EncodingFormat: "float"})
	must(t, err)
	packed, err := b.client("").CreateEmbeddings(t.Context(), openai.EmbeddingRequestStrings{Input: []string{"one two", "three"}, Model: "tiny", EncodingFormat: "base64"})
	must(t, err)
	b.Close()
	for i, text := range []string{"one two", "three"} {
		ids := b.tok.Encode(text, token.EncodeOptions{AddSpecial: true})
		hidden, err := b.o.Model.Hidden(&policy.Forest{Segments: []policy.Segment{{Parent: policy.Root, Tokens: ids}}}, "")
		must(t, err)
		width := len(hidden[0]) / len(ids)
		for k := range width {
			mean := 0.0
			for row := range ids {
				mean += float64(hidden[0][row*width+k]) / float64(len(ids))
			}
			if x := got.Data[i].Embedding[k]; math.Abs(float64(x)-mean) > 1e-5 || x != packed.Data[i].Embedding[k] {
				t.Fatalf("text %d, element %d: %v and %v, want %v", i, k, x, packed.Data[i].Embedding[k], mean)
			}
		}
	}
}

// What is wrong with a request is said, with the parameter.
func TestRefusals(t *testing.T) {
	b := start(t, nil)
	for _, c := range []struct {
		path, body string
		status     int
		want       string
	}{
		{"/chat/completions", `{`, 400, "not the JSON object"},
		{"/chat/completions", `{"messages": []}`, 400, "messages is empty"},
		{"/chat/completions", `{"messages": [{"content": "x"}]}`, 400, "no role"},
		{"/chat/completions", `{"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}`, 400, "only text is supported"},
		{"/chat/completions", `{"messages": [{"role": "user", "content": "x"}], "model": "other"}`, 404, "there is no model"},
		{"/chat/completions", `{"messages": [{"role": "user", "content": "x"}], "n": 0}`, 400, `"param":"n"`},
		{"/chat/completions", `{"messages": [{"role": "user", "content": "x"}], "n": "two"}`, 400, `"param":"n"`},
		{"/chat/completions", `{"messages": [{"role": "user", "content": "x"}], "max_tokens": 201}`, 400, "at most 200"},
		{"/chat/completions", `{"messages": [{"role": "user", "content": "x"}], "max_completion_tokens": -1}`, 400, "at least 1"},
		{"/chat/completions", `{"messages": [{"role": "user", "content": "x"}], "temperature": -1}`, 400, "temperature"},
		{"/chat/completions", `{"messages": [{"role": "user", "content": "x"}], "top_logprobs": 21}`, 400, "top_logprobs"},
		{"/chat/completions", `{"messages": [{"role": "user", "content": "x"}], "presence_penalty": 1}`, 400, "repetition_penalty"},
		{"/chat/completions", `{"messages": [{"role": "user", "content": "x"}], "tools": 5}`, 400, "tools is not a list"},
		{"/chat/completions", `{"messages": [{"role": "user", "content": "x"}], "tool_choice": "required"}`, 400, "use auto or none"},
		{"/chat/completions", `{"messages": [{"role": "user", "content": "x"}], "logit_bias": {"1": 2}}`, 400, "logit_bias"},
		{"/chat/completions", `{"messages": [{"role": "user", "content": "x"}], "response_format": {"type": "xml"}}`, 400, "json_schema"},
		{"/chat/completions", `{"messages": [{"role": "user", "content": "x"}], "response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "nothing"}}}}`, 400, "JSON Schema"},
		{"/completions", `[]`, 400, "not the JSON object"},
		{"/completions", `{}`, 400, "prompt is missing"},
		{"/completions", `{"prompt": {"a": 1}}`, 400, "neither a text"},
		{"/completions", `{"prompt": [1, 99999999]}`, 400, "not in the vocabulary"},
		{"/completions", `{"prompt": ""}`, 400, "the prompt is empty"},
		{"/completions", `{"prompt": "a", "max_tokens": 0}`, 400, "only with echo"},
		{"/completions", `{"prompt": "a", "best_of": 3}`, 400, "best_of"},
		{"/completions", `{"prompt": "a", "suffix": "b"}`, 400, "suffix"},
		{"/completions", `{"prompt": "a", "echo": true, "stream": true}`, 400, "cannot be streamed"},
		{"/completions", `{"prompt": "` + strings.Repeat("a b ", 5000) + `"}`, 400, "shorten it"},
		{"/completions", `{"prompt": "` + strings.Repeat("a", 1<<20) + `"}`, 413, "longer than"},
		{"/embeddings", `{"input": "a", "encoding_format": "int8"}`, 400, "float or base64"},
		{"/embeddings", `{"input": ""}`, 400, "0 tokens"},
		{"/completions", `{"prompt": ["a", "b", "c"], "n": 128}`, 400, "--max-queue"},
		{"/load_lora_adapter", `{"lora_name": "a", "lora_path": "b"}`, 403, "--lora-dir"},
		{"/nowhere", `{}`, 404, "there is no POST /v1/nowhere"},
	} {
		if status, text := b.post(t, c.path, c.body); status != c.status || !strings.Contains(text, c.want) {
			t.Errorf("%s %.80s: status %d, %.300s, want %d and %q", c.path, c.body, status, text, c.status, c.want)
		}
	}
	b.free(t)
}

// Without the key nothing but /health answers.
func TestKeys(t *testing.T) {
	b := start(t, func(o *Options) { o.APIKey = "secret" })
	if _, err := b.client("wrong").ListModels(t.Context()); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("with a wrong key: %v", err)
	}
	if list, err := b.client("secret").ListModels(t.Context()); err != nil || list.Models[0].ID != "tiny" {
		t.Errorf("with the key: %+v, %v", list, err)
	}
	r, err := http.Get(strings.TrimSuffix(b.url, "/v1") + "/health")
	must(t, err)
	r.Body.Close()
	if r.StatusCode != http.StatusOK {
		t.Errorf("/health: %d", r.StatusCode)
	}
}

const endless = `{"prompt": "a", "max_tokens": 200, "n": %d, "stream": true, "temperature": 2}`

// hold opens a stream that goes on until the test ends it.
func (b *bench) hold(t testing.TB, n int) (leave func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, b.url+"/completions", strings.NewReader(fmt.Sprintf(endless, n)))
	must(t, err)
	answer, err := http.DefaultClient.Do(r)
	must(t, err)
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("status %d", answer.StatusCode)
	}
	return func() {
		cancel()
		answer.Body.Close()
	}
}

// slowly has every step take a while, so that requests are in flight as long as a test wants.
func slowly(b *bench, t testing.TB) {
	must(t, b.engine.do(t.Context(), func() error {
		b.engine.later = append(b.engine.later, func() bool {
			time.Sleep(2 * time.Millisecond)
			return false
		})
		return nil
	}))
}

// A full queue is said so, clients that leave free what they had, and others go on.
func TestQueueAndLeaving(t *testing.T) {
	b := start(t, func(o *Options) { o.MaxQueue, o.EOS = 8, nil })
	slowly(b, t)
	leave := b.hold(t, 8)
	if status, text := b.post(t, "/completions", `{"prompt": "a"}`); status != http.StatusTooManyRequests || !strings.Contains(text, "queue_full") {
		t.Errorf("with a full queue: %d %s", status, text)
	}
	leave()
	b.free(t)
	for status := 0; status != http.StatusOK; { // the handler notices a little later
		status, _ = b.post(t, "/completions", `{"prompt": "a", "max_tokens": 2}`)
	}
	_, text := b.metricsText(t)
	if !strings.Contains(text, "rubicon_requests_refused_total") || strings.Contains(text, "rubicon_requests_refused_total 0") {
		t.Errorf("no refusal in the metrics:\n%s", text)
	}
}

func (b *bench) metricsText(t testing.TB) (int, string) {
	t.Helper()
	r, err := http.Get(strings.TrimSuffix(b.url, "/v1") + "/metrics")
	must(t, err)
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	must(t, err)
	return r.StatusCode, string(text)
}

// A request that takes too long is ended.
func TestTimeout(t *testing.T) {
	b := start(t, func(o *Options) { o.Timeout, o.EOS = 50*time.Millisecond, nil })
	slowly(b, t)
	if status, text := b.post(t, "/completions", `{"prompt": "a", "max_tokens": 200}`); status != http.StatusGatewayTimeout || !strings.Contains(text, "longer than the server allows") {
		t.Errorf("%d %s", status, text)
	}
	b.free(t)
}

// While it drains nothing new is taken, and what is in flight is answered.
func TestDrain(t *testing.T) {
	b := start(t, func(o *Options) { o.EOS = nil })
	slowly(b, t)
	answers := make(chan string, 1)
	go func() {
		_, text := b.post(t, "/completions", `{"prompt": "a", "max_tokens": 30}`)
		answers <- text
	}()
	for busy := false; !busy; {
		l, err := b.engine.load(t.Context())
		must(t, err)
		busy = l.Running > 0
	}
	drained := make(chan error, 1)
	go func() { drained <- b.Drain(t.Context()) }()
	for status := 0; status != http.StatusServiceUnavailable; {
		status, _ = b.post(t, "/completions", `{"prompt": "a", "max_tokens": 1}`)
	}
	if text := <-answers; !strings.Contains(text, `"finish_reason":"length"`) {
		t.Errorf("in flight: %s", text)
	}
	must(t, <-drained)
}

// Adapters come and go while requests are answered; each request gets the one that it names.
func TestAdapters(t *testing.T) {
	dir := t.TempDir()
	must(t, os.CopyFS(filepath.Join(dir, "one"), os.DirFS(golden.Path("lora", "qwen2-all-plain", "adapter"))))
	b := start(t, func(o *Options) { o.Adapters = dir })
	body := `{"model": %q, "prompt": "one two", "max_tokens": 8, "temperature": 0, "return_token_ids": true}`
	if status, _ := b.post(t, "/completions", fmt.Sprintf(body, "a")); status != http.StatusNotFound {
		t.Errorf("before it is loaded: %d", status)
	}
	for _, path := range []string{"../one", "/etc", "nothing"} {
		if status, text := b.post(t, "/load_lora_adapter", fmt.Sprintf(`{"lora_name": "a", "lora_path": %q}`, path)); status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	load := `{"lora_name": "a", "lora_path": "one"}`
	ask200[map[string]string](t, b, "/load_lora_adapter", load)
	if status, text := b.post(t, "/load_lora_adapter", load); status != http.StatusBadRequest || !strings.Contains(text, "unload it first") {
		t.Errorf("loaded twice: %d %s", status, text)
	}
	list, err := b.client("").ListModels(t.Context())
	must(t, err)
	if len(list.Models) != 2 || list.Models[1].ID != "a" || list.Models[1].Parent != "tiny" {
		t.Errorf("%+v", list.Models)
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			b.post(t, "/completions", fmt.Sprintf(`{"model": %q, "prompt": "x %d", "max_tokens": 30}`, []string{"a", "tiny"}[i%2], i))
		})
	}
	ask200[map[string]string](t, b, "/unload_lora_adapter", `{"lora_name": "a"}`)
	all.Wait()
	ask200[map[string]string](t, b, "/load_lora_adapter", load)
	got := ask200[textAnswer](t, b, "/completions", fmt.Sprintf(body, "a"))
	if base := ask200[textAnswer](t, b, "/completions", fmt.Sprintf(body, "tiny")); slices.Equal(base.Choices[0].TokenIDs, got.Choices[0].TokenIDs) {
		t.Fatal("the adapter changes nothing, so that this test shows nothing")
	}
	b.Close()
	must(t, b.o.Model.LoadAdapter("y", filepath.Join(dir, "one")))
	ids := b.tok.Encode("one two", token.EncodeOptions{AddSpecial: true})
	want, err := b.o.Model.Generate(t.Context(), []policy.Request{{Prompt: ids, N: 1}}, policy.GenerateOptions{
		Adapter: "y", SamplingParams: policy.SamplingParams{Temperature: 1, Greedy: true, TopP: 1, RepetitionPenalty: 1, MaxNewTokens: 8, EOS: b.o.EOS},
	})
	must(t, err)
	if !slices.Equal(got.Choices[0].TokenIDs, want[0][0].Tokens) {
		t.Errorf("%v, want the adapter's %v", got.Choices[0].TokenIDs, want[0][0].Tokens)
	}
}

// Of those who load an adapter under one name at the same time one does, and the others leave nothing behind.
func TestAdapterIsLoadedOnce(t *testing.T) {
	dir := t.TempDir()
	must(t, os.CopyFS(filepath.Join(dir, "one"), os.DirFS(golden.Path("lora", "qwen2-all-plain", "adapter"))))
	b := start(t, func(o *Options) { o.Adapters = dir })
	var all sync.WaitGroup
	var loaded atomic.Int32
	for range 8 {
		all.Go(func() {
			if status, _ := b.post(t, "/load_lora_adapter", `{"lora_name": "a", "lora_path": "one"}`); status == http.StatusOK {
				loaded.Add(1)
			}
		})
	}
	all.Wait()
	if loaded.Load() != 1 || b.loads != 1 {
		t.Errorf("%d of 8 were told that it is loaded, and it was %d times", loaded.Load(), b.loads)
	}
}

// An empty prompt has no first token to echo.
func TestEchoOfAnEmptyPrompt(t *testing.T) {
	b := start(t, nil)
	got := ask200[textAnswer](t, b, "/completions", `{"prompt": ["a b", ""], "echo": true, "logprobs": 1, "max_tokens": 0}`)
	if len(got.Choices) != 2 || got.Choices[1].Text != "" || len(got.Choices[1].LogProbs.Tokens) != 0 {
		t.Errorf("%+v", got.Choices)
	}
}

// Many clients at once get what each would alone.
func TestManyClients(t *testing.T) {
	b := start(t, func(o *Options) { o.Session.KVTokens, o.Session.MaxBatch, o.MaxQueue = 1280, 6, 1000 })
	bodies := make([]string, 40)
	for i := range bodies {
		bodies[i] = fmt.Sprintf(`{"prompt": "a b c d e f %d", "seed": %d, "max_tokens": %d, "n": %d, "return_token_ids": true}`, i%5, i, 3+i, 1+i%3)
	}
	strip := func(text string) string { // what differs between two answers to one request
		var v textAnswer
		must(t, json.Unmarshal([]byte(text), &v))
		out, err := json.Marshal(v.Choices)
		must(t, err)
		return string(out)
	}
	together := make([]string, len(bodies))
	var all sync.WaitGroup
	for i, body := range bodies {
		all.Go(func() {
			_, together[i] = b.post(t, "/completions", body)
		})
	}
	all.Wait()
	for i, body := range bodies {
		_, alone := b.post(t, "/completions", body)
		if strip(alone) != strip(together[i]) {
			t.Errorf("request %d: %s, alone %s", i, together[i], alone)
		}
	}
	b.free(t)
	if _, text := b.metricsText(t); strings.Contains(text, "rubicon_prompt_tokens_cached_total 0") {
		t.Error("no prompt token was shared")
	}
}

// Who asks without end does not keep the engine from its next step, and neither does who has it compute: that is one thing at a time.
func TestAskingDoesNotStopGenerating(t *testing.T) {
	e, done := &engine{ops: make(chan op, 3*mostOps)}, 0
	for range cap(e.ops) {
		e.ops <- op{do: func() { done++ }}
	}
	if e.attend(); done != mostOps {
		t.Errorf("%d were done between two steps, want %d", done, mostOps)
	}
	e, done = &engine{ops: make(chan op, 2)}, 0
	for range cap(e.ops) {
		e.ops <- op{do: func() { done++ }, long: true}
	}
	if e.attend(); done != 1 {
		t.Errorf("%d long ones were done between two steps", done)
	}
}

// A caller that leaves while the engine answers it shares nothing with the engine any more; run it with -race.
func TestCallersThatLeave(t *testing.T) {
	b := start(t, nil)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := range 60 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration((i+n)%7)*50*time.Microsecond)
				l, _ := b.engine.load(ctx)
				v, _ := b.engine.embed(ctx, [][]int32{{5, 6, 7}}, "")
				s, _ := b.engine.score(ctx, []int32{5, 6, 7}, "", 1)
				_, _, _ = l.Running, len(v), len(s)
				cancel()
			}
		})
	}
	all.Wait()
	b.free(t)
}
