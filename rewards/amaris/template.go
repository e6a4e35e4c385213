package amaris

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"os"
	"strings"
	"text/template"

	"github.com/rubicon-rl/rubicon/rewards/criteria"
)

//go:embed prompts schemas
var files embed.FS

// The stages that ask a judge, each with a prompt of its own. The number in a prompt's file name is raised when the words
// change, so that runs can be told apart.
const (
	stageAnalyze, stageSummarize, stageMeta, stageQuery, stageUpdate = "analyze", "summarize", "meta", "query", "update"
)

var stages = []string{stageAnalyze, stageSummarize, stageMeta, stageQuery, stageUpdate}

// packet is what the templates see. Conversation, Completion, Reference, Summary and the texts of Items are fenced.
type packet struct {
	Goal, Model string
	Step, Steps int // Steps 0: not known
	Version     int
	Criteria    []criteria.Criterion // none: there is no rubric yet

	Conversation, Completion, Reference string // analyze; an empty Reference: there is none
	Items                               []item // summarize and meta: what is summarised; update: the history
	Summary                             string // query, update
	Most                                int    // query

	Cold                       bool // update: the first rubric is to be made
	MaxWeight                  float64
	MaxCriteria                int
	Categories, Focuses, Types string
}

// item is one of several texts.
type item struct{ Label, About, Text string }

// prompts are the stages' templates.
type prompts map[string]*template.Template

// openPrompts reads the built-in templates, or those of the files that own names, and tries them.
func openPrompts(own map[string]string) (prompts, error) {
	common, err := files.ReadFile("prompts/common.v1.tmpl")
	if err != nil {
		return nil, err
	}
	out := prompts{}
	for _, stage := range stages {
		name := "prompts/" + stage + ".v1.tmpl"
		text, err := files.ReadFile(name)
		if path := own[stage]; path != "" {
			name = path
			text, err = os.ReadFile(path)
		}
		if err != nil {
			return nil, fmt.Errorf("prompt %s: %w", stage, err)
		}
		t, err := template.New("common").Parse(string(common))
		if err == nil {
			t, err = t.New(stage).Parse(string(text))
		}
		if err == nil {
			err = try(t, stage)
		}
		if err != nil {
			return nil, fmt.Errorf("prompt %s: %w", name, err)
		}
		out[stage] = t
	}
	return out, nil
}

// try makes sure that a template shows what the stage is about.
func try(t *template.Template, stage string) error {
	p := packet{Conversation: "\x01", Completion: "\x02", Summary: "\x03", Items: []item{{"\x04", "\x04", "\x05"}},
		Criteria: []criteria.Criterion{{ID: "a", Text: "\x06"}}}
	need := map[string][]string{
		stageAnalyze:   {"Conversation", p.Conversation, "Completion", p.Completion, "Criteria", "\x06"},
		stageSummarize: {"Items", "\x05"}, stageMeta: {"Items", "\x05"}, stageQuery: {"Summary", p.Summary},
		stageUpdate: {"Summary", p.Summary, "Items", "\x05", "Criteria", "\x06"},
	}[stage]
	system, user, err := render(t, p)
	if err != nil {
		return err
	}
	for i := 0; i < len(need); i += 2 {
		if !strings.Contains(system+user, need[i+1]) {
			return fmt.Errorf("it does not show {{.%s}}, which the judge must see", need[i])
		}
	}
	return nil
}

func render(t *template.Template, p packet) (system, user string, err error) {
	var a, b bytes.Buffer
	if err := errors.Join(t.ExecuteTemplate(&a, "system", p), t.ExecuteTemplate(&b, "user", p)); err != nil {
		return "", "", err
	}
	return strings.TrimSpace(a.String()), strings.TrimSpace(b.String()), nil
}

// packet is what all stages are told about the training and a rubric.
func (w *workshop) packet(step int, set criteria.Set) packet {
	return packet{
		Goal: w.options.Goal, Model: w.run.Model, Step: step, Steps: w.run.Steps, Version: set.Version(), Criteria: oneLine(set.List()),
		MaxWeight: w.options.MaxWeight, MaxCriteria: w.options.MaxCriteria, Types: strings.Join(hackingTypes(), ", "),
		Categories: strings.Join(criteria.Categories(), ", "), Focuses: strings.Join(focuses(), ", "),
	}
}

// oneLine puts every criterion's text on one line, so that no line of it looks like another criterion.
func oneLine(list []criteria.Criterion) []criteria.Criterion {
	for i := range list {
		list[i].Text = strings.Join(strings.Fields(list[i].Text), " ")
		if list[i].Check != nil && list[i].Text == "" {
			list[i].Text = "(scored by a program)"
		}
	}
	return list
}
