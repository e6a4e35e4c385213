package track

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"time"
)

// Console prints a short line per record, with the time that is left. It is safe for use by several goroutines.
type Console struct {
	W     io.Writer
	JSON  io.Writer // gets every record as metrics.jsonl has it; nil: nobody
	Total int       // steps of the run
	Live  bool      // the writer is a terminal: Tick redraws one status line in place
	Color bool      // it shows colours
	Width int       // its columns; 0: not known
	Now   func() time.Time

	mu    sync.Mutex
	start time.Time
	from  int // steps done before start (resume)
	dirty bool
	curve []float64 // the latest rewards, or losses
	name  string    // of what curve has
}

// shown are the metrics that a person watches; the rest is in metrics.jsonl.
var shown = []struct{ name, label, format string }{
	{"loss", "loss", "%.4f"}, {"eval_loss", "eval loss", "%.4f"},
	{"reward", "reward", "%.3f"}, {"eval_reward", "eval reward", "%.3f"},
	{"reward_std", "±", "%.3f"}, {"kl", "kl", "%.4f"}, {"entropy", "entropy", "%.3f"},
	{"grad_norm", "grad", "%.3g"}, {"learning_rate", "lr", "%.2e"},
	{"completions/mean_length", "length", "%.1f"}, {"eval_completions/mean_length", "length", "%.1f"},
	{"completions/clipped_ratio", "cut", "%.2f"}, {"step_time", "s/step", "%.2f"},
}

// Begin notes the time and the step at which the run starts or resumes.
func (c *Console) Begin(step int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.start, c.from = c.Now(), step
}

// Write prints a message of the run; it takes the place of the status line.
func (c *Console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clear()
	return c.W.Write(p)
}

// Warn prints a message that should be seen.
func (c *Console) Warn(text string) {
	if c.Color {
		text = "\x1b[33m" + text + "\x1b[0m"
	}
	fmt.Fprintln(c, text)
}

// Log prints r.
func (c *Console) Log(r Record) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remember(r)
	if c.JSON != nil {
		line, err := json.Marshal(r)
		if err != nil {
			return err
		}
		if _, err := c.JSON.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "step %*d/%d", len(fmt.Sprint(c.Total)), r.Step, c.Total)
	for _, s := range shown {
		if v, ok := r.Values[s.name]; ok && !math.IsNaN(v) {
			fmt.Fprintf(&b, "  %s "+s.format, s.label, v)
		}
	}
	if eta := c.eta(r.Step); eta > 0 {
		fmt.Fprintf(&b, "  eta %s", eta)
	}
	c.clear()
	_, err := fmt.Fprintln(c.W, b.String())
	return err
}

// curveLength is how many values the status line draws.
const curveLength = 24

// remember keeps the reward, or the loss of a run without one, for the status line.
func (c *Console) remember(r Record) {
	for _, name := range []string{"reward", "loss"} {
		if v, ok := r.Values[name]; ok && !math.IsNaN(v) {
			if name != c.name {
				c.name, c.curve = name, nil
			}
			c.curve = append(c.curve, v)
			c.curve = c.curve[max(0, len(c.curve)-curveLength):]
			return
		}
	}
}

// Tick redraws the status line of a terminal: what the run is doing in this step.
func (c *Console) Tick(step int, doing string) {
	if !c.Live {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clear()
	line := []rune(c.status(step, doing))
	if c.Width > 0 && len(line) >= c.Width { // a line that wraps cannot be redrawn
		line = line[:c.Width-1]
	}
	fmt.Fprint(c.W, string(line))
	c.dirty = true
}

func (c *Console) status(step int, doing string) string {
	const columns = 20
	done := min(max(0, step-1), c.Total)
	filled := done * columns / max(1, c.Total)
	line := fmt.Sprintf("step %d/%d %s%s %d%%  %-10s", step, c.Total, strings.Repeat("█", filled), strings.Repeat("░", columns-filled),
		100*done/max(1, c.Total), doing)
	if n := len(c.curve); n > 0 {
		line += fmt.Sprintf("  %s %s %.3f", c.name, Sparkline(c.curve), c.curve[n-1])
	}
	if eta := c.eta(step - 1); eta > 0 {
		line += fmt.Sprintf("  eta %s", eta)
	}
	return line
}

func (c *Console) clear() {
	if c.dirty {
		fmt.Fprint(c.W, "\r\x1b[K")
		c.dirty = false
	}
}

func (c *Console) eta(step int) time.Duration {
	done := step - c.from
	if done <= 0 || step >= c.Total {
		return 0
	}
	per := c.Now().Sub(c.start) / time.Duration(done)
	return (per * time.Duration(c.Total-step)).Round(time.Second)
}

// Close ends the status line.
func (c *Console) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clear()
	return nil
}
