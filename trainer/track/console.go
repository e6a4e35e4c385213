package track

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"
)

// Console prints a short line per record, with the time that is left.
type Console struct {
	W     io.Writer
	Total int  // steps of the run
	Live  bool // the writer is a terminal: Tick redraws one status line in place
	Now   func() time.Time

	start time.Time
	from  int // steps done before start (resume)
	dirty bool
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
func (c *Console) Begin(step int) { c.start, c.from = c.Now(), step }

// Write prints a message of the run; it takes the place of the status line.
func (c *Console) Write(p []byte) (int, error) {
	c.clear()
	return c.W.Write(p)
}

// Log prints r.
func (c *Console) Log(r Record) error {
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

// Tick redraws the status line of a terminal: what the run is doing in this step.
func (c *Console) Tick(step int, doing string) {
	if !c.Live {
		return
	}
	c.clear()
	fmt.Fprintf(c.W, "step %d/%d  %s", step, c.Total, doing)
	if eta := c.eta(step - 1); eta > 0 {
		fmt.Fprintf(c.W, "  eta %s", eta)
	}
	c.dirty = true
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
	c.clear()
	return nil
}

// Sparkline draws values as one line of block characters from their minimum to their maximum.
func Sparkline(values []float64) string {
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		lo, hi = min(lo, v), max(hi, v)
	}
	blocks := []rune("▁▂▃▄▅▆▇█")
	var b strings.Builder
	for _, v := range values {
		i := 0
		if hi > lo {
			i = int((v - lo) / (hi - lo) * float64(len(blocks)-1))
		}
		b.WriteRune(blocks[i])
	}
	return b.String()
}
