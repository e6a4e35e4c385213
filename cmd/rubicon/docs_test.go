package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// fence is a block of a page: its language and its text.
var fence = regexp.MustCompile("(?sm)^```(\\w+)\n(.*?)^```$")

// named is how a page names the file that the next block is.
var named = regexp.MustCompile("[Tt]his is `([\\w./-]+)`[^`]*$")

// TestTutorial does what docs/tutorial.md says: blocks that the text before them names are files, shell blocks are run line by line, and
// the Go block stands in its test, word for word.
func TestTutorial(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("the tutorial's reward in Python needs python3")
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "tutorial.md"))
	check(t, err)
	var commands, files strings.Builder
	last, ran, written := 0, 0, 0
	for _, at := range fence.FindAllSubmatchIndex(page, -1) {
		before, kind, text := string(page[last:at[0]]), string(page[at[2]:at[3]]), string(page[at[4]:at[5]])
		last = at[1]
		name := named.FindStringSubmatch(before)
		switch {
		case kind == "go":
			source, err := os.ReadFile(filepath.Join("..", "..", "rewards", "example_test.go"))
			check(t, err)
			if !strings.Contains(string(source), text) {
				t.Error("the provider of the tutorial is not the one of rewards/example_test.go")
			}
		case kind == "sh":
			for line := range strings.Lines(text) {
				fmt.Fprint(&commands, line)
				ran++
			}
		case name != nil:
			fmt.Fprintf(&files, "-- %s --\n%s", name[1], text)
			written++
		case !strings.Contains(before, "not run by the test"):
			t.Errorf("a block of %s has no name, and the page does not say that it is not run:\n%s", kind, text)
		}
	}
	if ran < 10 || written < 5 {
		t.Fatalf("%d commands and %d files were found: the page is read wrongly", ran, written)
	}
	script := filepath.Join(t.TempDir(), "tutorial.txtar")
	check(t, os.WriteFile(script, []byte(commands.String()+files.String()), 0o644))
	testscript.Run(t, testscript.Params{
		Files: []string{script},
		Setup: func(e *testscript.Env) error {
			e.Setenv("RUBICON_LIBCUDA", "/nowhere/libcuda.so.1")
			e.Setenv("XDG_CACHE_HOME", e.Getenv("WORK")+"/cache")
			return nil
		},
	})
}
