package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/rubicon-rl/rubicon/internal/suggest"
)

// Preflight looks the model up in the server's list, if it has one, and sends a short request, by which it finds the best
// response format that the server takes.
func (o *OpenAI) Preflight(ctx context.Context, model string) error {
	if model == "" {
		return errors.New("set judge.model to the name of a model that the server at judge.url serves")
	}
	known := o.models(ctx)
	if len(known) > 0 && !serves(known, model) {
		return fmt.Errorf("the server at judge.url %s has no model %q: set judge.model to one of its models%s", o.url, model, among(model, known))
	}
	err := o.probe(ctx, model)
	if err == nil || ctx.Err() != nil {
		return err
	}
	return o.explain(err, model)
}

// models lists what the server serves. Not every server tells, nor every key may ask: then the list is empty, and the
// request that follows shows whether the model is there.
func (o *OpenAI) models(ctx context.Context) []string {
	list, err := o.through(&wire{http: o.http, key: o.key}).ListModels(ctx)
	if err != nil {
		return nil
	}
	names := make([]string, len(list.Models))
	for i, m := range list.Models {
		names[i] = m.ID
	}
	return names
}

// serves tells whether a list of models means the model: some servers list NAME:TAG or PREFIX/NAME for NAME, or take
// NAME:VARIANT for the NAME that they list.
func serves(known []string, model string) bool {
	plain := model
	if i := strings.LastIndexByte(model, ':'); i > 0 {
		plain = model[:i]
	}
	return slices.ContainsFunc(known, func(id string) bool {
		return id == model || id == plain || strings.HasPrefix(id, model+":") || strings.HasSuffix(id, "/"+model)
	})
}

// among words a choice of names: the nearest one, or the first few.
func among(model string, known []string) string {
	if best := suggest.Nearest(model, known); best != "" {
		return fmt.Sprintf("; did you mean %q?", best)
	}
	slices.Sort(known)
	return ", such as " + strings.Join(known[:min(5, len(known))], ", ")
}

// probe sends a short request in each format, the best first, until the server takes one.
func (o *OpenAI) probe(ctx context.Context, model string) error {
	formats := []string{formatSchema, formatObject, formatNone}
	if o.format != formatAuto {
		formats = []string{o.format}
	}
	call := &Call{
		Model: model, Name: "ready",
		Messages: []Message{{Role: "user", Content: `Reply with the JSON {"ready": true} and nothing else.`}},
		Schema: json.RawMessage(`{"type": "object", "properties": {"ready": {"type": "boolean"}}, ` +
			`"required": ["ready"], "additionalProperties": false}`),
	}
	// Room for a model that thinks first; the temperature is left to the server, since the settings are the client's.
	fields := map[string]any{limitField(model): 256}
	var err error
	for _, format := range formats {
		if _, err = o.complete(ctx, call, format, fields); err == nil || errors.Is(err, ErrEmpty) {
			o.formats.Store(model, format)
			return nil
		}
		status, ok := errors.AsType[*StatusError](err)
		if !ok || !refusesFormat(status.Code) && status.Code != http.StatusInternalServerError {
			break
		}
	}
	return err
}

// explain says what to set after a failed probe.
func (o *OpenAI) explain(err error, model string) error {
	status, refused := errors.AsType[*StatusError](err)
	switch {
	case errors.Is(err, errPage):
		return fmt.Errorf("judge.url %s is not the root of an OpenAI-compatible API, which mostly ends in /v1: %w", o.url, err)
	case !refused:
		return fmt.Errorf("cannot ask the server at judge.url %s: start it, or set judge.url to one that answers: %w", o.url, err)
	case status.Code == http.StatusUnauthorized || status.Code == http.StatusForbidden:
		if o.key == "" {
			return fmt.Errorf("the server at judge.url %s wants an API key: set judge.api_key_env to the environment variable that holds it: %w", o.url, err)
		}
		return fmt.Errorf("the server at judge.url %s refuses the API key: put a valid one in the variable that judge.api_key_env names: %w", o.url, err)
	case status.Code == http.StatusNotFound && strings.Contains(strings.ToLower(status.Body), "model"):
		return fmt.Errorf("the server at judge.url %s has no model %q: set judge.model to one of its models: %w", o.url, model, err)
	case status.Code == http.StatusNotFound || status.Code == http.StatusMethodNotAllowed || status.Code < 400:
		return fmt.Errorf("judge.url %s is not the root of an OpenAI-compatible API, which mostly ends in /v1: %w", o.url, err)
	case status.Code == http.StatusTooManyRequests || status.Code >= 500:
		return fmt.Errorf("the server at judge.url %s cannot answer now: %w", o.url, err)
	}
	return fmt.Errorf("the server at judge.url %s refuses a short request: check judge.model %q and judge.response_format %s: %w", o.url, model, o.format, err)
}
