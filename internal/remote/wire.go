package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// completionRequest is the body of /v1/completions; what OpenAI does not have is vLLM's.
type completionRequest struct {
	Model             string   `json:"model"`
	Prompt            []int32  `json:"prompt"`
	N                 int      `json:"n"`
	MaxTokens         int      `json:"max_tokens"`
	Temperature       float32  `json:"temperature"`
	TopP              float32  `json:"top_p"`
	TopK              int      `json:"top_k"`
	MinP              float32  `json:"min_p"`
	RepetitionPenalty float32  `json:"repetition_penalty"`
	Stop              []string `json:"stop,omitempty"`
	StopTokenIDs      []int32  `json:"stop_token_ids,omitempty"`
	Seed              int64    `json:"seed"`
	LogProbs          int      `json:"logprobs"`
	ReturnTokenIDs    bool     `json:"return_token_ids"`
}

type completionReply struct {
	Model   string   `json:"model"`
	Choices []choice `json:"choices"`
}

type choice struct {
	Index          int     `json:"index"`
	Finish         string  `json:"finish_reason"`
	TokenIDs       []int32 `json:"token_ids"`
	PromptTokenIDs []int32 `json:"prompt_token_ids"`
	LogProbs       *struct {
		TokenLogProbs []*float32 `json:"token_logprobs"`
	} `json:"logprobs"`
}

type loraRequest struct {
	Name string `json:"lora_name"`
	Path string `json:"lora_path,omitempty"`
}

type modelList struct {
	Data []modelCard `json:"data"`
}

type modelCard struct {
	ID string `json:"id"`
}

// StatusError is an answer with a status other than 200.
type StatusError struct {
	Code int
	Body string // its beginning
}

func (e *StatusError) Error() string { return fmt.Sprintf("status %d: %s", e.Code, e.Body) }

// errAnswer is in the error of an answer that is not what was asked for, which asking again would not change.
var errAnswer = errors.New("the answer cannot be used")

const (
	maxAnswer = 1 << 28 // bytes
	maxFault  = 1 << 10 // bytes of an error that are shown
)

func (e *Engine) post(ctx context.Context, url string, body, reply any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(b))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	return e.do(r, reply)
}

func (e *Engine) get(ctx context.Context, url string, reply any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	return e.do(r, reply)
}

// do sends a request; reply nil: whatever is answered will do, since vLLM answers loading in plain text.
func (e *Engine) do(r *http.Request, reply any) error {
	if e.o.APIKey != "" {
		r.Header.Set("Authorization", "Bearer "+e.o.APIKey)
	}
	resp, err := e.client.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(io.LimitReader(resp.Body, maxFault)) // the status says enough
		return &StatusError{resp.StatusCode, string(b)}
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil || reply == nil {
		return err
	}
	if err := json.Unmarshal(b, reply); err != nil {
		return fmt.Errorf("%w: %w", errAnswer, err)
	}
	return nil
}
