package configs

import (
	"slices"
	"testing"
)

func TestComplete(t *testing.T) {
	for text, want := range map[string][]string{
		"lora.":               {"lora.r=", "lora.alpha=", "lora.rslora=", "lora.dropout=", "lora.target_modules="},
		"device=":             {"device=auto", "device=cpu", "device=cuda"},
		"device=c":            {"device=cpu", "device=cuda"},
		"optim.learning_rate": {"optim.learning_rate="},
		"seed=":               nil,
		"nothing":             nil,
	} {
		if got := Complete(text); !slices.Equal(got, want) {
			t.Errorf("Complete(%q) = %q, want %q", text, got, want)
		}
	}
}
