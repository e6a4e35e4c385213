package trainer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/rewards"
)

// table is scored completions as people look at them.
type table struct {
	columns []grpo.Column
	groups  []grpo.Group
}

// completionLine is one line of completions/step_N.jsonl and eval/step_N.jsonl.
type completionLine struct {
	ID         string              `json:"id"`
	Prompt     string              `json:"prompt"`
	Completion string              `json:"completion"`
	Rewards    map[string]*float64 `json:"rewards"`   // null: could not be scored
	Advantage  float64             `json:"advantage"` // 0 in evaluations of one completion for each prompt
	Truncated  bool                `json:"truncated"`
	Reason     string              `json:"reason,omitempty"`
	Parts      []rewards.Part      `json:"parts,omitempty"`
	Steps      []grpo.Step         `json:"steps,omitempty"`   // of an episode
	Outcome    map[string]float64  `json:"outcome,omitempty"` // and what became of it
}

// writeCompletions writes t to path, one completion a line; mode is os.O_TRUNC, or os.O_APPEND to add to what is there.
func writeCompletions(path string, t table, details map[*grpo.Completion]Detail, mode int) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|mode, 0o644)
	if err != nil {
		return err
	}
	enc := json.NewEncoder(f)
	enc.SetEscapeHTML(false)
	for _, g := range t.groups {
		for _, c := range g.Completions {
			line := completionLine{ID: g.Prompt.ID, Prompt: promptText(g.Prompt), Completion: c.Text, Rewards: map[string]*float64{},
				Advantage: c.Advantage, Truncated: c.Truncated, Reason: details[c].Reason, Parts: details[c].Parts}
			if e := c.Episode; e != nil {
				line.Steps, line.Outcome = e.Steps, e.Outcome
			}
			for k, col := range t.columns {
				if v := c.Rewards[k]; !math.IsNaN(v) {
					line.Rewards[col.Name] = &v
				} else {
					line.Rewards[col.Name] = nil
				}
			}
			if err := enc.Encode(line); err != nil {
				f.Close()
				return err
			}
		}
	}
	return f.Close()
}

// value is the line's reward as people read it: the only one, or the first of several by name.
func (l completionLine) value() string {
	for _, name := range slices.Sorted(maps.Keys(l.Rewards)) {
		if v := l.Rewards[name]; v != nil {
			return fmt.Sprintf("%.2f", *v)
		}
	}
	return "none"
}

// readCompletions reads a file that writeCompletions wrote.
func readCompletions(path string) ([]completionLine, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []completionLine
	for dec := json.NewDecoder(f); ; {
		var l completionLine
		if err := dec.Decode(&l); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		out = append(out, l)
	}
}

// promptText is the prompt as a person reads it: the last message of a conversation.
func promptText(p *grpo.Prompt) string {
	if len(p.Messages) == 0 {
		return p.Text
	}
	return p.Messages[len(p.Messages)-1].Content
}

// show prints the last generation, if track.log_completions is on.
func (t *Trainer) show(w io.Writer) {
	if o := t.Config.Track; o.LogCompletions {
		t.shown.print(w, o.NumCompletionsToPrint, o.LogUniquePrompts)
	}
}

// print shows up to limit rows of t (0: all), only the first completion of each prompt if unique.
func (t table) print(w io.Writer, limit int, unique bool) {
	shown := 0
	for _, g := range t.groups {
		for i, c := range g.Completions {
			if i > 0 && unique || limit > 0 && shown == limit {
				break
			}
			shown++
			fmt.Fprintf(w, "  %s\n    -> %s\n   ", clip(promptText(g.Prompt), 96), clip(c.Text, 96))
			for k, col := range t.columns {
				fmt.Fprintf(w, " %s %.3f ", col.Name, c.Rewards[k])
			}
			fmt.Fprintf(w, " advantage %+.3f\n", c.Advantage)
		}
	}
}

// clip shows s on one line of at most n runes. Other control characters, which could write to the terminal as they like, are
// replaced.
func clip(s string, n int) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ReplaceAll(s, "\n", "\\n"))
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}
