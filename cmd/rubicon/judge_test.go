package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/llm/llmtest"
)

// judges starts a judge that lives and some that answer so many requests and then fail, and returns their URLs.
func judges(t *testing.T, left ...int64) (living string, mortal []string) {
	c := llmtest.Config{Key: "secret", Models: []string{"good"}, Answer: func(r *llmtest.Request) llmtest.Response {
		return llmtest.Response{Content: instance(r.ResponseFormat.JSONSchema.Schema, r.Last())}
	}}
	living = llmtest.Start(t, c).URL
	for _, n := range left {
		var requests atomic.Int64
		dying := c
		dying.Answer = func(r *llmtest.Request) llmtest.Response {
			if requests.Add(1) > n {
				return llmtest.Response{Fault: llmtest.ServerError}
			}
			return c.Answer(r)
		}
		mortal = append(mortal, llmtest.Start(t, dying).URL)
	}
	return living, mortal
}

// instance is a value of a schema with objects, lists of one, whole numbers and texts, as a function of the seed.
func instance(schema json.RawMessage, seed string) string {
	var s struct {
		Type       string
		Properties json.RawMessage
		Maximum    int
		Minimum    int
		Enum       []json.RawMessage
		Items      json.RawMessage
	}
	if json.Unmarshal(schema, &s) != nil {
		return "no schema"
	}
	h := fnv.New32a()
	h.Write([]byte(seed))
	switch {
	case s.Enum != nil:
		return string(s.Enum[int(h.Sum32()>>8)%len(s.Enum)])
	case s.Type == "integer":
		return fmt.Sprint(s.Minimum + int(h.Sum32()>>8)%(s.Maximum-s.Minimum+1))
	case s.Type == "array":
		return "[" + instance(s.Items, seed) + "]"
	case s.Type != "object":
		return `"because"`
	}
	var out bytes.Buffer
	d := json.NewDecoder(bytes.NewReader(s.Properties)) // keeps the order, which the answer has to keep
	for _, err := d.Token(); err == nil && d.More(); {
		var sub json.RawMessage
		name, _ := d.Token()
		if err = d.Decode(&sub); err == nil {
			fmt.Fprintf(&out, ",%q:%s", name, instance(sub, seed+fmt.Sprint(name)))
		}
	}
	return "{" + strings.TrimPrefix(out.String(), ",") + "}"
}
