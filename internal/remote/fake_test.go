package remote

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// vllm is a strict stand-in for vLLM's server with --enable-lora: it refuses what vLLM refuses, in vLLM's words, and answers loading in
// plain text as vLLM does. Choice k of a prompt is the prompt's first token, k, and the end token.
type vllm struct {
	t   *testing.T
	url string

	mu     sync.Mutex
	loaded []string
	calls  []string         // loads and unloads
	asked  []map[string]any // completions
	fault  func(n int) int  // status of completion n instead of an answer; 0: answer
	spoil  func(choice map[string]any)
}

const end = 7 // the end token

func fake(t *testing.T) *vllm {
	v := &vllm{t: t}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", v.models)
	mux.HandleFunc("POST /v1/load_lora_adapter", v.load)
	mux.HandleFunc("POST /v1/unload_lora_adapter", v.unload)
	mux.HandleFunc("POST /v1/completions", v.complete)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer key" {
			refuse(w, http.StatusUnauthorized, "Unauthorized")
			return
		}
		v.mu.Lock()
		defer v.mu.Unlock()
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	v.url = server.URL + "/v1"
	return v
}

func refuse(w http.ResponseWriter, status int, text string) {
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": text, "code": status}})
}

func (v *vllm) models(w http.ResponseWriter, _ *http.Request) {
	list := []map[string]string{{"id": "base"}}
	for _, name := range v.loaded {
		list = append(list, map[string]string{"id": name, "parent": "base"})
	}
	json.NewEncoder(w).Encode(map[string]any{"object": "list", "data": list})
}

func (v *vllm) load(w http.ResponseWriter, r *http.Request) {
	q := decode(w, r)
	name, path := fmt.Sprint(q["lora_name"]), fmt.Sprint(q["lora_path"])
	v.calls = append(v.calls, "load "+name)
	if slices.Contains(v.loaded, name) {
		refuse(w, http.StatusBadRequest, fmt.Sprintf("The lora adapter '%s' has already been loaded.", name))
		return
	}
	if _, err := os.Stat(filepath.Join(path, "adapter_config.json")); err != nil {
		refuse(w, http.StatusNotFound, fmt.Sprintf("Loading lora %s failed: No adapter found for %s", name, path))
		return
	}
	v.loaded = append(v.loaded, name)
	fmt.Fprintf(w, "Success: LoRA adapter '%s' added successfully.", name)
}

func (v *vllm) unload(w http.ResponseWriter, r *http.Request) {
	name := fmt.Sprint(decode(w, r)["lora_name"])
	v.calls = append(v.calls, "unload "+name)
	if !slices.Contains(v.loaded, name) {
		refuse(w, http.StatusNotFound, fmt.Sprintf("The lora adapter '%s' cannot be found.", name))
		return
	}
	v.loaded = slices.DeleteFunc(v.loaded, func(s string) bool { return s == name })
	fmt.Fprintf(w, "Success: LoRA adapter '%s' removed successfully.", name)
}

// fields are those of vLLM's CompletionRequest that may be sent.
var fields = strings.Fields("model prompt n max_tokens temperature top_p top_k min_p repetition_penalty stop stop_token_ids seed logprobs return_token_ids")

func (v *vllm) complete(w http.ResponseWriter, r *http.Request) {
	q := decode(w, r)
	v.asked = append(v.asked, q)
	for name := range q {
		if !slices.Contains(fields, name) {
			v.t.Errorf("vLLM does not know %s", name)
		}
	}
	if v.fault != nil {
		if status := v.fault(len(v.asked) - 1); status != 0 {
			refuse(w, status, "out of order")
			return
		}
	}
	if name := fmt.Sprint(q["model"]); name != "base" && !slices.Contains(v.loaded, name) {
		refuse(w, http.StatusNotFound, fmt.Sprintf("The model `%s` does not exist.", name))
		return
	}
	if q["logprobs"].(float64) < 0 || q["max_tokens"].(float64) < 1 || q["top_k"].(float64) == 0 {
		refuse(w, http.StatusBadRequest, "top_k must be -1 (disable), or at least 1, got 0.")
		return
	}
	prompt, choices := q["prompt"].([]any), []map[string]any{}
	for k := range int(q["n"].(float64)) {
		c := map[string]any{
			"index": k, "text": "?", "finish_reason": "stop", "stop_reason": nil, "prompt_token_ids": prompt, "token_ids": []any{prompt[0], k, end},
			"logprobs": map[string]any{"token_logprobs": []any{-0.5, -float64(k), 0.0}, "tokens": []any{"a", "b", ""}},
		}
		if v.spoil != nil {
			v.spoil(c)
		}
		choices = append(choices, c)
	}
	slices.Reverse(choices)
	json.NewEncoder(w).Encode(map[string]any{"id": "cmpl-1", "object": "text_completion", "model": q["model"], "choices": choices})
}

func decode(w http.ResponseWriter, r *http.Request) map[string]any {
	q := map[string]any{}
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		refuse(w, http.StatusUnprocessableEntity, err.Error())
	}
	return q
}
