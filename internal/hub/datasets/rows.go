package datasets

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/rubicon-rl/rubicon/rewards/criteria"
)

// text returns the first of the columns that has a text.
func text(official map[string]any, columns ...string) (string, error) {
	for _, name := range columns {
		if s, ok := official[name].(string); ok && strings.TrimSpace(s) != "" {
			return s, nil
		}
	}
	return "", fmt.Errorf("has no text in %s; its columns are %s", strings.Join(columns, ", "), strings.Join(slices.Sorted(maps.Keys(official)), ", "))
}

// rubric reads criteria in an official format, and checks them as a reward will.
func rubric(value any, format string) ([]criteria.Criterion, error) {
	list, err := criteria.Parse(value, format)
	if err != nil {
		return nil, err
	}
	set, err := criteria.NewSet(criteria.Global, 1, list)
	return set.List(), err
}

// keep copies columns that are there.
func keep(to, official map[string]any, columns ...string) {
	for _, name := range columns {
		if v := official[name]; v != nil {
			to[name] = v
		}
	}
}

// officialRow leaves a row as it is: the environment qa and the benchmarks read it so.
func officialRow(_ string, official map[string]any) (map[string]any, error) {
	if _, err := text(official, "question"); err != nil {
		return nil, err
	}
	return official, nil
}

func rarRow(id string, official map[string]any) (map[string]any, error) {
	question, err := text(official, "question")
	if err != nil {
		return nil, err
	}
	list, err := rubric(official["rubric"], "rar")
	out := map[string]any{"id": id, "prompt": question, "rubric": list}
	keep(out, official, "reference_answer", "question_source")
	return out, err
}

func openRubricsRow(id string, official map[string]any) (map[string]any, error) {
	instruction, err := text(official, "instruction", "prompt", "question")
	if err != nil {
		return nil, err
	}
	if official["rubric"] == nil {
		_, err := text(official, "rubric")
		return nil, err
	}
	list, err := rubric(official["rubric"], "openrubrics")
	out := map[string]any{"id": id, "prompt": instruction, "rubric": list}
	keep(out, official, "source")
	return out, err
}

func rubricHubRow(id string, official map[string]any) (map[string]any, error) {
	var prompt any
	if messages, ok := official["prompt"].([]any); ok && len(messages) > 0 {
		prompt = messages
	} else {
		question, err := text(official, "prompt", "question", "query")
		if err != nil {
			return nil, err
		}
		prompt = question
	}
	value := official["Rubrics"]
	if value == nil {
		value = official["rubrics"]
	}
	list, err := rubric(value, "rubrichub")
	return map[string]any{"id": id, "prompt": prompt, "rubric": list}, err
}

func gsm8kRow(id string, official map[string]any) (map[string]any, error) {
	question, err := text(official, "question")
	if err != nil {
		return nil, err
	}
	answer, err := text(official, "answer")
	return map[string]any{"id": id, "prompt": question, "answer": answer}, err
}

// mathRow names a problem by its place in the archive: train/algebra/17.
func mathRow(_ string, official map[string]any) (map[string]any, error) {
	problem, err := text(official, "problem")
	if err != nil {
		return nil, err
	}
	solution, err := text(official, "solution")
	if err != nil {
		return nil, err
	}
	member, err := text(official, memberColumn)
	out := map[string]any{"id": strings.TrimSuffix(member, path.Ext(member)), "prompt": problem, "answer": solution}
	keep(out, official, "level", "type")
	return out, err
}

func instructionsRow(_ string, official map[string]any) (map[string]any, error) {
	prompt, err := text(official, "prompt")
	if err != nil {
		return nil, err
	}
	if official["key"] == nil || official["instruction_id_list"] == nil {
		return nil, errors.New("has no key or no instruction_id_list")
	}
	out := map[string]any{"id": fmt.Sprint(official["key"]), "prompt": prompt}
	keep(out, official, "instruction_id_list", "kwargs")
	return out, nil
}

func infoBenchRow(_ string, official map[string]any) (map[string]any, error) {
	prompt, err := text(official, "instruction")
	if err != nil {
		return nil, err
	}
	id, err := text(official, "id")
	if err != nil {
		return nil, err
	}
	if input, _ := official["input"].(string); strings.TrimSpace(input) != "" {
		prompt += "\n\n" + input
	}
	list, err := rubric(official["decomposed_questions"], "rubicon")
	out := map[string]any{"id": id, "prompt": prompt, "rubric": list}
	keep(out, official, "category", "subset")
	return out, err
}

func writingBenchRow(id string, official map[string]any) (map[string]any, error) {
	query, err := text(official, "query")
	if err != nil {
		return nil, err
	}
	if n := official["index"]; n != nil {
		id = fmt.Sprint(n)
	}
	list, err := rubric(official["checklist"], "writingbench")
	out := map[string]any{"id": id, "prompt": query, "rubric": list}
	keep(out, official, "domain1", "domain2", "lang")
	return out, err
}

func healthBenchRow(_ string, official map[string]any) (map[string]any, error) {
	id, err := text(official, "prompt_id")
	if err != nil {
		return nil, err
	}
	messages, ok := official["prompt"].([]any)
	if !ok || len(messages) == 0 {
		return nil, errors.New("has no conversation in prompt")
	}
	list, err := rubric(official["rubrics"], "healthbench")
	out := map[string]any{"id": id, "prompt": messages, "rubric": list}
	keep(out, official, "example_tags", "canary")
	if ideal, ok := official["ideal_completions_data"].(map[string]any); ok && ideal["ideal_completion"] != nil {
		out["reference_answer"] = ideal["ideal_completion"]
	}
	return out, err
}

func bigGenRow(_ string, official map[string]any) (map[string]any, error) {
	id, err := text(official, "id")
	if err != nil {
		return nil, err
	}
	input, err := text(official, "input")
	if err != nil {
		return nil, err
	}
	messages := []any{map[string]any{"role": "user", "content": input}}
	if system, _ := official["system_prompt"].(string); strings.TrimSpace(system) != "" {
		messages = slices.Insert(messages, 0, any(map[string]any{"role": "system", "content": system}))
	}
	list, err := rubric(official["score_rubric"], "biggen")
	out := map[string]any{"id": id, "prompt": messages, "rubric": list}
	keep(out, official, "reference_answer", "capability", "task")
	return out, err
}
