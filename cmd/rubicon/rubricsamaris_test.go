package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/rubicon-rl/rubicon/internal/golden"
	"github.com/rubicon-rl/rubicon/internal/llm/llmtest"
)

// amarisReplies are usable answers to the stages.
var amarisReplies = map[string]string{
	"analyze": `{"reward_hacking": {"evidence": [], "type": "none", "present": false, "confidence": "high"}, "training_stage": {"assessment": "As hoped.", "expected": "as_expected"},
		"rubric_analysis": {"assessment": "Good.", "flaws": []}, "curriculum": {"next": "Depth.", "reason": "The basics are there."}, "observations": []}`,
	"summarize": `{"health": "Sound.", "phase": "early", "behaviours": [], "hacking_risk": {"evidence": [], "type": "none", "severity": "none"},
		"weakest_criterion": {"id": "kind", "reason": "Too easy."}, "saturation": [], "plan": "Raise the standard."}`,
	"query": `{"queries": [{"aim": "failure_mode", "query": "long answers"}]}`,
	"update": `{"reasoning": "It is needed.", "strategy": "curriculum", "focus": "reasoning_depth", "history": [], "create": [{"text": "The answer is deep.", "weight": 1, "category": "bonus", "reason": "r"}],
		"update": [], "delete": [], "reweight": [], "merge": [], "split": [], "lesson": "Look again."}`,
}

// TestAmarisRuns makes short runs in the three modes, and looks at what they left: what is written in a run must be what the
// reports read.
func TestAmarisRuns(t *testing.T) {
	server := llmtest.Start(t, llmtest.Config{Models: []string{"good"}, Answer: func(r *llmtest.Request) llmtest.Response {
		form := r.ResponseFormat.JSONSchema
		if reply, there := amarisReplies[form.Name]; there {
			return llmtest.Response{Content: reply}
		}
		return llmtest.Response{Content: instance(form.Schema, r.Last())}
	}})
	testscript.Run(t, testscript.Params{
		Files: []string{"testdata/amarisruns.txtar"},
		Setup: func(e *testscript.Env) error {
			e.Setenv("RUBICON_LIBCUDA", "/nowhere/libcuda.so.1")
			e.Setenv("MODELS", golden.Path("models"))
			e.Setenv("JUDGE", server.URL)
			e.Setenv("XDG_CACHE_HOME", e.Getenv("WORK")+"/cache")
			return nil
		},
	})
}
