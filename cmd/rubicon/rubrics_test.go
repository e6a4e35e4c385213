package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/rewards/criteria"
)

// A run that is writing its log, or was killed, leaves a line that is not whole: what is there must be shown, with a note.
func TestRubricLogThatIsBeingWritten(t *testing.T) {
	dir := t.TempDir()
	path := criteria.LogPath(dir)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(`{"step":0,"scope":"a","version":1,"kind":"init"}`+"\n"+`{"step":1,"sc`), 0o644); err != nil {
		t.Fatal(err)
	}
	var out, warn bytes.Buffer
	c := rubricsLog()
	c.SetOut(&out)
	c.SetErr(&warn)
	c.SetArgs([]string{dir})
	if err := c.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "step 0  a version 1  init\n"; got != want {
		t.Errorf("stdout %q, want %q", got, want)
	}
	if !strings.Contains(warn.String(), "line 2: the last line is not whole") {
		t.Errorf("stderr %q", warn.String())
	}
}
