package amaris

import (
	"io"
	"math"
	"slices"

	"github.com/rubicon-rl/rubicon/rewards"
)

// Component is a row of the paper's Table 4: what a part of the method took. Figures of a step are means over scored steps.
type Component struct {
	Name    string `json:"name"`
	Seconds Figure `json:"seconds"` // of an update; of score: of a step
	Share   Figure `json:"share"`   // of an update's seconds

	Questions  Figure `json:"questions"`  // of a step
	Unanswered Figure `json:"unanswered"` // of them, without a usable answer
	Mean       Figure `json:"mean_s"`     // latency of a question: with waiting, retries and cached answers
	P95        Figure `json:"p95_s"`      // likewise

	Requests         Figure `json:"requests"` // of a step, to a server or model: with retries and repairs, without cached answers
	PromptTokens     Figure `json:"prompt_tokens"`
	CompletionTokens Figure `json:"completion_tokens"`
	Cost             Figure `json:"cost"`
	CacheHits        Figure `json:"cache_hits"`
}

// The rows that are no stages.
const (
	stageRetrieve = "retrieve"
	stageAll      = "update in all"
)

// NewComponents makes Table 4 of what a run left; nil if it left nothing. Meta summaries are a part of summarize, in seconds and,
// since both are asked of one tier, in tokens. In a mix, scoring's seconds are not known, and tokens are those of all parts.
func NewComponents(m Measured) []Component {
	spans := m.spans()
	if len(spans)+len(m.Latencies) == 0 {
		return nil
	}
	var out []Component
	for _, stage := range []string{stageAnalyze, stageSummarize, stageMeta, stageQuery, stageRetrieve, stageUpdate} {
		c := component(stage, m, spans)
		c.Seconds = perUpdate(spans, m.Prefix, stage)
		out = append(out, c)
	}
	whole := total(out)
	for i := range out {
		out[i].Share = out[i].Seconds / whole.Seconds
	}
	score := component(stageScore, m, spans)
	if m.Prefix == "" {
		score.Seconds = scoreSeconds(spans)
	}
	return append(out, whole, score)
}

// component fills in all but seconds and share.
func component(name string, m Measured, spans []span) Component {
	c := Component{Name: name, Seconds: unknown(), Share: unknown(), Questions: unknown(), Unanswered: unknown(), Mean: unknown(), P95: unknown()}
	asked := m.asked(name)
	questions, lost, seconds := 0, 0, 0.0
	for _, a := range asked {
		questions += a.Questions
		lost += a.Unanswered
		seconds += a.Seconds
	}
	if n := float64(len(m.Latencies)); n > 0 && name != stageRetrieve {
		c.Questions, c.Unanswered = Figure(float64(questions)/n), Figure(float64(lost)/n)
		c.Mean, c.P95 = Figure(seconds/float64(questions)), quantile(asked, 0.95)
	}
	tier, there := tiers[name]
	if name == stageScore {
		tier, there = rewards.TierScore, true
	}
	there = there && name != stageMeta
	for what, to := range map[string]*Figure{
		"calls": &c.Requests, "prompt_tokens": &c.PromptTokens, "completion_tokens": &c.CompletionTokens, "cost": &c.Cost, "cache_hits": &c.CacheHits,
	} {
		*to = unknown()
		if there {
			*to = ofTier(spans, tier, what)
		}
	}
	return c
}

// ofTier is the mean over steps of what a tier of the judge has used. While one tier alone was asked, which is that of the
// scores, the metrics have no names of tiers.
func ofTier(spans []span, tier rewards.Tier, what string) Figure {
	var m mean
	for _, s := range spans {
		all, asked := s.Values["judge/"+what]
		if !asked {
			continue
		}
		v, named := s.Values["judge/"+string(tier)+"/"+what]
		if _, several := s.Values["judge/"+string(rewards.TierScore)+"/"+what]; !named && !several && tier == rewards.TierScore {
			v = all
		}
		m.add(v, s.steps)
	}
	return m.value()
}

// perUpdate is the mean over updates of the seconds of a stage.
func perUpdate(spans []span, prefix, stage string) Figure {
	var m mean
	for _, s := range spans {
		if v, there := s.Values[prefix+"amaris/seconds/"+stage]; there {
			m.add(v, s.steps*s.Values[prefix+"amaris/updates"])
		}
	}
	return m.value()
}

// scoreSeconds is the mean over steps of the seconds of the reward without those that it waited for updates.
func scoreSeconds(spans []span) Figure {
	var m mean
	for _, s := range spans {
		waited, ours := s.Values["amaris/waiting_s"]
		if took, there := s.Values["timing_s/reward"]; there && ours {
			m.add(took-waited, s.steps)
		}
	}
	return m.value()
}

// total is the row of all stages of an update, without figures that some stage lacks.
func total(stages []Component) Component {
	out := Component{Name: stageAll, Share: 1, Mean: unknown(), P95: unknown()}
	for _, c := range stages {
		parts := []struct {
			to   *Figure
			from Figure
			of   []string // stages that have no such figure
		}{
			{&out.Seconds, c.Seconds, []string{stageMeta}},
			{&out.Questions, c.Questions, []string{stageRetrieve}},
			{&out.Unanswered, c.Unanswered, []string{stageRetrieve}},
			{&out.Requests, c.Requests, []string{stageMeta, stageRetrieve}},
			{&out.PromptTokens, c.PromptTokens, []string{stageMeta, stageRetrieve}},
			{&out.CompletionTokens, c.CompletionTokens, []string{stageMeta, stageRetrieve}},
			{&out.Cost, c.Cost, []string{stageMeta, stageRetrieve}},
			{&out.CacheHits, c.CacheHits, []string{stageMeta, stageRetrieve}},
		}
		for _, p := range parts {
			if !slices.Contains(p.of, c.Name) {
				*p.to += p.from
			}
		}
	}
	if math.IsNaN(float64(out.Seconds)) {
		out.Share = unknown()
	}
	return out
}

func printComponents(w io.Writer, list []Component) error {
	var rows [][]string
	for _, c := range list {
		rows = append(rows, []string{
			c.Name, c.Seconds.String(), (100 * c.Share).String(), c.Questions.String(), c.Unanswered.String(), c.Mean.String(), c.P95.String(),
			c.Requests.String(), c.PromptTokens.String(), c.CompletionTokens.String(), c.Cost.String(), c.CacheHits.String(),
		})
	}
	return table(w, []string{"component", "s/update", "%", "questions/step", "unanswered/step", "mean s", "p95 s", "requests/step", "prompt tokens/step",
		"completion tokens/step", "cost/step", "cache hits/step"}, rows)
}
