package scoring

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/rewards/internal/scoring/scoringtest"
)

// A template that does not show the judge what it must see would be a judge that guesses.
func TestPromptOfOnesOwn(t *testing.T) {
	dir := t.TempDir()
	write := func(text string) string {
		path := filepath.Join(dir, "own.tmpl")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	judge := &scoringtest.Judge{}
	s := newScorer(t, judge.Run(), func(o *Options) {
		o.Prompt = write(`{{define "system"}}Grade.{{end}}{{define "user"}}{{range .Criteria}}{{.Text}}{{end}}|{{.Conversation}}
{{.Completion}}{{end}}`)
	})
	credits(t, s, mixed()[:1], "x")
	if q := judge.Asked()[0]; q.System != "Grade." || q.User != "Is kind.|"+Fence("Say hello.")+"\n"+Fence("x") {
		t.Errorf("the question is %q, %q", q.System, q.User)
	}
	for text, want := range map[string]string{
		`{{define "user"}}x{{end}}`: `there is no {{define "system"}}`,
		`{{define "system"}}{{end}}{{define "user"}}{{.Conversation}}{{range .Criteria}}{{.Text}}{{end}}{{end}}`: "it does not show {{.Completion}}",
		`{{define "system"}}{{end}}{{define "user"}}{{.Conversation}}{{.Completion}}{{end}}`:                     "Criteria}}",
		`{{define "system"}}{{end}}{{define "user"}}{{.Answer}}{{end}}`:                                          "Answer",
		`{{define "system"}}`: "own.tmpl",
	} {
		o := DefaultOptions()
		o.Prompt = write(text)
		if _, err := New(judge.Run(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
}
