package health

import (
	"math"
	"slices"
	"strings"

	"github.com/rubicon-rl/rubicon/trainer/track"
)

// A window is the lines that a diagnosis averages over: those of at least minSteps steps, and at least minLines of them, so that
// neither a single noisy line nor track.logging_steps decides.
const (
	minSteps = 10
	minLines = 3
)

// startSteps are those whose lines are the start of a run. They are few, so that what goes wrong at once is not taken for it.
const startSteps = 5

// history is what the checks see of a run: its start, its last two windows, and few numbers of what lies between.
type history struct {
	step   int            // of the last line
	lines  int            // seen
	size   int            // lines of a window; 0: not known yet
	begun  int            // lines of the start; 0: likewise
	first  []track.Record // the start
	recent []track.Record // the last two windows
	reward rewardCourse
	audits auditCourse
}

// add takes a line and reports whether it is one of training: an evaluation is none.
func (h *history) add(r track.Record) bool {
	if _, training := r.Values["num_tokens"]; !training {
		return false
	}
	if h.lines == 1 {
		each := float64(max(1, r.Step-h.step)) // steps of a line
		h.size = max(minLines, int(math.Ceil(minSteps/each)))
		h.begun = int(math.Ceil(startSteps / each))
	}
	h.step = r.Step
	h.lines++
	h.recent = append(h.recent, r)
	if h.size > 0 && len(h.recent) > 2*h.size {
		h.recent = h.recent[1:]
	}
	if h.begun > 0 && h.first == nil && h.lines >= h.begun {
		h.first = append(h.first, h.recent[:h.begun]...)
	}
	h.reward.add(h, r)
	h.audits.add(r)
	return true
}

// ago is the mean of a metric over the window that ended so many windows ago, 0 or 1. ok: every line of it has the metric.
func (h *history) ago(windows int, name string) (mean float64, ok bool) {
	from := len(h.recent) - (windows+1)*h.size
	if h.size == 0 || from < 0 {
		return 0, false
	}
	return average(h.recent[from:from+h.size], name)
}

// now is the mean of a metric over the last window.
func (h *history) now(name string) (mean float64, ok bool) { return h.ago(0, name) }

// sinceStart is a metric's mean over the start and over the last window; ok: they do not overlap.
func (h *history) sinceStart(name string) (start, now float64, ok bool) {
	now, there := h.now(name)
	start, first := average(h.first, name)
	return start, now, there && first && h.lines >= h.begun+h.size
}

// last is a metric of the last line.
func (h *history) last(name string) (float64, bool) {
	v, ok := h.recent[len(h.recent)-1].Values[name]
	return v, ok && !math.IsNaN(v)
}

// named are the metrics of the last line that end in suffix: those of a mix have the part's name in front.
func (h *history) named(suffix string) []string {
	return h.matching(func(name string) bool { return name == suffix || strings.HasSuffix(name, "/"+suffix) })
}

// below are the metrics of the last line that begin with prefix.
func (h *history) below(prefix string) []string {
	return h.matching(func(name string) bool { return strings.HasPrefix(name, prefix) })
}

func (h *history) matching(match func(name string) bool) []string {
	var out []string
	for name := range h.recent[len(h.recent)-1].Values {
		if match(name) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// average is the mean of a metric over lines; ok: there are lines, and all have it.
func average(lines []track.Record, name string) (mean float64, ok bool) {
	for _, r := range lines {
		v, there := r.Values[name]
		if !there || math.IsNaN(v) {
			return 0, false
		}
		mean += v / float64(len(lines))
	}
	return mean, len(lines) > 0
}
