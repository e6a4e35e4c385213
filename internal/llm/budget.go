package llm

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// ErrBudget is the error of a question that would exceed the budget. It ends the run, not just the question.
var ErrBudget = errors.New("the judge's budget is spent")

// Spent is what judging has cost.
type Spent struct {
	PromptTokens     int64   `json:"prompt_tokens"`
	CompletionTokens int64   `json:"completion_tokens"`
	Money            float64 `json:"money"`
}

// budget counts what is spent and says when it is enough. Requests that are on their way when it is are still paid, so that
// it may be exceeded by as many as are in work at once.
type budget struct {
	tokens int64
	money  float64
	mu     sync.Mutex
	spent  Spent
	file   *os.File // nil: none
}

// openBudget goes on from what the options' file says.
func openBudget(o *Options) (*budget, error) {
	b := &budget{tokens: o.BudgetTokens, money: o.BudgetMoney}
	if o.SpentFile == "" {
		return b, nil
	}
	if err := os.MkdirAll(filepath.Dir(o.SpentFile), 0o755); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(o.SpentFile)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if len(text) > 0 {
		if err := json.Unmarshal(text, &b.spent); err != nil {
			return nil, fmt.Errorf("%s: %w; mend it, or remove it to count what the judge costs from zero", o.SpentFile, err)
		}
	}
	b.file, err = os.OpenFile(o.SpentFile, os.O_WRONLY|os.O_CREATE, 0o644)
	return b, err
}

// left is ErrBudget if nothing is left.
func (b *budget) left() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if used := b.spent.PromptTokens + b.spent.CompletionTokens; b.tokens > 0 && used >= b.tokens {
		return fmt.Errorf("%w: %d tokens of judge.budget_tokens %d; raise it to go on", ErrBudget, used, b.tokens)
	}
	if b.money > 0 && b.spent.Money >= b.money {
		return fmt.Errorf("%w: %.4g of judge.budget_money %.4g; raise it to go on", ErrBudget, b.spent.Money, b.money)
	}
	return nil
}

// add counts more, in the file as well.
func (b *budget) add(s Spent) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.set(Spent{b.spent.PromptTokens + s.PromptTokens, b.spent.CompletionTokens + s.CompletionTokens, b.spent.Money + s.Money})
}

// set replaces the count. The file's text has a fixed length and is written at once over the former one, so that it is
// whole whenever the process may be killed.
func (b *budget) set(s Spent) error {
	b.spent = s
	if b.file == nil {
		return nil
	}
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	_, err = b.file.WriteAt(fmt.Appendf(nil, "%-127s\n", text), 0)
	return err
}

// Close closes the file.
func (b *budget) Close() error {
	if b.file == nil {
		return nil
	}
	return b.file.Close()
}

// Spent returns what the judge has cost, restarts included if there is a SpentFile or SetSpent was called.
func (c *Client) Spent() Spent {
	if c.budget == nil { // answers are replayed
		return Spent{}
	}
	c.budget.mu.Lock()
	defer c.budget.mu.Unlock()
	return c.budget.spent
}

// SetSpent replaces what counts as spent, as a run does that keeps it by itself.
func (c *Client) SetSpent(s Spent) error {
	if c.budget == nil {
		return nil
	}
	c.budget.mu.Lock()
	defer c.budget.mu.Unlock()
	return c.budget.set(s)
}
