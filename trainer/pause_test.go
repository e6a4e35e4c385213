package trainer

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/rewards"
)

// mortal is a reward whose judge is dead at a step: either Score fails, or nothing can be scored.
type mortal struct {
	parityReward
	dead  int // the step; -1: it lives
	fails bool
	calls int
}

const never = 99

var errDead = errors.New("the judge is gone")

func (m *mortal) Score(ctx context.Context, step int, groups []grpo.Group) ([]rewards.Score, error) {
	out, err := m.parityReward.Score(ctx, step, groups)
	if step != m.dead {
		return out, err
	}
	m.calls++
	if m.fails {
		return nil, errDead
	}
	for i := range out {
		out[i] = rewards.Unscorable(errDead.Error())
	}
	return out, nil
}

// A run whose judge dies in the middle of a step, when half of the step's gradient is there already, pauses with a
// checkpoint of its finished steps, also before the first one, and resumes to the end of an undisturbed run.
func TestPausedRunEndsAsTheUndisturbedOne(t *testing.T) {
	run := func(dir, resume string, r rewards.Provider) error {
		tr := grpoRun(t, parts(t, "num_generations=2", "per_device_train_batch_size=2", "gradient_accumulation_steps=2", "steps_per_generation=1",
			"max_steps=3", "track.logging_steps=2", "checkpoint.save_steps=0", "grpo.dynamic_sampling=true", "checkpoint.resume="+resume, "output_dir="+dir), r)
		defer tr.Close()
		return tr.Run(t.Context())
	}
	read := func(dir, name string) string {
		b, err := os.ReadFile(filepath.Join(dir, name))
		check(t, err)
		return regexp.MustCompile(`,"perf/(max_memory_allocated|disk_free)_gb":[^,}]*`).ReplaceAllString(string(b), "")
	}
	whole := t.TempDir()
	check(t, run(whole, "", &mortal{dead: never}))
	for name, r := range map[string]*mortal{
		"score fails": {dead: 1, fails: true}, "nothing scored": {dead: 2}, "the first step": {dead: 0},
	} {
		dir := t.TempDir()
		if err := run(dir, "", r); !errors.Is(err, ErrPaused) || !strings.Contains(err.Error(), errDead.Error()) {
			t.Fatalf("%s: %v, want ErrPaused and the reason", name, err)
		}
		if want := map[bool]int{true: 1, false: 2}[r.fails]; r.calls != want {
			t.Errorf("%s: scored %d times, want %d: what is unscorable is tried once more", name, r.calls, want)
		}
		check(t, run(dir, "newest", &mortal{dead: never}))
		for _, file := range []string{"metrics.jsonl", "completions/step_2.jsonl", "completions/step_3.jsonl", "checkpoints/step-3/adapter_model.safetensors"} {
			if read(dir, file) != read(whole, file) {
				t.Errorf("%s: %s differs from the undisturbed run's", name, file)
			}
		}
	}
}

// Half of a generation is in the middle of the two gradients of a step: the first refill of the step worked.
func TestPauseInTheMiddleOfAStep(t *testing.T) {
	run := func(dir, resume string, dead int) error {
		r := &second{mortal: mortal{dead: dead, fails: true}}
		tr := grpoRun(t, parts(t, "num_generations=2", "per_device_train_batch_size=2", "gradient_accumulation_steps=4", "steps_per_generation=2",
			"max_steps=2", "checkpoint.save_steps=0", "checkpoint.resume="+resume, "output_dir="+dir), r)
		defer tr.Close()
		return tr.Run(t.Context())
	}
	whole, dir := t.TempDir(), t.TempDir()
	check(t, run(whole, "", never))
	if err := run(dir, "", 1); !errors.Is(err, ErrPaused) {
		t.Fatalf("%v, want ErrPaused", err)
	}
	check(t, run(dir, "newest", never))
	for _, file := range []string{"completions/step_2.jsonl", "checkpoints/step-2/adapter_model.safetensors"} {
		a, err := os.ReadFile(filepath.Join(whole, file))
		check(t, err)
		b, err := os.ReadFile(filepath.Join(dir, file))
		check(t, err)
		if string(a) != string(b) {
			t.Errorf("%s differs from the undisturbed run's", file)
		}
	}
}

