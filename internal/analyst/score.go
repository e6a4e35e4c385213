package analyst

import (
	"fmt"
	"math"
)

// verdict is a score as package scoring asks for it.
type verdict struct {
	Reason string `json:"reason"`
	Score  int    `json:"score"`
}

// score gives each criterion of the question its score.
func score(q *question) (any, error) {
	t, answer, err := q.task("Reference answer", "Answer to be graded")
	if err != nil {
		return nil, err
	}
	out := map[string]verdict{}
	for _, c := range q.rubric {
		credit, err := t.credit(c.text, answer)
		if err != nil {
			return nil, err
		}
		out[c.id] = verdict{fmt.Sprintf("%.2f by its rule", credit), int(math.Round(credit * float64(c.most)))}
	}
	return out, nil
}

// task is what a question shows of one answer: the task, and the answer.
func (q *question) task(reference, completion string) (*Task, string, error) {
	pool, err := q.under(reference)
	if err != nil {
		return nil, "", fmt.Errorf("%w: set reference_column and analysis_column to pool", err)
	}
	answer, err := q.under(completion)
	if err != nil {
		return nil, "", err
	}
	t, err := ReadTask([]byte(pool))
	return t, answer, err
}
