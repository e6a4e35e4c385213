package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/sashabaranov/go-openai"
)

// OpenAIOptions describe an OpenAI-compatible server.
type OpenAIOptions struct {
	URL            string            // root of the API; mostly ends in /v1
	APIKey         string            // "": none is sent, as local servers like it
	ResponseFormat string            // auto, json_schema, json_object or none
	SendSeed       bool              // off for servers that refuse the field
	RoundTripper   http.RoundTripper // nil: the network
}

// The response formats. auto is the best that the server takes.
const (
	formatAuto   = "auto"
	formatSchema = "json_schema"
	formatObject = "json_object"
	formatNone   = "none"
)

// OpenAI is a Transport to an OpenAI-compatible server. The API key appears in no error and no reply.
type OpenAI struct {
	url, key string
	format   string
	sendSeed bool
	http     *http.Client
	formats  sync.Map // model -> the format that Preflight found
}

// NewOpenAI makes a Transport; nothing is sent yet.
func NewOpenAI(o OpenAIOptions) (*OpenAI, error) {
	if err := checkURL(o.URL); err != nil {
		return nil, err
	}
	key := strings.TrimSpace(o.APIKey)
	if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("the API key holds characters that no key has: check the variable that judge.api_key_env names")
	}
	rt := o.RoundTripper
	if rt == nil {
		rt = network()
	}
	client := &http.Client{
		Transport: rt,
		// A redirect would turn the question into another request, perhaps to another host: it is an error.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return &OpenAI{url: strings.TrimRight(o.URL, "/"), key: key, format: o.ResponseFormat, sendSeed: o.SendSeed, http: client}, nil
}

// network is the way out. There is no limit on the time to the first byte of a reply, which comes when the model has
// finished: the context of the call bounds it.
func network() *http.Transport {
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout: 10 * time.Second,
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: 256, // above any sensible number of questions in flight, so that connections are used again
		IdleConnTimeout:     90 * time.Second,
	}
}

func checkURL(raw string) error {
	u, err := url.Parse(raw)
	switch {
	case raw == "":
		return errors.New("set judge.url to the root of an OpenAI-compatible API, such as http://127.0.0.1:8000/v1")
	case err != nil:
		return errors.New("judge.url is not a URL: give one such as http://127.0.0.1:8000/v1") // err would show a password
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return fmt.Errorf("judge.url %q: give a URL with http:// or https:// and a host, such as http://127.0.0.1:8000/v1", u.Redacted())
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return errors.New("judge.url holds a user, a ? or a #: give the plain URL, and the key in the variable that judge.api_key_env names")
	case strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/chat/completions"):
		return fmt.Errorf("judge.url %q: leave out /chat/completions", raw)
	}
	return nil
}

// Name tells an OpenAI-compatible server from other transports.
func (o *OpenAI) Name() string { return "openai" }

// Close lets go of idle connections.
func (o *OpenAI) Close() error {
	o.http.CloseIdleConnections()
	return nil
}

// Complete sends a call. If the format is chosen automatically and the server refuses a call with a schema, the call is
// sent once more without it: servers differ in which schemas they take, and the messages hold the schema as well.
func (o *OpenAI) Complete(ctx context.Context, c *Call) (*Reply, error) {
	if c.Schema == nil {
		return o.complete(ctx, c, formatNone, o.fields(c))
	}
	format := o.formatOf(c.Model)
	reply, err := o.complete(ctx, c, format, o.fields(c))
	if status, ok := errors.AsType[*StatusError](err); ok && o.format == formatAuto && format != formatNone && refusesFormat(status.Code) {
		return o.complete(ctx, c, formatNone, o.fields(c))
	}
	return reply, err
}

func (o *OpenAI) formatOf(model string) string {
	if o.format != formatAuto {
		return o.format
	}
	if found, ok := o.formats.Load(model); ok {
		return found.(string)
	}
	return formatSchema
}

// refusesFormat tells whether a status may mean that the server does not take the response format.
func refusesFormat(code int) bool {
	return code == http.StatusBadRequest || code == http.StatusUnprocessableEntity || code == http.StatusNotImplemented
}

