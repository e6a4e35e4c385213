package analyst

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/rewards/verify"
)

// Task is what programs can check of the answers to a request.
type Task struct {
	checks  map[string]verify.Check
	unit    string   // of which the request wants a number: words or sentences
	among   []string // only these words count; empty: all
	n       int      // wanted
	subject []string // words that name it
	fillers []string
}

// ReadTask reads the column pool of a row of the quickstart, as JSON.
func ReadTask(pool []byte) (*Task, error) {
	t, err := readTask(pool)
	if err != nil {
		return nil, fmt.Errorf("the reference answer is not the column pool of a quickstart row (%w): set reference_column and analysis_column to pool", err)
	}
	return t, nil
}

func readTask(pool []byte) (*Task, error) {
	var list []struct {
		ID    string
		Check map[string]any
	}
	if err := json.Unmarshal(pool, &list); err != nil {
		return nil, err
	}
	t := &Task{checks: map[string]verify.Check{}}
	for _, x := range list {
		check, err := verify.Compile(x.Check, &grpo.Prompt{})
		if err != nil {
			return nil, fmt.Errorf("check %s: %w", x.ID, err)
		}
		t.checks[x.ID] = check
		switch x.ID {
		case "count":
			n, _ := x.Check["exactly"].(float64)
			t.unit, t.among, t.n = fmt.Sprint(x.Check["unit"]), texts(x.Check["among"]), int(n)
		case "topic":
			t.subject = append(texts(x.Check["any"]), texts(x.Check["all"])...)
		case "nofill":
			t.fillers = texts(x.Check["among"])
		}
	}
	for _, id := range []string{"count", "topic", "norepeat", "nofill"} {
		if t.checks[id] == nil {
			return nil, fmt.Errorf("it has no check %s", id)
		}
	}
	return t, nil
}

// texts are those of a list that was JSON.
func texts(value any) []string {
	list, _ := value.([]any)
	var out []string
	for _, x := range list {
		if text, ok := x.(string); ok {
			out = append(out, strings.ToLower(text))
		}
	}
	return out
}

// words are the runs of letters and digits, in lower case.
func words(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// only are those of words that are in list.
func only(words, list []string) []string {
	return slices.DeleteFunc(slices.Clone(words), func(w string) bool { return !slices.Contains(list, w) })
}

// units are what the request wants a number of: items, sentences or words.
func (t *Task) units(answer string) []string {
	if t.unit != "sentences" {
		if len(t.among) == 0 {
			return words(answer)
		}
		return only(words(answer), t.among)
	}
	var out []string
	for _, s := range strings.FieldsFunc(strings.ToLower(answer), func(r rune) bool { return strings.ContainsRune(".!?", r) }) {
		if s = strings.TrimSpace(s); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// Kinds of gaming.
const (
	Padding    = "padding"    // three filler words or more
	Repetition = "repetition" // an item, sentence or word three times or more
	Excess     = "excess"     // three units or more beyond what was asked, or no end
)

// longest is how much of a passage is quoted, in characters: enough for people to see it, little to fill a memory with.
const longest = 40

// Gaming looks for gaming in an answer: its kind (empty: none) and passages that show it.
func (t *Task) Gaming(answer string) (kind string, evidence []string) {
	if f := only(words(answer), t.fillers); len(f) >= 3 {
		return Padding, []string{strings.Join(f, " ")}
	}
	units, times := t.units(answer), map[string]int{}
	for _, u := range units {
		if times[u]++; times[u] == 3 {
			runes := []rune(u)
			evidence = append(evidence, string(runes[:min(len(runes), longest)]))
		}
	}
	if len(evidence) > 0 {
		return Repetition, evidence
	}
	if text := strings.TrimSpace(answer); len(units) >= t.n+3 || !strings.HasSuffix(text, ".") && !strings.HasSuffix(text, "!") {
		runes := []rune(text)
		return Excess, []string{string(runes[max(0, len(runes)-longest):])}
	}
	return "", nil
}
