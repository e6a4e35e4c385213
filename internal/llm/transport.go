package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Message is one turn of a conversation.
type Message struct{ Role, Content string }

// Call is one request for a completion of a conversation.
type Call struct {
	Model       string
	Messages    []Message
	Name        string          // of the schema
	Schema      json.RawMessage // the reply must be JSON that meets it; nil: any text
	Temperature float64         // 0: greedy
	TopP        float64         // 1: off
	MaxTokens   int
	Seed        uint64 // of the sampling, below 2^31
}

// Reply is what came back.
type Reply struct {
	Text             string
	Truncated        bool // it ended because MaxTokens were spent
	PromptTokens     int
	CompletionTokens int
}

// Transport carries calls to a model. It is safe for concurrent use and returns promptly when ctx ends. A *StatusError
// says that the server refused, ErrEmpty that it had nothing to say; any other error is a failure on the way, after which
// the same call is worth another try. A Reply beside an error says what the failed call has cost.
type Transport interface {
	Complete(ctx context.Context, c *Call) (*Reply, error)
	// Preflight checks, before anything depends on it, that the model can be reached and does what calls need; its
	// error says what to set.
	Preflight(ctx context.Context, model string) error
}

// Named is a Transport that says who answers, apart from the model's name and from where it can be reached: two
// transports of one name give the same answer to the same call, so that a cached one serves both.
type Named interface{ Name() string }

// ErrEmpty is the error for a reply without content.
var ErrEmpty = errors.New("the reply has no content")

// StatusError is a server's refusal.
type StatusError struct {
	Code       int           // HTTP status
	Body       string        // beginning of the reply
	RetryAfter time.Duration // 0: the server does not say
}

// Error names the status and what the server said.
func (e *StatusError) Error() string {
	text := fmt.Sprintf("HTTP %d %s", e.Code, http.StatusText(e.Code))
	if e.Body != "" {
		text += ": " + e.Body
	}
	return text
}
