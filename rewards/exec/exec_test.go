package exec

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/rewards/rewardtest"
)

// texts makes one group for each list of completions.
func texts(lists ...[]string) []grpo.Group {
	var groups []grpo.Group
	for i, list := range lists {
		g := grpo.Group{Prompt: &grpo.Prompt{ID: fmt.Sprintf("p%d", i), Text: "say"}}
		for _, s := range list {
			g.Completions = append(g.Completions, &grpo.Completion{Text: s})
		}
		groups = append(groups, g)
	}
	return groups
}

func values(scores []rewards.Score) []float64 {
	var v []float64
	for _, s := range scores {
		v = append(v, s.Value)
	}
	return v
}

// scored scores one group or ends the test.
func scored(t testing.TB, p rewards.Provider, completions ...string) []rewards.Score {
	t.Helper()
	scores, err := p.Score(t.Context(), 0, texts(completions))
	if err != nil {
		t.Fatal(err)
	}
	return scores
}

func TestConformance(t *testing.T) {
	rewardtest.Run(t, rewardtest.Suite{
		New: func(t testing.TB) rewards.Provider {
			return open(t, "score", map[string]any{"workers": 2, "batch_size": 2})
		},
		Groups: func() []grpo.Group {
			return texts([]string{"a", "bb", "ccc"}, []string{"", "dd"}, []string{"eeeee", "f"})
		},
		Unscorable: []int{3},
		Hanging: func(t testing.TB) (rewards.Provider, <-chan struct{}) {
			seen, waits := watch(t), make(chan struct{}, 1)
			go func() {
				<-seen
				waits <- struct{}{}
			}()
			return hanging{open(t, "score", nil)}, waits
		},
		Fault: &rewardtest.Fault{
			Provider: open(t, "score", map[string]any{"batch_size": 2}), Groups: texts([]string{"a", "b"}, []string{"c", "?"}), Prompt: "p1", Completion: 1,
		},
	})
}

// hanging has its command hang whatever it is to score.
type hanging struct{ *Provider }

func (h hanging) Score(ctx context.Context, step int, _ []grpo.Group) ([]rewards.Score, error) {
	return h.Provider.Score(ctx, step, texts([]string{"hang"}))
}

func TestTheCommandIsStartedOnce(t *testing.T) {
	p := open(t, "score", nil)
	first := scored(t, p, "pid")[0].Reason
	if second := scored(t, p, "pid")[0].Reason; second != first {
		t.Errorf("process %s scores the first step and %s the second", first, second)
	}
}

func TestWorkersScoreAtTheSameTime(t *testing.T) {
	seen := watch(t)
	p := open(t, "score", map[string]any{"workers": 3, "batch_size": 1})
	met := make(chan error, 1)
	go func() { // nobody goes on before all three are there
		var all []net.Conn
		for range 3 {
			select {
			case c := <-seen:
				all = append(all, c)
			case <-time.After(20 * time.Second):
				met <- fmt.Errorf("only %d of 3 workers have something to do", len(all))
				return
			}
		}
		for _, c := range slices.Backward(all) {
			c.Write([]byte{1})
		}
		met <- nil
	}()
	scores, err := p.Score(t.Context(), 0, texts([]string{"meet"}, []string{"meet 1"}, []string{"meet 22"}))
	if err := errors.Join(err, <-met); err != nil || !slices.Equal(values(scores), []float64{4, 6, 7}) {
		t.Errorf("%v %v", values(scores), err)
	}
}

func TestACrashedCommandIsAskedAgain(t *testing.T) {
	p := open(t, "score", nil)
	if got := values(scored(t, p, "a", "once", "b")); !slices.Equal(got, []float64{1, 4, 1}) {
		t.Errorf("%v", got)
	}
}

func TestABatchThatFailsIsUnscorable(t *testing.T) {
	for text, want := range map[string]string{
		"crash":   "the command ended (exit status 3) without an answer; it last wrote to standard error: panic: out of luck",
		"partial": "the command ended (exit status 5) without an answer",
	} {
		p := open(t, "score", map[string]any{"batch_size": 2, "restart": 1})
		scores, err := p.Score(t.Context(), 0, texts([]string{"a", text}, []string{"bb"}))
		if err != nil || !scores[0].Unscorable || !scores[1].Unscorable || scores[2].Value != 2 {
			t.Fatalf("%s: %+v %v", text, scores, err)
		}
		if scores[0].Reason != want {
			t.Errorf("%s: reason %q, want %q", text, scores[0].Reason, want)
		}
	}
}

