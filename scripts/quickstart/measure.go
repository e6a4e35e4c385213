package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/internal/analyst"
	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/rewards/verify"
)

// scores are means over answers.
type scores struct {
	answers int
	asked   float64            // reward of what the prompts ask for
	strict  float64            // share that fulfil all of it
	full    float64            // reward of asked and quality together
	quality float64            // of what the prompts do not say, alone
	gaming  float64            // share that pads, repeats or does not stop
	parts   map[string]float64 // credit of each check, where it applies
}

// gates are what a base must reach to be worth training: after phase 1 it can do what is asked, after phase 2 it
// mostly does not.
var gates = map[string]func(scores) error{
	"competent": func(s scores) error {
		if s.strict < 0.38 || s.parts["topic"] < 0.85 {
			return fmt.Errorf("strict %.3f and topic %.3f, want at least 0.38 and 0.85", s.strict, s.parts["topic"])
		}
		return nil
	},
	"base": func(s scores) error {
		if s.asked < 0.40 || s.asked > 0.47 || s.strict > 0.08 {
			return fmt.Errorf("asked %.3f and strict %.3f, want 0.40 to 0.47 and at most 0.08", s.asked, s.strict)
		}
		return nil
	},
}

// measureFile prints the scores of the answers in a file to the tasks in another, and applies a gate if one is named.
func measureFile(w io.Writer, answers, tasks, gate string) error {
	check, ok := gates[gate]
	if !ok && gate != "" {
		return fmt.Errorf("no gate is called %q: use competent or base", gate)
	}
	groups, err := readGroups(answers, tasks)
	if err != nil {
		return err
	}
	s, err := measure(groups)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "answers %d\nasked   %.3f\nstrict  %.3f\nfull    %.3f\nquality %.3f\ngaming  %.3f\n",
		s.answers, s.asked, s.strict, s.full, s.quality, s.gaming)
	for _, name := range slices.Sorted(maps.Keys(s.parts)) {
		fmt.Fprintf(w, "  %-10s %.3f\n", name, s.parts[name])
	}
	if gate == "" {
		return nil
	}
	return check(s)
}

// readGroups reads answers, one a line as {id, completion}, and puts them to the tasks with these ids.
func readGroups(answers, tasks string) ([]grpo.Group, error) {
	var groups []grpo.Group
	byID := map[string]int{}
	err := eachLine(tasks, func(row map[string]any) error {
		id, _ := row["id"].(string)
		byID[id] = len(groups)
		groups = append(groups, grpo.Group{Prompt: &grpo.Prompt{ID: id, Columns: row}})
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = eachLine(answers, func(row map[string]any) error {
		id, _ := row["id"].(string)
		text, ok := row["completion"].(string)
		i, known := byID[id]
		if !ok || !known {
			return fmt.Errorf("task %q with completion %v is not one of %s", id, row["completion"], tasks)
		}
		groups[i].Completions = append(groups[i].Completions, &grpo.Completion{Text: text})
		return nil
	})
	return groups, err
}

func eachLine(path string, f func(map[string]any) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		var row map[string]any
		err := json.Unmarshal(lines.Bytes(), &row)
		if err == nil {
			err = f(row)
		}
		if err != nil {
			return fmt.Errorf("%s, line %d: %w", path, n, err)
		}
	}
	return lines.Err()
}

// measure scores answers with the reward that training uses.
func measure(groups []grpo.Group) (scores, error) {
	asked, err := byColumn("checks", groups)
	if err != nil {
		return scores{}, err
	}
	quality, err := byColumn("quality", groups)
	if err != nil {
		return scores{}, err
	}
	s := scores{answers: len(asked), parts: map[string]float64{}}
	applies := map[string]float64{}
	for i := range asked {
		all := slices.Concat(asked[i].Parts, quality[i].Parts)
		s.asked += asked[i].Value
		s.full += value(all)
		s.quality += value(quality[i].Parts)
		if value(asked[i].Parts) == 1 {
			s.strict++
		}
		for _, p := range all {
			s.parts[p.Name] += p.Credit
			applies[p.Name]++
		}
	}
	n := float64(s.answers)
	s.asked, s.strict, s.full, s.quality = s.asked/n, s.strict/n, s.full/n, s.quality/n
	if s.gaming, err = gaming(groups); err != nil {
		return scores{}, err
	}
	for name := range s.parts {
		s.parts[name] /= applies[name]
	}
	return s, nil
}

// gaming is the share of answers in which the rule-based judge sees gaming.
func gaming(groups []grpo.Group) (float64, error) {
	games, all := 0.0, 0.0
	for _, g := range groups {
		pool, err := json.Marshal(g.Prompt.Columns["pool"])
		if err != nil {
			return 0, err
		}
		t, err := analyst.ReadTask(pool)
		if err != nil {
			return 0, fmt.Errorf("task %s: %w", g.Prompt.ID, err)
		}
		for _, c := range g.Completions {
			all++
			if kind, _ := t.Gaming(c.Text); kind != "" {
				games++
			}
		}
	}
	return games / all, nil
}

// value is the weighted mean credit.
func value(parts []rewards.Part) float64 {
	sum, weight := 0.0, 0.0
	for _, p := range parts {
		sum += p.Weight * p.Credit
		weight += p.Weight
	}
	return sum / weight
}

// byColumn scores groups by the checks in one column.
func byColumn(column string, groups []grpo.Group) ([]rewards.Score, error) {
	p, err := verify.New(rewards.Run{}, map[string]any{"column": column})
	if err != nil {
		return nil, err
	}
	return p.Score(context.Background(), 0, groups)
}
