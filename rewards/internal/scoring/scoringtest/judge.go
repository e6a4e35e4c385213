// Package scoringtest has a judge that answers by a rule, and rows, for tests of providers that score by criteria.
package scoringtest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strings"
	"sync"

	"github.com/rubicon-rl/rubicon/rewards"
)

// Judge answers scoring questions by their schema and the answer that is to be graded. It is safe for use by several
// goroutines, and answers the same question always alike.
type Judge struct {
	// Rule gives the score under a key, from 0 to most, for an answer; nil: one that its hash decides.
	Rule func(key, answer string, most int) int
	// Missing reports that there is no usable answer to a question about answer; nil: never.
	Missing func(answer string) bool
	// Other answers the questions of other tiers; nil: they are errors.
	Other func(q rewards.Question) (string, error)

	mu    sync.Mutex
	asked []rewards.Question
}

// Run is a run whose judge is j.
func (j *Judge) Run() rewards.Run {
	return rewards.Run{Judge: func() (rewards.Judge, error) { return j, nil }}
}

// Asked are the questions so far, in the order in which they came.
func (j *Judge) Asked() []rewards.Question {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]rewards.Question(nil), j.asked...)
}

// Ask implements rewards.Judge.
func (j *Judge) Ask(ctx context.Context, q rewards.Question) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	j.mu.Lock()
	j.asked = append(j.asked, q)
	j.mu.Unlock()
	reply, err := j.reply(q)
	if err != nil {
		return "", err
	}
	if q.Check != nil {
		if err := q.Check(reply); err != nil {
			return "", fmt.Errorf("%w: %w", rewards.ErrNoAnswer, err)
		}
	}
	return reply, nil
}

func (j *Judge) reply(q rewards.Question) (string, error) {
	if q.Tier != rewards.TierScore {
		if j.Other == nil {
			return "", fmt.Errorf("a question of tier %s was not expected", q.Tier)
		}
		return j.Other(q)
	}
	fenced := Fenced(q.User)
	if len(fenced) == 0 {
		return "", fmt.Errorf("the question shows no answer to grade:\n%s", q.User)
	}
	answer := fenced[len(fenced)-1]
	if j.Missing != nil && j.Missing(answer) {
		return "", fmt.Errorf("%w: it was told to give none", rewards.ErrNoAnswer)
	}
	return j.scores(q.Schema, answer)
}

// scores writes a reply that meets the schema.
func (j *Judge) scores(schema json.RawMessage, answer string) (string, error) {
	var form struct {
		Required   []string
		Properties map[string]struct {
			Properties struct {
				Score struct {
					Enum    []int
					Maximum int
				}
			}
		}
	}
	if err := json.Unmarshal(schema, &form); err != nil {
		return "", err
	}
	var parts []string
	for _, key := range form.Required {
		score := form.Properties[key].Properties.Score
		most := max(score.Maximum, len(score.Enum)-1)
		rule := j.Rule
		if rule == nil {
			rule = byHash
		}
		parts = append(parts, fmt.Sprintf(`%q: {"reason": "graded %s", "score": %d}`, key, key, rule(key, answer, most)))
	}
	return "{" + strings.Join(parts, ", ") + "}", nil
}

func byHash(key, answer string, most int) int {
	h := fnv.New32a()
	fmt.Fprintf(h, "%s\x00%s", key, answer)
	return int(h.Sum32() % uint32(most+1))
}

// Fenced returns what stands inside the fences of a message, in order. Only fences whose code is the hash of their
// content count.
func Fenced(message string) []string {
	var out []string
	lines := strings.Split(message, "\n")
	for i := 0; i < len(lines); i++ {
		code, opens := strings.CutPrefix(lines[i], "<<<UNTRUSTED ")
		for end := i + 1; opens && end < len(lines); end++ {
			if lines[end] != code+" UNTRUSTED>>>" {
				continue
			}
			content := strings.Join(lines[i+1:end], "\n")
			sum := sha256.Sum256([]byte(content))
			if hex.EncodeToString(sum[:8]) == code {
				out = append(out, content)
				i = end
			}
			break
		}
	}
	return out
}
