package amaris

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rubicon-rl/rubicon/internal/llm"
	"github.com/rubicon-rl/rubicon/internal/llm/llmtest"
	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/rewards/criteria"
	"github.com/rubicon-rl/rubicon/rubricmem"
)

// faultSteps are the steps of a run whose server fails every fourth time.
const faultSteps = 200

// badDay answers well, or with each fault in turn.
type badDay struct {
	asked  atomic.Int64
	faults []llmtest.Fault
}

func (d *badDay) answer(r *llmtest.Request) llmtest.Response {
	n := int(d.asked.Add(1))
	out := llmtest.Response{Content: "{}"}
	if n%4 == 0 {
		out.Fault = d.faults[n/4%len(d.faults)]
	}
	user := r.Messages[slices.IndexFunc(r.Messages, func(m llmtest.Message) bool { return m.Role == "user" })].Content
	form := r.ResponseFormat.JSONSchema
	var err error
	switch form.Name {
	case "scores":
		out.Content, err = credits(form.Schema)
	case stageUpdate: // the rubric keeps its size
		out.Content = decision(sheet{"update": fmt.Sprintf(`[{"id": "a", "text": "Wording %d.", "reason": "r"}]`, n)})
	default:
		out.Content, err = script(rewards.Question{Name: form.Name, User: user})
	}
	if err != nil {
		return llmtest.Response{Fault: llmtest.ServerError}
	}
	return out
}

// A run of 200 steps against a server with every fault that there is: each step is scored, no update is lost or applied twice,
// none is ever more than one version late, every rollout has its analysis or is counted, and every document of the memory
// is of its kind's form.
func TestAgainstAFailingServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		day := &badDay{faults: slices.DeleteFunc(llmtest.All(), func(f llmtest.Fault) bool {
			return f == llmtest.Huge || f == llmtest.HugeAnnounced // slow to send, and no other than HTML to the client
		})}
		s := llmtest.StartInMemory(t, llmtest.Config{Answer: day.answer, Slow: time.Second})
		o := llm.DefaultOptions()
		o.URL, o.RoundTripper, o.Model, o.ResponseFormat, o.Timeout = s.URL, s.RoundTripper, "m", "json_schema", 10*time.Second
		o.MaxElapsed, o.MaxOutage = 24*time.Hour, 24*time.Hour
		client, err := llm.New(o)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		run := rewards.Run{Dir: t.TempDir(), Judge: func() (rewards.Judge, error) { return client, nil }}
		p := mustNew(t, run, map[string]any{"rubric": easy, "max_update_failures": 1000})
		defer p.Close()
		missing := 0.0
		for step := range faultSteps {
			mustStep(t, p, step, group("p", nil, fmt.Sprint("x", step), "y"))
			m := p.Metrics()
			missing += m["amaris/missing_analyses"]
			if m["amaris/staleness_versions"] > 1 || m["amaris/updates"] != min(1, float64(step/2)) {
				t.Fatalf("step %d: %v versions behind, %v updates came into force", step, m["amaris/staleness_versions"], m["amaris/updates"])
			}
		}
		if m := client.Metrics(); m["judge/retries"] < faultSteps/4 || m["judge/repairs"] == 0 {
			t.Errorf("the server hardly failed: %v", m)
		}
		checkLog(t, run.Dir)
		checkDocuments(t, p, int(missing))
	})
}

// checkLog checks that every update is in the log once, and its versions follow one another.
func checkLog(t *testing.T, dir string) {
	t.Helper()
	events, err := criteria.ReadLog(criteria.LogPath(dir))
	if err != nil {
		t.Fatal(err)
	}
	version := 0
	for i, e := range events {
		if want := max(0, i+1); e.Step != want && i > 0 {
			t.Errorf("event %d is of step %d, want %d", i, e.Step, want)
		}
		if e.Set != nil {
			version++
		}
		if e.Version != version {
			t.Errorf("event %d has version %d after %d sets", i, e.Version, version)
		}
	}
	if want := 1 + faultSteps - 2; len(events) != want || version < faultSteps/2 {
		t.Errorf("%d events up to version %d, want %d events", len(events), version, want)
	}
}

// checkDocuments checks the documents of the updates in force; missing rollouts have no analysis.
func checkDocuments(t *testing.T, p *Provider, missing int) {
	t.Helper()
	seen, left := map[rubricmem.Kind]int{}, p.state.end.Documents
	for d := range p.workshop.store.memory.All() {
		if left--; left < 0 {
			break
		}
		seen[d.Kind]++
		var err error
		switch d.Kind {
		case rubricmem.Analysis:
			err = p.workshop.forms[stageAnalyze].read(string(d.Data), &Analysis{})
		case rubricmem.StepSummary:
			err = p.workshop.forms[stageSummarize].read(string(d.Data), &Summary{})
		case rubricmem.UpdateRecord:
			var r Record
			if err = json.Unmarshal(d.Data, &r); err == nil && (len(r.Rubric) != 1 || r.Version < 1) {
				err = fmt.Errorf("record %+v", r)
			}
		}
		if err != nil {
			t.Errorf("document %s: %v", d.ID, err)
		}
	}
	if updates := faultSteps - 2; seen[rubricmem.UpdateRecord] != updates || seen[rubricmem.Analysis]+missing != 2*updates {
		t.Errorf("documents %v and %d missing analyses of %d updates with 2 rollouts each", seen, missing, updates)
	}
}
