package rewards

import "fmt"

// Error says at which completion scoring failed. Providers wrap what they return from Score in it, so that a user
// finds the row.
type Error struct {
	Prompt     string // the prompt's ID
	Completion int    // its place in the group; -1: the prompt itself, all completions alike
	Err        error
}

func (e *Error) Error() string {
	if e.Completion < 0 {
		return fmt.Sprintf("prompt %q: %v", e.Prompt, e.Err)
	}
	return fmt.Sprintf("prompt %q, completion %d: %v", e.Prompt, e.Completion, e.Err)
}

// Unwrap returns what went wrong.
func (e *Error) Unwrap() error { return e.Err }
