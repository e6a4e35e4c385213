package amaris

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/rewards/internal/scoring/scoringtest"
)

func mustNew(t testing.TB, run rewards.Run, settings map[string]any) *Provider {
	t.Helper()
	if settings["goal"] == nil {
		settings["goal"] = "Kind and correct answers."
	}
	p, err := New(run, settings)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.(*Provider).Close() })
	return p.(*Provider)
}

func mustScore(t testing.TB, p *Provider, step int, groups ...grpo.Group) []rewards.Score {
	t.Helper()
	scores, err := p.Score(t.Context(), step, groups)
	if err != nil {
		t.Fatalf("step %d: %v", step, err)
	}
	return scores
}

// mustStep scores and lets p learn as the trainer does: Learn's step is that after the update.
func mustStep(t testing.TB, p *Provider, step int, groups ...grpo.Group) {
	t.Helper()
	mustScore(t, p, step, groups...)
	if err := p.Learn(t.Context(), step+1, groups); err != nil {
		t.Fatalf("step %d: %v", step, err)
	}
}

var group, criterion = scoringtest.Group, scoringtest.Criterion

// sheet is a reply in parts: field -> JSON.
type sheet map[string]string

func (s sheet) String() string {
	var parts []string
	for name, value := range s {
		parts = append(parts, fmt.Sprintf("%q: %s", name, value))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

const (
	report = `{"reward_hacking": {"evidence": ["quoted"], "type": "length_gaming", "present": true, "confidence": "high"},
		"training_stage": {"assessment": "As hoped.", "expected": "as_expected"},
		"rubric_analysis": {"assessment": "It asks for little.", "flaws": [{"criterion": "a", "flaw": "Too easy."}]},
		"curriculum": {"next": "Depth.", "reason": "The basics are there."}, "observations": []}`
	overview = `{"health": "Sound.", "phase": "early", "behaviours": [{"pattern": "Long answers.", "share": "all"}],
		"hacking_risk": {"evidence": [], "type": "length_gaming", "severity": "low"},
		"weakest_criterion": {"id": "a", "reason": "Too easy."}, "saturation": [], "plan": "Raise the standard."}`
	searches = `{"queries": [{"aim": "failure_mode", "query": "long answers"}]}`
)

// decision is an update reply that does nothing but what parts say.
func decision(parts sheet) string {
	whole := sheet{
		"reasoning": `"It is needed."`, "strategy": `"curriculum"`, "focus": `"reasoning_depth"`, "history": "[]", "create": "[]", "update": "[]",
		"delete": "[]", "reweight": "[]", "merge": "[]", "split": "[]", "lesson": `"Look again."`,
	}
	for name, value := range parts {
		whole[name] = value
	}
	return whole.String()
}

// script answers a question of any stage but scoring; stage update creates a criterion that names the step and the version.
func script(q rewards.Question) (string, error) {
	switch q.Name {
	case stageAnalyze:
		return report, nil
	case stageSummarize, stageMeta:
		return overview, nil
	case stageQuery:
		return searches, nil
	}
	step := strings.TrimSpace(strings.SplitN(strings.SplitN(q.User, "Step ", 2)[1], "\n", 2)[0])
	return decision(sheet{"create": `[{"text": "Made at step ` + step + `", "weight": 1, "category": "bonus", "reason": "r"}]`}), nil
}

// scripted is a run whose judge answers by script, or by other.
func scripted(other func(rewards.Question) (string, error)) (rewards.Run, *scoringtest.Judge) {
	if other == nil {
		other = script
	}
	j := &scoringtest.Judge{Other: other}
	return j.Run(), j
}

func asJSON(t testing.TB, v any) string {
	t.Helper()
	text, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func countOf(text, part string) int { return strings.Count(text, part) }

func contains(text string, parts ...string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}

func cloned(settings map[string]any) map[string]any { return maps.Clone(settings) }

// texts are those of a rubric in force.
func texts(p *Provider, scope string) []string {
	var out []string
	for _, c := range p.inForce()[scope].Set.All() {
		out = append(out, c.Text)
	}
	return out
}

// documents counts what an update is shown of the memory.
func documents(question string) int {
	return len(regexp.MustCompile(`(?m)^H[0-9]+, `).FindAllString(question, -1))
}
