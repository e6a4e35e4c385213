package health

import (
	"fmt"
	"math"
	"slices"

	"github.com/rubicon-rl/rubicon/trainer/track"
)

// auditCourse is what an independent judge said of samples.
type auditCourse struct {
	first, recent []audit // up to auditsCompared of each
	seen          int
}

type audit struct{ bias, difference float64 }

const (
	auditsCompared = 3
	drifted        = 0.15 // of a credit in [0,1]
)

func (c *auditCourse) add(r track.Record) {
	a := audit{r.Values["judge/audit/bias"], r.Values["judge/audit/difference"]}
	if _, there := r.Values["judge/audit/difference"]; !there || math.IsNaN(a.bias+a.difference) {
		return
	}
	c.seen++
	if len(c.first) < auditsCompared {
		c.first = append(c.first, a)
	}
	c.recent = append(slices.Clone(c.recent[max(0, len(c.recent)-auditsCompared+1):]), a)
}

func mean(list []audit) (m audit) {
	for _, a := range list {
		m.bias += a.bias / float64(len(list))
		m.difference += a.difference / float64(len(list))
	}
	return m
}

func judgeDrift(h *history) string {
	c := h.audits
	if c.seen < 2*auditsCompared {
		return ""
	}
	start, now := mean(c.first), mean(c.recent)
	switch {
	case now.bias-start.bias >= drifted:
		return fmt.Sprintf("the judge has become more generous than the independent one (by %+.2f of a credit, %+.2f at the start): the policy may be exploiting it; look at the completions with the highest rewards", now.bias, start.bias)
	case now.difference-start.difference >= drifted:
		return fmt.Sprintf("the judge and the independent one agree less than at the start (%.2f of a credit apart, %.2f at the start): look at the completions on which they differ", now.difference, start.difference)
	}
	return ""
}