// second fails at the second call of its step.
type second struct {
	mortal
	asked int
}

func (s *second) Score(ctx context.Context, step int, groups []grpo.Group) ([]rewards.Score, error) {
	if step == s.dead {
		s.asked++
	}
	if s.asked == 2 {
		return s.mortal.Score(ctx, step, groups)
	}
	return s.parityReward.Score(ctx, step, groups)
}

// hanging is a reward whose judge hangs until it is given up.
type hanging struct{ parityReward }

func (h *hanging) Score(ctx context.Context, step int, groups []grpo.Group) ([]rewards.Score, error) {
	if step == 1 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return h.parityReward.Score(ctx, step, groups)
}

// A run that is asked to stop while its judge hangs stops with a checkpoint of its finished steps.
func TestInterruptWhileTheJudgeHangs(t *testing.T) {
	dir := t.TempDir()
	stop := make(chan struct{})
	p := parts(t, "num_generations=2", "per_device_train_batch_size=2", "max_steps=3", "checkpoint.save_steps=0", "output_dir="+dir)
	tr := grpoRun(t, p, &hanging{})
	tr.patience = time.Millisecond
	tr.Stop = stop
	time.AfterFunc(50*time.Millisecond, func() { close(stop) })
	if err := tr.Run(t.Context()); !errors.Is(err, ErrInterrupted) {
		t.Fatalf("%v, want ErrInterrupted", err)
	}
	if err := checkFolder(stepFolder(tr.dir.saved, tr.state.Step)); err != nil || tr.state.Step > 1 {
		t.Errorf("after %d steps: %v", tr.state.Step, err)
	}
}

// A judge may be the model that is trained, and work in the background: the model is the run's alone but for the moments in
// which rewards are asked.
func TestModelIsFreeWhileRewardsAreAsked(t *testing.T) {
	var lock sync.Mutex
	r := &borrower{lock: &lock}
	p := parts(t, "num_generations=2", "per_device_train_batch_size=2", "max_steps=2", "eval.eval_on_start=true", "eval.files=[x.jsonl]", "output_dir="+t.TempDir())
	p.Lock = &lock
	p.Now = func() time.Time {
		if lock.TryLock() {
			r.free++ // the run looks at the clock around everything that it does with the model
			lock.Unlock()
		}
		return time.Unix(0, 0)
	}
	tr := grpoRun(t, p, r)
	r.free = 0
	check(t, tr.Run(t.Context()))
	if r.asked < 4 || r.free > 0 {
		t.Errorf("the model could be had in %d scorings and learnings, want at least 4; and %d times while the run had it", r.asked, r.free)
	}
	if !lock.TryLock() {
		t.Fatal("the run is over and still has the model")
	}
	lock.Unlock()
	var last taken // a reward may be at work until it is closed, which is later
	tr.Lock = &last
	check(t, tr.Close())
	if last.n != 1 {
		t.Errorf("the model was taken %d times to give back the optimiser's memory, want once", last.n)
	}
	tr.Lock = nil
}

// taken counts how often it was locked.
type taken struct {
	sync.Mutex
	n int
}

func (c *taken) Lock() {
	c.Mutex.Lock()
	c.n++
}

// borrower takes the model whenever it is asked.
type borrower struct {
	parityReward
	lock        *sync.Mutex
	asked, free int
}

func (b *borrower) Score(ctx context.Context, step int, groups []grpo.Group) ([]rewards.Score, error) {
	b.borrow()
	return b.parityReward.Score(ctx, step, groups)
}

func (b *borrower) Learn(ctx context.Context, step int, groups []grpo.Group) error {
	b.borrow()
	return b.parityReward.Learn(ctx, step, groups)
}

func (b *borrower) borrow() {
	if b.lock.TryLock() {
		b.asked++
		b.lock.Unlock()
	}
}
