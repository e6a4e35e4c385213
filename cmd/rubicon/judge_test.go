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

// judges starts two judges and returns their URLs: one that lives, and one that answers a few requests and then fails.
func judges(t *testing.T) (living, mortal string) {
	c := llmtest.Config{Key: "secret", Models: []string{"good"}, Answer: func(r *llmtest.Request) llmtest.Response {
		return llmtest.Response{Content: instance(r.ResponseFormat.JSONSchema.Schema, r.Last())}
	}}
	living = llmtest.Start(t, c).URL
	answer, left := c.Answer, atomic.Int64{}
	left.Store(mortality)
	c.Answer = func(r *llmtest.Request) llmtest.Response {
		if left.Add(-1) < 0 {
			return llmtest.Response{Fault: llmtest.ServerError}
		}
		return answer(r)
	}
	return living, llmtest.Start(t, c).URL
}

// mortality is how many requests a mortal judge answers: those of the preflight, of a step, and some of the next one's.
const mortality = 7

// instance is a value of a schema with objects, whole numbers and texts, as a function of the seed.
func instance(schema json.RawMessage, seed string) string {
	var s struct {
		Type       string
		Properties json.RawMessage
		Maximum    int
		Minimum    int
		Enum       []json.RawMessage
	}
	if json.Unmarshal(schema, &s) != nil {
		return "no schema"
	}
	h := fnv.New32a()
	h.Write([]byte(seed))
	switch {
	case s.Enum != nil:
		return string(s.Enum[int(h.Sum32())%len(s.Enum)])
	case s.Type == "integer":
		return fmt.Sprint(s.Minimum + int(h.Sum32())%(s.Maximum-s.Minimum+1))
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
