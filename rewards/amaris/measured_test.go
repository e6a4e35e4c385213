package amaris

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rubicon-rl/rubicon/rewards"
)

// judged are the metrics of tiers, each with requests, prompt tokens, completion tokens, cost and cache hits.
func judged(values map[string]float64, tiers map[string][5]float64) map[string]float64 {
	for tier, v := range tiers {
		for i, what := range []string{"calls", "prompt_tokens", "completion_tokens", "cost", "cache_hits"} {
			values["judge/"+what] += v[i]
			if len(tiers) > 1 {
				values["judge/"+tier+"/"+what] = v[i]
			}
		}
	}
	return values
}

// measuredByHand is a run of four steps: a line of step 1, when only scores were asked for, an evaluation, a line of steps 2 and 3, in
// which one update came into force, and a line of step 4 with another one.
func measuredByHand() Measured {
	return Measured{
		Lines: []Line{
			{1, judged(map[string]float64{"step_time": 10, "timing_s/reward": 3, "amaris/waiting_s": 1, "amaris/updates": 0}, map[string][5]float64{
				"score": {4, 400, 40, 0.5, 4}})},
			{1, map[string]float64{"eval_reward": 0.5}},
			{3, judged(map[string]float64{"step_time": 20, "timing_s/reward": 4, "amaris/waiting_s": 2, "amaris/updates": 0.5, "amaris/seconds/analyze": 8,
				"amaris/seconds/summarize": 3, "amaris/seconds/query": 1, "amaris/seconds/retrieve": 0.5, "amaris/seconds/update": 2}, map[string][5]float64{
				"score": {4, 400, 40, 0.5, 0}, "analyze": {6, 900, 90, 1, 0}, "summarize": {2, 200, 20, 0.25, 0}, "query": {0, 0, 0, 0, 0}, "update": {1, 100, 60, 0.5, 1}})},
			{4, judged(map[string]float64{"step_time": 10, "timing_s/reward": 2, "amaris/waiting_s": 0, "amaris/updates": 1, "amaris/seconds/analyze": 6,
				"amaris/seconds/summarize": 1, "amaris/seconds/query": 1, "amaris/seconds/retrieve": 0.5, "amaris/seconds/update": 2}, map[string][5]float64{
				"score": {0, 0, 0, 0, 4}, "analyze": {4, 200, 20, 0, 0}, "summarize": {0, 0, 0, 0, 2}, "query": {4, 80, 8, 0.5, 0}, "update": {2, 200, 40, 1, 0}})},
		},
		Latencies: []Latency{
			{0, map[string]Asked{"score": {Questions: 4, Seconds: 2, Latencies: []float64{0.25, 0.5, 0.5, 0.75}}}},
			{1, map[string]Asked{
				"score":     {Questions: 4, Seconds: 2, Latencies: []float64{0.5, 0.5, 0.5, 0.5}},
				"analyze":   {Questions: 90, Seconds: 45, Latencies: []float64{0.5}}, // one stands for all 90
				"summarize": {Questions: 1, Seconds: 2, Latencies: []float64{2}}, "meta": {Questions: 1, Seconds: 1, Latencies: []float64{1}},
				"update": {Questions: 1, Seconds: 2, Latencies: []float64{2}},
			}},
			{2, map[string]Asked{
				"analyze": {Questions: 10, Unanswered: 1, Seconds: 55, Latencies: []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
				"query":   {Questions: 2, Seconds: 1, Latencies: []float64{0.25, 0.75}},
			}},
			{3, map[string]Asked{"score": {Questions: 4, Seconds: 0, Latencies: []float64{0, 0, 0, 0}}}},
		},
	}
}

// Table 4 by hand. Steps weigh 1, 2 and 1; the two updates weigh the same. Analyze: (8+6)/2 s of 12.5; (6*2+4)/4 requests a step, 100
// questions in 4 lines, 100 s for them, and of the sorted latencies (90 of 0.5, then 1 to 10) the 95th is 5.
func TestComponentsByHand(t *testing.T) {
	nan := unknown()
	want := []Component{
		{"analyze", 7, 0.56, 25, 0.25, 1, 5, 4, 500, 50, 0.5, 0},
		{"summarize", 2, 0.16, 0.25, 0, 2, 2, 1, 100, 10, 0.125, 0.5},
		{"meta", nan, nan, 0.25, 0, 1, 1, nan, nan, nan, nan, nan},
		{"query", 1, 0.08, 0.5, 0, 0.5, 0.75, 1, 20, 2, 0.125, 0},
		{"retrieve", 0.5, 0.04, nan, nan, nan, nan, nan, nan, nan, nan, nan},
		{"update", 2, 0.16, 0.25, 0, 2, 2, 1, 100, 40, 0.5, 0.5},
		{"update in all", 12.5, 1, 26.25, 0.25, nan, nan, 7, 720, 102, 1.25, 1},
		{"score", 2, nan, 3, 0, 1.0 / 3, 0.75, 3, 300, 30, 0.375, 2},
	}
	got := NewComponents(measuredByHand())
	if a, b := asJSON(t, rounded(got)), asJSON(t, rounded(want)); a != b {
		t.Errorf("got %s\nwant %s", a, b)
	}
	var text strings.Builder
	if err := (Report{Components: got}).Print(&text); err != nil {
		t.Fatal(err)
	}
	if !contains(text.String(), "\n\n| component | s/update | % | questions/step | unanswered/step |", "\n| analyze | 7 | 56 | 25 | 0.25 | 1 | 5 | 4 | 500 | 50 | 0.5 | 0 |\n",
		"\n| meta | - | - | 0.25 | 0 | 1 | 1 | - | - | - | - | - |\n", "\n| update in all | 12.5 | 100 |") {
		t.Error(text.String())
	}
}

// rounded are components with twelve digits, so that only rounding may differ.
func rounded(list []Component) []Component {
	out := append([]Component(nil), list...)
	for i := range out {
		c := &out[i]
		for _, f := range []*Figure{&c.Seconds, &c.Share, &c.Questions, &c.Unanswered, &c.Mean, &c.P95, &c.Requests, &c.PromptTokens, &c.CompletionTokens, &c.Cost, &c.CacheHits} {
			*f = Figure(math.Round(float64(*f)*1e12) / 1e12)
		}
	}
	return out
}

// A run that was made before latencies were written down has dashes, not zeros, and one that left nothing has no table.
func TestComponentsOfAnOldRun(t *testing.T) {
	m := measuredByHand()
	m.Latencies = nil
	analyze := NewComponents(m)[0]
	if text, err := json.Marshal(analyze); err != nil || !contains(string(text), `"seconds":7,`, `"questions":null,"unanswered":null,"mean_s":null,"p95_s":null,"requests":4`) {
		t.Errorf("%s, %v", text, err)
	}
	if c := NewComponents(Measured{}); c != nil {
		t.Errorf("%+v", c)
	}
	m.Lines, m.Latencies = nil, measuredByHand().Latencies // the run is in its first steps
	if c := NewComponents(m)[0]; c.Requests.String() != "-" || c.Mean != 1 {
		t.Errorf("%+v", c)
	}
}

// The metrics of a part of a mix have its name before them; the reward's time is that of all parts.
func TestComponentsOfAPart(t *testing.T) {
	m := measuredByHand()
	for _, l := range m.Lines {
		for name, v := range l.Values {
			if strings.HasPrefix(name, "amaris/") {
				delete(l.Values, name)
				l.Values["rubrics/"+name] = v
			}
		}
	}
	m.Prefix = "rubrics/"
	c := NewComponents(m)
	if c[0].Seconds != 7 || c[7].Seconds.String() != "-" || c[7].Requests != 3 {
		t.Errorf("%+v, %+v", c[0], c[7])
	}
}

// What a run writes down: three analyses at the same time, two chunk summaries, one of these, and an update; a query from the
// second update on, for the first has no memory to search. In sync the training has waited for all of it.
func TestLatenciesOfARun(t *testing.T) {
	dir := t.TempDir()
	var waited []float64
	synctest.Test(t, func(t *testing.T) {
		s := &slow{factor: 1}
		run := rewards.Run{
			Dir: dir, Judge: func() (rewards.Judge, error) { return s, nil }, Embedder: func(string) (rewards.Embedder, error) { return s, nil },
		}
		p := mustNew(t, run, map[string]any{"rubric": easy, "execution": "sync", "chunk_size": 2, "embedder": "minilm"})
		defer p.Close()
		for step := range 3 {
			mustStep(t, p, step, group("p", nil, "x", "y", "z"))
			waited = append(waited, p.Metrics()["amaris/waiting_sync_s"])
		}
	})
	got, err := ReadLatencies(LatencyPath(dir))
	if err != nil {
		t.Fatal(err)
	}
	scores := Asked{Questions: 3, Latencies: []float64{0, 0, 0}}
	first := map[string]Asked{
		"score": scores, "analyze": {Questions: 3, Seconds: 3 * analysisTime, Latencies: []float64{analysisTime, analysisTime, analysisTime}},
		"summarize": {Questions: 2, Seconds: summaryTime, Latencies: []float64{summaryTime / 2, summaryTime / 2}},
		"meta":      {Questions: 1, Seconds: summaryTime / 2, Latencies: []float64{summaryTime / 2}},
		"update":    {Questions: 1, Seconds: updateTime, Latencies: []float64{updateTime}},
	}
	second := map[string]Asked{"query": {Questions: 1, Seconds: queryTime, Latencies: []float64{queryTime}}}
	for stage, a := range first {
		second[stage] = a
	}
	want := []Latency{{0, map[string]Asked{"score": scores}}, {1, first}, {2, second}}
	if a, b := asJSON(t, got), asJSON(t, want); a != b {
		t.Errorf("got %s\nwant %s", a, b)
	}
	for i, want := range []float64{0, analysisTime + summaryTime + updateTime, analysisTime + summaryTime + queryTime + retrievalTime + updateTime} {
		if math.Abs(waited[i]-want) > 1e-6 {
			t.Errorf("step %d: waited %v s, want %v", i, waited[i], want)
		}
	}
}

// A question without a usable answer counts, one that could not be asked does not; and many latencies become a bounded number that
// are spread over all of them.
func TestStopwatch(t *testing.T) {
	var w stopwatch
	if w.take() != nil {
		t.Error("no judge is open, but there are latencies")
	}
	run, _ := scripted(func(q rewards.Question) (string, error) {
		if q.User == "lost" {
			return "", rewards.ErrNoAnswer
		}
		return "", os.ErrDeadlineExceeded
	})
	j, err := w.over(run.Judge)()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"lost", "down"} {
		if _, err := j.Ask(t.Context(), rewards.Question{Tier: rewards.TierAnalyze, Name: stageAnalyze, User: text}); err == nil {
			t.Error("no error")
		}
	}
	a := w.take()[stageAnalyze]
	if a.Questions != 1 || a.Unanswered != 1 || len(a.Latencies) != 1 {
		t.Errorf("%+v", a)
	}
	for i := range 128 {
		w.note(rewards.Question{Name: stageQuery}, float64(128-i), false)
	}
	a = w.take()[stageQuery]
	if a.Questions != 128 || a.Seconds != 128*129/2 || len(a.Latencies) != 64 || a.Latencies[0] != 2 || a.Latencies[63] != 128 {
		t.Errorf("%+v", a)
	}
	if len(w.take()) != 0 {
		t.Error("latencies are taken twice")
	}
}

