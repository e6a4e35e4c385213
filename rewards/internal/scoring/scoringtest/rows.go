package scoringtest

import "github.com/rubicon-rl/rubicon/grpo"

// Group is a prompt and completions with these texts.
func Group(id string, columns map[string]any, texts ...string) grpo.Group {
	g := grpo.Group{Prompt: &grpo.Prompt{ID: id, Text: "Do " + id + ".", Columns: columns}}
	for _, text := range texts {
		g.Completions = append(g.Completions, &grpo.Completion{Text: text})
	}
	return g
}

// Criterion is one as a configuration has it; more are keys and values.
func Criterion(id, text string, more ...any) map[string]any {
	c := map[string]any{"id": id, "text": text}
	for i := 0; i < len(more); i += 2 {
		c[more[i].(string)] = more[i+1]
	}
	return c
}
