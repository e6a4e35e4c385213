package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rubicon-rl/rubicon/internal/llm/llmtest"
	"github.com/rubicon-rl/rubicon/rewards"
)

// scored is the form of an answer on a bad day.
type scored struct {
	Question int `json:"question"`
	Scores   []struct {
		ID    string `json:"id"`
		Score int    `json:"score"`
	} `json:"scores"`
}

// rightAnswer is the answer to question i.
func rightAnswer(i int) string {
	return fmt.Sprintf(`{"question":%d,"scores":[{"id":"a","score":%d},{"id":"b","score":%d},{"id":"c","score":%d}]}`, i, i%6, i/6%6, i/36%6)
}

func scoring(i int) rewards.Question {
	return rewards.Question{
		Tier: rewards.TierScore, System: "Score a, b and c.", User: fmt.Sprintf("question %d", i), Name: "scores", Schema: json.RawMessage(`{"type":"object"}`),
		Check: func(answer string) error {
			var v scored
			d := json.NewDecoder(strings.NewReader(answer))
			d.DisallowUnknownFields()
			if err := d.Decode(&v); err != nil {
				return err
			}
			if len(v.Scores) != 3 {
				return fmt.Errorf("%d scores, want 3", len(v.Scores))
			}
			for j, s := range v.Scores {
				if s.ID != "abc"[j:j+1] || s.Score < 0 || s.Score > 5 {
					return fmt.Errorf("score %d: %v", j, s)
				}
			}
			return nil
		},
	}
}

// doomed tells the questions that fail whatever is tried.
func doomed(i int) bool { return i%50 == 7 }

// plan is what happens to question i when it arrives for the nth time.
func plan(i, n int) llmtest.Fault {
	var all, onTheWay []llmtest.Fault
	for _, f := range llmtest.All() {
		if f != llmtest.Reasoning || !doomed(i) {
			all = append(all, f)
		}
		if f != llmtest.Reasoning && !f.OfContent() {
			onTheWay = append(onTheWay, f)
		}
	}
	r := rand.New(rand.NewPCG(uint64(i), uint64(n)))
	switch {
	case doomed(i):
		return all[i/50%len(all)]
	case n == 0 && r.IntN(2) == 0:
		return all[r.IntN(len(all))]
	case n == 1 && r.IntN(3) == 0: // a second fault in the content would use up the one repair
		return onTheWay[r.IntN(len(onTheWay))]
	}
	return llmtest.None
}

// badDay answers by plan, and watches that nobody asks again after a good answer.
type badDay struct {
	t       testing.TB
	mu      sync.Mutex
	arrived []int
	good    []bool
}

func (d *badDay) answer(r *llmtest.Request) llmtest.Response {
	if r.Last() == probeText { // the server is there, only some questions are too much for it
		return llmtest.Response{Content: "yes"}
	}
	var i int
	if _, err := fmt.Sscanf(r.Messages[1].Content, "question %d", &i); err != nil {
		d.t.Errorf("asked %q", r.Messages[1].Content)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.good[i] {
		d.t.Errorf("question %d was asked again after a good answer", i)
	}
	f := plan(i, d.arrived[i])
	d.arrived[i]++
	d.good[i] = f == llmtest.None || f == llmtest.Reasoning
	return llmtest.Response{Content: rightAnswer(i), Fault: f}
}

// inWork is a Transport that knows how many calls it carries.
type inWork struct {
	Transport
	now, peak atomic.Int64
}

func (w *inWork) Complete(ctx context.Context, c *Call) (*Reply, error) {
	n := w.now.Add(1)
	defer w.now.Add(-1)
	for old := w.peak.Load(); n > old && !w.peak.CompareAndSwap(old, n); old = w.peak.Load() {
	}
	return w.Transport.Complete(ctx, c)
}

// heap is what is in use after a collection.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// On a bad day every question ends answered or unanswered, as its own faults decide; none is lost, answered twice or mixed
// up with another, no more than 64 are in work, and memory stays flat.
func TestFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		day := &badDay{t: t, arrived: make([]int, faultQuestions), good: make([]bool, faultQuestions)}
		s := llmtest.StartInMemory(t, llmtest.Config{Answer: day.answer, Slow: time.Minute})
		way := &inWork{Transport: open(t, OpenAIOptions{URL: s.URL, RoundTripper: s.RoundTripper})}
		o := DefaultOptions()
		o.Transport, o.Model, o.MaxConcurrency, o.Timeout = way, "m", 64, 10*time.Second
		o.MaxElapsed, o.MaxOutage = 24*time.Hour, 24*time.Hour
		o.Cache, o.Record = t.TempDir(), filepath.Join(t.TempDir(), "judge.jsonl")
		c := client(t, o)

		answers, errs := make([]string, faultQuestions), make([]error, faultQuestions)
		var ended, most atomic.Int64
		before := heap()
		var group errgroup.Group
		group.SetLimit(200) // more than may be in work
		for i := range faultQuestions {
			group.Go(func() error {
				answers[i], errs[i] = c.Ask(t.Context(), scoring(i))
				if ended.Add(1)%250 == 0 {
					most.Store(max(most.Load(), int64(heap())-int64(before)))
				}
				return nil
			})
		}
		_ = group.Wait()
		checkEnds(t, answers, errs)
		checkRecord(t, o.Record)
		if peak := way.peak.Load(); peak > 64 || peak < 32 { // some of 64 pause
			t.Errorf("%d requests at once, want about 64", peak)
		}
		if most.Load() > 64<<20 { // each huge reply has 20 MB
			t.Errorf("%d bytes more in use", most.Load())
		}
		m := c.Metrics()
		if m["judge/calls"] != float64(s.Requests()) || m["judge/unanswered"] != faultQuestions/50 || m["judge/repairs"] == 0 || m["judge/retries"] == 0 {
			t.Errorf("%d requests, metrics %v", s.Requests(), m)
		}
	})
}

