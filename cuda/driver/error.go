package driver

import "fmt"

// Error is a call to one of NVIDIA's libraries that failed.
type Error struct {
	Call string // "cuLaunchKernel"
	Code int
	Name string // "CUDA_ERROR_ILLEGAL_ADDRESS"
	Hint string // what to do, if there is something
}

func (e *Error) Error() string {
	s := fmt.Sprintf("%s: %s (%d)", e.Call, e.Name, e.Code)
	if e.Hint != "" {
		s += ": " + e.Hint
	}
	return s
}
