package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// fault is an error that a client is told, in OpenAI's form.
type fault struct {
	status int
	kind   string // OpenAI's type
	param  string // which parameter is wrong; "": none in particular
	code   string
	text   string
}

func (f *fault) Error() string { return f.text }

// wrong is a fault of the request.
func wrong(param, format string, args ...any) *fault {
	return &fault{status: http.StatusBadRequest, kind: "invalid_request_error", param: param, text: fmt.Sprintf(format, args...)}
}

// asFault is how a client is told an error.
func asFault(err error) *fault {
	var tooLarge *http.MaxBytesError
	if f, ok := errors.AsType[*fault](err); ok {
		return f
	}
	switch {
	case errors.As(err, &tooLarge):
		return &fault{status: http.StatusRequestEntityTooLarge, kind: "invalid_request_error", text: fmt.Sprintf("the request is longer than %d bytes", tooLarge.Limit)}
	case errors.Is(err, errStopped):
		return &fault{status: http.StatusServiceUnavailable, kind: "server_error", code: "stopping", text: err.Error()}
	case errors.Is(err, context.DeadlineExceeded):
		return &fault{status: http.StatusGatewayTimeout, kind: "server_error", code: "timeout", text: "the request took longer than the server allows: ask for fewer tokens"}
	}
	return &fault{status: http.StatusInternalServerError, kind: "server_error", text: err.Error()}
}

// body is the JSON of a fault.
func (f *fault) body() []byte {
	text := func(s string) any {
		if s == "" {
			return nil
		}
		return s
	}
	b, err := json.Marshal(map[string]any{"error": map[string]any{"message": f.text, "type": f.kind, "param": text(f.param), "code": text(f.code)}})
	if err != nil {
		return []byte(`{"error": {"message": "unknown"}}`)
	}
	return b
}