func TestALateCommandIsReplaced(t *testing.T) {
	seen := watch(t)
	p := open(t, "score", map[string]any{"restart": 1, "timeout": 0.5})
	if s := scored(t, p, "hang")[0]; !s.Unscorable || s.Reason != "the command gave no answer within 500ms (timeout)" {
		t.Errorf("%+v", s)
	}
	for { // each of those that came so far as to hang
		select {
		case c := <-seen:
			gone(t, c)
		default:
			return
		}
	}
}

func TestWrongOutputEndsTheRun(t *testing.T) {
	for text, want := range map[string]string{
		"garbage": `the reply is not {"results": [...]}: not a JSON object: "Traceback (most recent call last):"`,
		"huge":    "wrote a line of more than 1 MiB",
		"?":       `the result has the id "?", want "0/0"`,
	} {
		p := open(t, "score", map[string]any{"max_line_mb": 1})
		_, err := p.Score(t.Context(), 0, texts([]string{text}))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `prompt "p0", completion 0`) || !strings.HasPrefix(err.Error(), "exec: ") {
			t.Errorf("%s: error %v, want %q and the place in it", text, err, want)
		}
		// What the process says later belongs to nothing: the next step has a new one.
		if got := values(scored(t, p, "abc")); !slices.Equal(got, []float64{3}) {
			t.Errorf("after %s: %v", text, got)
		}
	}
}

func TestACommandThatDoesNotReadIsNotWaitedFor(t *testing.T) {
	p := open(t, "deaf", map[string]any{"timeout": 0.3, "restart": 0})
	scores := scored(t, p, strings.Repeat("more than a pipe holds ", 20000))
	if !scores[0].Unscorable || !strings.Contains(scores[0].Reason, "timeout") {
		t.Errorf("%+v", scores)
	}
}

func TestCancellationKillsTheCommand(t *testing.T) {
	seen := watch(t)
	p := open(t, "score", nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	returned := make(chan error, 1)
	go func() {
		_, err := p.Score(ctx, 0, texts([]string{"family", "hang"}))
		returned <- err
	}()
	child, relative := next(t, seen), next(t, seen)
	cancel()
	began := time.Now()
	if err := <-returned; !errors.Is(err, context.Canceled) || time.Since(began) > 5*time.Second {
		t.Errorf("error %v after %v", err, time.Since(began))
	}
	gone(t, child)
	gone(t, relative)
	if got := values(scored(t, p, "abc")); !slices.Equal(got, []float64{3}) {
		t.Errorf("afterwards: %v", got)
	}
}

func TestWhatACommandLeavesBehindIsKilled(t *testing.T) {
	seen := watch(t)
	p := open(t, "score", map[string]any{"restart": 0})
	var all []net.Conn
	met := make(chan struct{})
	go func() { // the command ends only after its relative is there
		defer close(met)
		for range 2 {
			all = append(all, <-seen)
		}
		for _, c := range all {
			c.Write([]byte{1})
		}
	}()
	if s := scored(t, p, "family", "meet", "crash"); !s[0].Unscorable {
		t.Errorf("%+v", s)
	}
	<-met
	for _, c := range all {
		gone(t, c)
	}
}

func TestWaitingForABusyCommandCanBeCancelled(t *testing.T) {
	p := open(t, "score", nil)
	w := <-p.idle // as if another call had it
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := p.Score(ctx, 0, texts([]string{"a"})); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	p.idle <- w
}

func TestCloseLeavesNothing(t *testing.T) {
	seen := watch(t)
	p := open(t, "stubborn", map[string]any{"workers": 2, "batch_size": 1})
	p.grace = 300 * time.Millisecond
	if _, err := p.Score(t.Context(), 0, texts([]string{"family"}, []string{"family"})); err != nil {
		t.Fatal(err)
	}
	relatives := []net.Conn{next(t, seen), next(t, seen)}
	began := time.Now()
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	// Close returns when the commands are no more; these do not end by themselves.
	if took := time.Since(began); took < p.grace || took > 5*time.Second {
		t.Errorf("closing took %v, want the time to end by itself and not much more", took)
	}
	for _, c := range relatives {
		gone(t, c)
	}
}