func (o *OpenAI) complete(ctx context.Context, c *Call, format string, fields map[string]any) (*Reply, error) {
	w := &wire{http: o.http, key: o.key, fields: fields}
	response, err := o.through(w).CreateChatCompletion(ctx, openai.ChatCompletionRequest{
		Model: c.Model, Messages: messages(c), ResponseFormat: responseFormat(c, format),
	})
	if err != nil {
		return nil, err
	}
	return readReply(&response, w.head)
}

// through is a client of go-openai whose request goes through w.
func (o *OpenAI) through(w *wire) *openai.Client {
	config := openai.DefaultConfig(o.key)
	config.BaseURL, config.HTTPClient = o.url, w
	return openai.NewClientWithConfig(config)
}

// fields are those that go-openai leaves out when they are 0, or refuses on behalf of the server.
func (o *OpenAI) fields(c *Call) map[string]any {
	m := map[string]any{"temperature": c.Temperature, "top_p": c.TopP, limitField(c.Model): c.MaxTokens}
	if o.sendSeed {
		m["seed"] = c.Seed
	}
	return m
}

// limitField names the field that limits the reply's length. OpenAI's reasoning models refuse the old one, and most other
// servers know only that.
func limitField(model string) string {
	for _, series := range []string{"o1", "o3", "o4", "gpt-5", "gpt-6"} {
		if strings.HasPrefix(model, series) {
			return "max_completion_tokens"
		}
	}
	return "max_tokens"
}

func messages(c *Call) []openai.ChatCompletionMessage {
	list := make([]openai.ChatCompletionMessage, len(c.Messages))
	for i, m := range c.Messages {
		list[i] = openai.ChatCompletionMessage{Role: m.Role, Content: m.Content}
	}
	return list
}

func responseFormat(c *Call, format string) *openai.ChatCompletionResponseFormat {
	switch format {
	case formatSchema:
		return &openai.ChatCompletionResponseFormat{
			Type: openai.ChatCompletionResponseFormatTypeJSONSchema,
			JSONSchema: &openai.ChatCompletionResponseFormatJSONSchema{
				Name: c.Name, Schema: c.Schema, Strict: strict(c.Schema),
			},
		}
	case formatObject:
		return &openai.ChatCompletionResponseFormat{Type: openai.ChatCompletionResponseFormatTypeJSONObject}
	}
	return nil
}

// strict tells whether a schema has the form that OpenAI's strict mode wants: every object closed, all its properties
// required. Others would be refused.
func strict(schema json.RawMessage) bool {
	var v any
	return json.Unmarshal(schema, &v) == nil && closed(v)
}

func closed(v any) bool {
	switch x := v.(type) {
	case []any:
		for _, child := range x {
			if !closed(child) {
				return false
			}
		}
	case map[string]any:
		if x["type"] == "object" {
			properties, _ := x["properties"].(map[string]any)
			required, _ := x["required"].([]any)
			if x["additionalProperties"] != false || len(required) != len(properties) {
				return false
			}
		}
		for _, child := range x {
			if !closed(child) {
				return false
			}
		}
	}
	return true
}

// readReply takes what counts from a response; reasoning fields do not.
func readReply(r *openai.ChatCompletionResponse, head string) (*Reply, error) {
	reply := &Reply{PromptTokens: max(0, r.Usage.PromptTokens), CompletionTokens: max(0, r.Usage.CompletionTokens)}
	if len(r.Choices) == 0 {
		return reply, fmt.Errorf("the reply has no choices: %s", head)
	}
	choice := r.Choices[0]
	reply.Text = choice.Message.Content
	reply.Truncated = choice.FinishReason == openai.FinishReasonLength
	if strings.TrimSpace(reply.Text) == "" && !reply.Truncated {
		return reply, fmt.Errorf("%w (finish reason %q) %s", ErrEmpty, choice.FinishReason, clip(choice.Message.Refusal, 200))
	}
	return reply, nil
}
