//go:build slow && linux && (amd64 || arm64) && !nocuda && !nodl

package main

import (
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/rubicon-rl/rubicon/cuda/fakegpu"
	"github.com/rubicon-rl/rubicon/internal/golden"
)

// TestGPU runs the transcripts in testdata/gpu on the fake libraries: what a user of a GPU types and sees.
func TestGPU(t *testing.T) {
	lib, err := fakegpu.Build(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/gpu",
		Setup: func(e *testscript.Env) error {
			e.Setenv("MODELS", golden.Path("models"))
			e.Setenv("LIB", lib)
			for _, v := range fakegpu.Env(lib) {
				name, value, _ := strings.Cut(v, "=")
				e.Setenv(name, value)
			}
			return nil
		},
	})
}