// A run that was killed while it wrote leaves half a line, which must neither be read nor glued to the next.
func TestTornLatencies(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rubrics", "latency.jsonl")
	var first, second latencies
	for step := range 2 {
		if err := first.add(path, true, Latency{Step: step}); err != nil {
			t.Fatal(err)
		}
	}
	if err := appendTo(path, []byte(`{"step":2,"st`)); err != nil {
		t.Fatal(err)
	}
	if got := latencySteps(t, path); got != "[0 1]" {
		t.Errorf("torn: steps %s", got)
	}
	if err := second.add(path, false, Latency{Step: 7}); err != nil {
		t.Fatal(err)
	}
	if got := latencySteps(t, path); got != "[0 1 7]" {
		t.Errorf("after another line: steps %s", got)
	}
	if got := latencySteps(t, filepath.Join(t.TempDir(), "none")); got != "[]" {
		t.Errorf("no file: steps %s", got)
	}
}

func latencySteps(t *testing.T, path string) string {
	t.Helper()
	list, err := ReadLatencies(path)
	if err != nil {
		t.Fatal(err)
	}
	steps := []int{}
	for _, l := range list {
		steps = append(steps, l.Step)
	}
	return fmt.Sprint(steps)
}

// A resumed run goes on with the file; one that begins anew in the folder does not count what came to nothing.
func TestLatenciesOfAResumedRun(t *testing.T) {
	run, _ := scripted(nil)
	run.Dir = t.TempDir()
	checkpoint := t.TempDir()
	open := func() *Provider { return mustNew(t, run, map[string]any{"rubric": easy}) }
	steps := func(p *Provider, list ...int) string {
		for _, step := range list {
			mustStep(t, p, step, group("p", nil, "x"))
		}
		if err := p.Save(checkpoint); err != nil {
			t.Fatal(err)
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		return latencySteps(t, LatencyPath(run.Dir))
	}
	if got := steps(open(), 0, 1); got != "[0 1]" {
		t.Errorf("steps %s", got)
	}
	resumed := open()
	if err := resumed.Load(checkpoint); err != nil {
		t.Fatal(err)
	}
	if got := steps(resumed, 2); got != "[0 1 2]" {
		t.Errorf("resumed: steps %s", got)
	}
	if got := steps(open(), 0); got != "[0]" {
		t.Errorf("anew: steps %s", got)
	}
}
