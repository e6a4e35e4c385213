package env

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/internal/options"
	"github.com/rubicon-rl/rubicon/rewards/verify"
)

// QAOptions are the settings of the environment qa.
type QAOptions struct {
	Dataset   string `json:"dataset"`   // hotpotqa, 2wiki or musique: how rows and answers are read, and compared. auto: by the columns of the row
	Searches  int    `json:"searches"`  // budget; 0: the ARCO paper's, 6 for musique and 3 for the others
	Retriever string `json:"retriever"` // bm25, or one of the embedders lexical, policy, minilm and openai
	Titles    bool   `json:"titles"`    // paragraphs are searched and shown with their titles
	Examples  string `json:"examples"`  // text after the instructions, such as a worked example
}

// qa is the environment of multi-hop questions (ARCO, sec. 4.1 and app. A.2): Search[words] finds the nearest of the row's own
// paragraphs, Finish[answer] ends. An action that is none is shown back and counts as a search. When the budget is spent, Finish is asked
// for, and anything else ends the episode without an answer.
//
// The policy sees one growing conversation; the public code writes question and history anew into each prompt.
type qa struct {
	o    QAOptions
	find finder
}

// NewQA makes the environment qa.
func NewQA(run Run, settings map[string]any) (Environment, error) {
	o := QAOptions{Dataset: datasetAuto, Retriever: retrieverBM25}
	if err := options.Decode(settings, &o); err != nil {
		return nil, fmt.Errorf("env qa: %w", err)
	}
	if _, known := datasets[o.Dataset]; !known && o.Dataset != datasetAuto {
		return nil, fmt.Errorf("env qa: dataset is %q: use auto, hotpotqa, 2wiki or musique", o.Dataset)
	}
	if o.Searches < 0 || o.Searches > 1000 {
		return nil, fmt.Errorf("env qa: searches is %d: set 1 to 1000, or 0 for the data set's own", o.Searches)
	}
	e := &qa{o: o}
	var err error
	if e.find, err = newFinder(run, o.Retriever); err != nil {
		return nil, fmt.Errorf("env qa: retriever: %w", err)
	}
	return e, nil
}

// instructions are the system message.
const instructions = `You answer a question that needs facts from several paragraphs, which you cannot see. In each turn you reply with exactly one action and nothing else:
Search[words] shows you the paragraph that fits the words best.
Finish[answer] ends the task. The answer is a name, a date, a number, or yes or no, as short as possible.`

// Reset implements Environment.
func (e *qa) Reset(_ context.Context, row *grpo.Prompt) (Episode, Observation, error) {
	q, err := readQuestion(e.o, row)
	if err != nil {
		return nil, Observation{}, err
	}
	ep := &qaEpisode{question: q, env: e, left: e.o.Searches, shown: map[int]bool{}}
	if ep.left == 0 {
		ep.left = q.set.searches
	}
	system := instructions
	if e.o.Examples != "" {
		system += "\n\n" + e.o.Examples
	}
	start := ep.observe(Start, "Question: "+q.text, "")
	start.Messages = append([]grpo.Message{{Role: "system", Content: system}}, start.Messages...)
	return ep, start, nil
}

type qaEpisode struct {
	question
	env  *qa
	left int

	searches, invalid, found float64
	shown                    map[int]bool // paragraphs
	answer                   string
	finished                 bool
}

// observe makes an observation of a text, with what is left of the budget.
func (e *qaEpisode) observe(kind Kind, text, action string) Observation {
	if e.left > 0 {
		text += fmt.Sprintf("\nSearches left: %d", e.left)
	} else {
		text += "\nNo searches are left. Reply with Finish[answer] and nothing else."
		if kind == Result {
			kind = Forced
		}
	}
	return Observation{Kind: kind, Messages: []grpo.Message{{Role: "user", Content: text}}, Left: e.left, Action: action}
}

// Step implements Episode. Where the row names its supporting paragraphs, a search is right if it shows one that was not shown before,
// and an answer if it is the benchmark's and all of them were shown.
func (e *qaEpisode) Step(ctx context.Context, said string) (Observation, error) {
	found := e.found
	o, err := e.step(ctx, ParseAction(said), said)
	if err == nil && len(e.gold) > 0 {
		right := e.found > found
		if o.Kind == End {
			em, _ := e.set.rules.Score(e.answer, e.answers...)
			right = em == 1 && int(e.found) == len(e.gold)
		}
		if o.Verdict = grpo.Wrong; right {
			o.Verdict = grpo.Right
		}
	}
	return o, err
}

// step plays an action.
func (e *qaEpisode) step(ctx context.Context, a Action, said string) (Observation, error) {
	line := a.Kind + "[" + a.Arg + "]"
	switch {
	case a.Kind == "Finish":
		e.answer, e.finished = a.Arg, true
		return Observation{Kind: End, Left: e.left, Done: true, Action: line}, nil
	case e.left == 0:
		return Observation{Kind: Forced, Done: true, Action: firstLine(said)}, nil
	case a.Kind == "":
		e.left--
		e.invalid++
		return e.observe(Invalid, "That is no action: reply with Search[words] or Finish[answer].", firstLine(said)), nil
	}
	at, err := e.env.find.best(ctx, e.texts, a.Arg)
	if err != nil {
		return Observation{}, fmt.Errorf("search %q: %w", a.Arg, err)
	}
	e.left--
	e.searches++
	if at < 0 {
		return e.observe(Result, "No paragraph has any of these words.", line), nil
	}
	if !e.shown[at] && e.gold[at] {
		e.found++
	}
	e.shown[at] = true
	return e.observe(Result, "Paragraph: "+e.texts[at], line), nil
}

// Answer implements Episode.
func (e *qaEpisode) Answer() string { return e.answer }

// Outcome implements Episode. em and f1 are the benchmark's own, arco_em is the exact match of ARCO's public code; finished says whether
// there was an answer; found is the share of the supporting paragraphs that were shown.
func (e *qaEpisode) Outcome() map[string]float64 {
	out := map[string]float64{"em": 0, "f1": 0, "arco_em": 0, "finished": 0, "searches": e.searches, "invalid": e.invalid}
	if len(e.gold) > 0 {
		out["found"] = e.found / float64(len(e.gold))
	}
	if e.finished {
		out["finished"] = 1
		out["em"], out["f1"] = e.set.rules.Score(e.answer, e.answers...)
		out["arco_em"], _ = verify.ARCO.Score(e.answer, e.answers...)
	}
	return out
}

// firstLine is what was said, in a line of bounded length.
func firstLine(said string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(said), "\n")
	if r := []rune(line); len(r) > 120 {
		line = string(r[:120]) + "…"
	}
	return line
}

var errNoQuestion = errors.New("the row has no question: it needs the columns question and answer, and context (HotpotQA, 2Wiki) or paragraphs (MuSiQue)")
