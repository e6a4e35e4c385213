package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/rubicon-rl/rubicon/configs"
	"github.com/rubicon-rl/rubicon/trainer/health"
	"github.com/rubicon-rl/rubicon/trainer/track"
)

func topCommand() *cobra.Command {
	var once bool
	interval := 2 * time.Second
	cmd := &cobra.Command{
		Use:   "top RUN",
		Short: "Show how a run goes: progress, curves, times, health",
		Long: `Shows how a run goes, from its folder, and again every --interval until interrupted. The run may be on another machine whose disk is
seen here. Where the output is no terminal it is shown once.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if interval < 100*time.Millisecond {
				return fmt.Errorf("--interval is %v: set it to at least 100ms", interval)
			}
			if once || !term.IsTerminal(int(os.Stdout.Fd())) {
				v, err := readRun(args[0])
				if err != nil {
					return err
				}
				_, err = io.WriteString(cmd.OutOrStdout(), v.show(time.Now()))
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return watch(ctx, args[0], interval, cmd.OutOrStdout())
		},
	}
	cmd.Flags().BoolVar(&once, "once", false, "show it once")
	cmd.Flags().DurationVar(&interval, "interval", interval, "time between two looks")
	return cmd
}

// watch shows a run again and again until ctx ends.
func watch(ctx context.Context, dir string, interval time.Duration, w io.Writer) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	v, err := readRun(dir)
	for {
		if err != nil {
			return err
		}
		const home, clearRest, clearLine = "\x1b[H", "\x1b[J", "\x1b[K\n"
		fmt.Fprint(w, home, strings.ReplaceAll(v.show(time.Now()), "\n", clearLine), clearRest)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			err = v.update()
		}
	}
}

// runView is what top shows of a run.
type runView struct {
	dir     string
	optim   configs.Optim
	read    int64 // bytes of its metrics
	records []track.Record
	written time.Time // when the last line was
	monitor health.Monitor
}

func readRun(dir string) (*runView, error) {
	v := &runView{dir: dir}
	if err := v.update(); err != nil {
		return nil, fmt.Errorf("%s is not the folder of a run: %w", dir, err)
	}
	c, _, err := configs.Load([]string{filepath.Join(dir, "config.yaml")}, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("the configuration of %s: %w", dir, err)
	}
	v.optim = c.Optim
	return v, nil
}

// update reads the lines that are new; a run that was resumed from a checkpoint is read anew, because its log was cut.
func (v *runView) update() error {
	path := filepath.Join(v.dir, "metrics.jsonl")
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.Size() < v.read {
		v.read, v.records, v.monitor = 0, nil, health.Monitor{}
	}
	v.written = info.ModTime()
	more, read, err := track.ReadJSONLFrom(path, v.read)
	if err != nil {
		return err
	}
	for _, r := range more {
		v.monitor.Observe(r)
	}
	v.records, v.read = append(v.records, more...), read
	return nil
}

// stepsOf is how many steps a run has; where epochs say so, it follows from how far its epochs are.
func stepsOf(o configs.Optim, records []track.Record) int {
	if o.MaxSteps > 0 || len(records) == 0 {
		return max(0, o.MaxSteps)
	}
	last := records[len(records)-1]
	if epoch := last.Values["epoch"]; epoch > 0 {
		return int(math.Round(float64(last.Step) * o.NumTrainEpochs / epoch))
	}
	return 0
}

// curves are the metrics that top draws, those that a run has.
var curves = []string{"reward", "eval_reward", "loss", "eval_loss", "reward_std", "frac_reward_zero_std", "entropy", "kl", "completions/mean_length",
	"completions/clipped_ratio", "grad_norm", "learning_rate", "step_time", "perf/throughput", "perf/max_memory_allocated_gb"}

const curveColumns = 40

// show is the view as text, at a time.
func (v *runView) show(now time.Time) string {
	var b strings.Builder
	fmt.Fprintln(&b, v.progress(now))
	for _, name := range curves {
		if s := track.Series(v.records, name); len(s) > 0 {
			fmt.Fprintf(&b, "%-30s %-*s %10.4g -> %.4g\n", name, curveColumns, track.Sparkline(track.Shorten(s, curveColumns)), s[0], s[len(s)-1])
		}
	}
	if times := v.times(); times != "" {
		fmt.Fprintf(&b, "%-30s %s\n", "time of a step", times)
	}
	for _, f := range v.monitor.Active() {
		fmt.Fprintf(&b, "health     %s\n", f)
	}
	return b.String()
}

func (v *runView) progress(now time.Time) string {
	if len(v.records) == 0 {
		return v.dir + ": no line of metrics yet"
	}
	step, total := v.records[len(v.records)-1].Step, stepsOf(v.optim, v.records)
	ago := now.Sub(v.written).Round(time.Second)
	if total == 0 {
		return fmt.Sprintf("%s  step %d, %v ago", v.dir, step, ago)
	}
	if step >= total {
		return fmt.Sprintf("%s  all %d steps, %v ago", v.dir, total, ago)
	}
	line := fmt.Sprintf("%s  step %d/%d (%d%%), %v ago", v.dir, step, total, 100*step/total, ago)
	if s := track.Series(v.records, "step_time"); len(s) > 0 {
		recent := s[max(0, len(s)-10):]
		per := track.Shorten(recent, 1)[0]
		line += fmt.Sprintf(", about %v left", (time.Duration(per * float64(total-step) * float64(time.Second))).Round(time.Second))
	}
	return line
}

// phases are the metrics of a step's parts, in order.
var phases = []struct{ metric, name string }{
	{"timing_s/gen", "sampling"}, {"timing_s/reward", "scoring"}, {"timing_s/audit", "audit"}, {"timing_s/ref", "reference"},
	{"timing_s/update_actor", "learning"}, {"timing_s/testing", "evaluating"}, {"timing_s/save_checkpoint", "saving"},
}

// times says which share of the last line's step each part took. Evaluations and checkpoints come between two steps.
func (v *runView) times() string {
	for i := len(v.records) - 1; i >= 0; i-- {
		values := v.records[i].Values
		whole := values["step_time"]
		if !(whole > 0) {
			continue
		}
		var parts []string
		for _, p := range phases {
			if t, ok := values[p.metric]; ok {
				parts = append(parts, fmt.Sprintf("%s %.2gs", p.name, t))
			}
		}
		return fmt.Sprintf("%.3gs: %s", whole, strings.Join(parts, ", "))
	}
	return ""
}