func checkEnds(t *testing.T, answers []string, errs []error) {
	t.Helper()
	for i := range answers {
		var got, want any
		switch {
		case doomed(i):
			if !errors.Is(errs[i], rewards.ErrNoAnswer) || answers[i] != "" {
				t.Errorf("doomed question %d: %q, %v", i, answers[i], errs[i])
			}
		case errs[i] != nil:
			t.Errorf("question %d: %v", i, errs[i])
		case json.Unmarshal([]byte(answers[i]), &got) != nil || json.Unmarshal([]byte(rightAnswer(i)), &want) != nil || fmt.Sprint(got) != fmt.Sprint(want):
			t.Errorf("question %d: %q, want %q", i, answers[i], rightAnswer(i))
		}
	}
}

// checkRecord looks for every question in the record, once.
func checkRecord(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for line := range bytes.Lines(text) {
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		seen[e.User]++
		if (e.Error != "") != (e.Answer == "") {
			t.Errorf("recorded %s", line)
		}
	}
	for i := range faultQuestions {
		if n := seen[scoring(i).User]; n != 1 {
			t.Errorf("question %d was recorded %d times", i, n)
		}
	}
}

// A server that repeats what it was sent must not get the key into an error, an answer, the cache or the record.
func TestKeyIsNowhere(t *testing.T) {
	dir := t.TempDir()
	s := llmtest.Start(t, llmtest.Config{Key: secret, Answer: func(r *llmtest.Request) llmtest.Response {
		return llmtest.Response{Content: "You are " + r.Header.Get("Authorization")}
	}})
	o := options(nil)
	o.Transport, o.URL, o.Model = nil, s.URL, "m"
	o.Cache, o.Record, o.SpentFile = filepath.Join(dir, "cache"), filepath.Join(dir, "judge.jsonl"), filepath.Join(dir, "spent.json")
	o.APIKey = secret
	answer, err := client(t, o).Ask(t.Context(), different(0))
	if err != nil || answer != "You are Bearer [API key]" {
		t.Errorf("%q, %v", answer, err)
	}
	o.APIKey = secret + "x"
	refused := client(t, o)
	_, err = refused.Ask(t.Context(), different(1))
	for _, err := range []error{err, refused.Preflight(t.Context())} {
		if err == nil || strings.Contains(err.Error(), secret) || !strings.Contains(err.Error(), "[API key]") {
			t.Errorf("got %v", err)
		}
	}
	files := 0
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte(secret)) {
			t.Errorf("%s holds the key", path)
		}
		return err
	})
	if err != nil || files != 3 {
		t.Errorf("%d files, %v", files, err)
	}
}
