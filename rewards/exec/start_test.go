package exec

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/rewards"
)

func TestOnlyNamedVariablesAreHandedOver(t *testing.T) {
	t.Setenv("RUBICON_TEST_SECRET", "key")
	if got := scored(t, open(t, "score", nil), "env")[0].Reason; got != "named|" {
		t.Errorf("the command sees %q", got)
	}
	_, err := New(rewards.Run{}, map[string]any{"command": []string{os.Args[0]}, "env": []string{"RUBICON_TEST_NONE"}})
	if err == nil || !strings.Contains(err.Error(), "env names RUBICON_TEST_NONE, which is not set") {
		t.Errorf("error %v", err)
	}
}

func TestStandardErrorIsLogged(t *testing.T) {
	open(t, "score", nil) // sets the environment
	dir := filepath.Join(t.TempDir(), "run")
	p := openIn(t, dir, nil)
	scored(t, p, "say hello", "say "+strings.Repeat("y", 100_000))
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(filepath.Join(dir, "exec.log"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(log)), "\n")
	for _, line := range lines {
		if !strings.HasPrefix(line, "[") || !strings.Contains(line, " #0] ") {
			t.Errorf("%.80q has no prefix", line)
		}
	}
	if !strings.HasSuffix(lines[0], "] hello") || strings.Count(string(log), "y") < 100_000 {
		t.Errorf("logged %.200q", log)
	}
}

func TestPreflight(t *testing.T) {
	p := open(t, "score", nil)
	if err := p.Preflight(t.Context()); err != nil {
		t.Error(err)
	}
	for mode, want := range map[string]string{
		"early":  "the command ended (exit status 4) without an answer",
		"banner": `not a JSON object: "loading the model"`,
		"deaf":   "no answer within 300ms (timeout)",
	} {
		settings := map[string]any{}
		if mode == "deaf" {
			settings["timeout"] = 0.3
		}
		p := open(t, mode, settings)
		if err := p.Preflight(t.Context()); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "set command, env and timeout") {
			t.Errorf("%s: error %v, want %q in it", mode, err, want)
		}
	}
}

func TestSettings(t *testing.T) {
	for _, c := range []struct {
		settings map[string]any
		want     string
	}{
		{map[string]any{}, "command is not set"},
		{map[string]any{"command": "python3 x.py"}, "option command is a string: give a list"},
		{map[string]any{"command": []any{"rubicon-no-such-program"}}, "set its first entry to a program that can be run"},
		{map[string]any{"command": []any{"a"}, "workers": 0}, "must be at least 1"},
		{map[string]any{"command": []any{"a"}, "timeout": -1}, "timeout is -1: give seconds above 0"},
		{map[string]any{"command": []any{"a"}, "restart": -1}, "must not be negative"},
		{map[string]any{"comand": []any{"a"}}, `unknown option "comand": did you mean "command"?`},
	} {
		if _, err := New(rewards.Run{}, c.settings); err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "exec: ") {
			t.Errorf("%v: error %v, want %q in it", c.settings, err, c.want)
		}
	}
	p := open(t, "score", map[string]any{"columns": []any{"gold"}})
	if err := p.Check(&grpo.Prompt{ID: "a:1"}); err == nil || !strings.HasPrefix(err.Error(), `exec: prompt "a:1": the row has no column gold`) {
		t.Errorf("error %v", err)
	}
}
