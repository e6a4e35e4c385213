package mix

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/rewards/rewardtest"
)

// byText returns fixed scores for texts.
type byText map[string]rewards.Score

func (b byText) Score(ctx context.Context, _ int, groups []grpo.Group) ([]rewards.Score, error) {
	var out []rewards.Score
	for _, g := range groups {
		for i, c := range g.Completions {
			s, ok := b[c.Text]
			if !ok {
				return nil, &rewards.Error{Prompt: g.Prompt.ID, Completion: i, Err: errors.New("no score")}
			}
			out = append(out, s)
		}
	}
	return out, ctx.Err()
}

// drifting values every completion at Level, which Learn raises by the groups' mean reward; it has a state and metrics.
type drifting struct{ Level float64 }

func (d *drifting) Score(ctx context.Context, _ int, groups []grpo.Group) ([]rewards.Score, error) {
	var out []rewards.Score
	for _, g := range groups {
		for range g.Completions {
			out = append(out, rewards.Score{Value: d.Level})
		}
	}
	return out, ctx.Err()
}

func (d *drifting) Learn(_ context.Context, _ int, groups []grpo.Group) error {
	d.Level += groups[0].Completions[0].Reward / 3
	return nil
}

func (d *drifting) Save(dir string) error {
	data, err := json.Marshal(d)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "level.json"), data, 0o644)
}

func (d *drifting) Load(dir string) error {
	data, err := os.ReadFile(filepath.Join(dir, "level.json"))
	if err != nil {
		return err
	}
	return json.Unmarshal(data, d)
}

func (d *drifting) Metrics() map[string]float64 { return map[string]float64{"level": d.Level} }

func texts(id string, texts ...string) grpo.Group {
	g := grpo.Group{Prompt: &grpo.Prompt{ID: id}}
	for _, s := range texts {
		g.Completions = append(g.Completions, &grpo.Completion{Text: s})
	}
	return g
}

func mixed(t testing.TB, parts ...Part) *Provider {
	t.Helper()
	m, err := New(parts...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestSumAndColumns(t *testing.T) {
	length := byText{
		"x": {Value: 0.5, Parts: []rewards.Part{{Name: "short", Weight: 1, Credit: 0.5, Local: true}}, Turns: []float64{1, 2}},
		"y": rewards.NotMeant("too long"),
		"z": rewards.NotMeant("too long"),
		"w": {Value: 1},
		"v": rewards.NotMeant("too long"),
	}
	judge := byText{"x": {Value: 0.25, Reason: "dull", Turns: []float64{4, 8}}, "y": {Value: 1}, "z": rewards.Unscorable("no verdict"),
		"w": rewards.Unscorable("no verdict"), "v": rewards.NotMeant("another task")}
	m := mixed(t, Part{"length", 2, length}, Part{"judge", -1, judge})
	got, err := m.Score(t.Context(), 0, []grpo.Group{texts("p", "x", "y"), texts("q", "z", "w", "v")})
	if err != nil {
		t.Fatal(err)
	}
	want := rewards.Score{
		Value: 0.75, Reason: "judge: dull", // 2*0.5 - 0.25
		Parts:   []rewards.Part{{Name: "length/short", Weight: 1, Credit: 0.5, Local: true}},
		Columns: []rewards.Column{{Name: "length", Weight: 2, Value: 0.5}, {Name: "judge", Weight: -1, Value: 0.25}},
		Turns:   []float64{-2, -4},
	}
	if !reflect.DeepEqual(got[0], want) {
		t.Errorf("x: %+v, want %+v", got[0], want)
	}
	if y := got[1]; y.Unscorable || y.Value != -1 || !math.IsNaN(y.Columns[0].Value) || y.Columns[1].Value != 1 || y.Reason != "length: too long" {
		t.Errorf("y: one part scores: %+v", y)
	}
	if z := got[2]; !z.Unscorable || !math.IsNaN(z.Value) || z.Reason != "length: too long; judge: no verdict" {
		t.Errorf("z: no part scores: %+v", z)
	}
	if w := got[3]; !w.Unscorable || w.NotMeant || !math.IsNaN(w.Columns[0].Value) || !math.IsNaN(w.Columns[1].Value) {
		t.Errorf("w: a part failed, so the sum of the others is no judgement: %+v", w)
	}
	if v := got[4]; !v.Unscorable || !v.NotMeant {
		t.Errorf("v: no part is meant: %+v", v)
	}
}

func TestAMixInAMixKeepsItsColumns(t *testing.T) {
	inner := mixed(t, Part{"a", 2, byText{"x": {Value: 1}}}, Part{"b", 3, byText{"x": {Value: 0.5}}})
	got, err := mixed(t, Part{"in", 2, inner}).Score(t.Context(), 0, []grpo.Group{texts("p", "x")})
	want := []rewards.Column{{Name: "in/a", Weight: 4, Value: 1}, {Name: "in/b", Weight: 6, Value: 0.5}}
	if err != nil || got[0].Value != 7 || !reflect.DeepEqual(got[0].Columns, want) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestErrors(t *testing.T) {
	for want, parts := range map[string][]Part{
		"has no parts":            nil,
		`"" is no name`:           {{"", 1, byText{}}},
		`"a/b" is no name`:        {{"a/b", 1, byText{}}},
		`".." is no name`:         {{"..", 1, byText{}}},
		"two parts are called A":  {{"a", 1, byText{}}, {"A", 1, byText{}}},
		"the weight of a is +Inf": {{"a", math.Inf(1), byText{}}},
	} {
		if _, err := New(parts...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q in it", err, want)
		}
	}
	uneven := mixed(t, Part{"a", 1, byText{"x": {Turns: []float64{1}}}}, Part{"b", 1, byText{"x": {Turns: []float64{1, 2}}}})
	if _, err := uneven.Score(t.Context(), 0, []grpo.Group{texts("p", "x")}); err == nil || !strings.Contains(err.Error(), "reward b: values 2 turns") {
		t.Errorf("error %v", err)
	}
	short := mixed(t, Part{"a", 1, tooFew{}})
	if _, err := short.Score(t.Context(), 0, []grpo.Group{texts("p", "x")}); err == nil || !strings.Contains(err.Error(), "reward a: returned 0 scores for 1 completions") {
		t.Errorf("error %v", err)
	}
}

type tooFew struct{}

func (tooFew) Score(context.Context, int, []grpo.Group) ([]rewards.Score, error) { return nil, nil }

type picky struct{ byText }

func (picky) Check(row *grpo.Prompt) error { return errors.New("no column gold in " + row.ID) }

func TestCheckAsksThePartsThatCan(t *testing.T) {
	m := mixed(t, Part{"fixed", 1, byText{}}, Part{"picky", 1, picky{}})
	if err := m.Check(&grpo.Prompt{ID: "p"}); err == nil || err.Error() != "reward picky: no column gold in p" {
		t.Errorf("error %v", err)
	}
	if err := mixed(t, Part{"fixed", 1, byText{}}).Check(&grpo.Prompt{ID: "p"}); err != nil {
		t.Error(err)
	}
}

// outside is a part that depends on something outside the run.
type outside struct {
	byText
	tried, closed *[]string
	name          string
	err           error
}

func (o outside) Preflight(ctx context.Context) error {
	*o.tried = append(*o.tried, o.name)
	return errors.Join(o.err, ctx.Err())
}

func (o outside) Close() error {
	*o.closed = append(*o.closed, o.name)
	return o.err
}

func TestPartsAreTriedAndClosed(t *testing.T) {
	var tried, closed []string
	part := func(name string, err error) Part { return Part{name, 1, outside{byText{}, &tried, &closed, name, err}} }
	m := mixed(t, part("a", nil), Part{"fixed", 1, byText{}}, Part{"in", 1, mixed(t, part("b", nil))})
	if err := errors.Join(m.Preflight(t.Context()), m.Close()); err != nil {
		t.Error(err)
	}
	if want := []string{"a", "b"}; !slices.Equal(tried, want) || !slices.Equal(closed, want) {
		t.Errorf("tried %v and closed %v, want both %v", tried, closed, want)
	}
	down := mixed(t, part("c", errors.New("down")), part("d", errors.New("stuck")))
	if err := down.Preflight(t.Context()); err == nil || err.Error() != "reward c: down" {
		t.Errorf("error %v, want that of c", err)
	}
	// One that cannot be closed must not keep the next from it.
	if err := down.Close(); err == nil || err.Error() != "reward c: down\nreward d: stuck" {
		t.Errorf("error %v, want those of c and d", err)
	}
}

func TestStateAndMetricsAreThePartsOwn(t *testing.T) {
	a, b := &drifting{1}, &drifting{2}
	m := mixed(t, Part{"a", 1, a}, Part{"fixed", 1, byText{}}, Part{"b", 1, b})
	g := texts("p", "x")
	g.Completions[0].Reward = 3
	if err := m.Learn(t.Context(), 0, []grpo.Group{g}); err != nil {
		t.Fatal(err)
	}
	if got, want := m.Metrics(), map[string]float64{"a/level": 2, "b/level": 3}; !maps.Equal(got, want) {
		t.Errorf("metrics %v, want %v", got, want)
	}
	dir := t.TempDir()
	if err := m.Save(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "b", "level.json")); err != nil {
		t.Error(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "b")); err != nil {
		t.Fatal(err)
	}
	if err := m.Load(dir); err == nil || !strings.Contains(err.Error(), "reward b: ") {
		t.Errorf("error %v, want that of part b", err)
	}
}

func TestConformance(t *testing.T) {
	scores := byText{"x": {Value: 1}, "y": rewards.Unscorable("why"), "z": {Value: 0.5}}
	groups := func() []grpo.Group { return []grpo.Group{texts("p", "x", "y"), texts("q", "z", "x")} }
	rewardtest.Run(t, rewardtest.Suite{
		New: func(t testing.TB) rewards.Provider {
			return mixed(t, Part{"fixed", 1, scores}, Part{"drift", 0.5, &drifting{1}})
		},
		Groups:     groups,
		Unscorable: []int{1}, // one part fails
		Fault: &rewardtest.Fault{
			Provider: mixed(t, Part{"fixed", 1, scores}), Groups: []grpo.Group{texts("p", "x", "w")}, Prompt: "p", Completion: 1,
		},
	})
	rewardtest.Run(t, rewardtest.Suite{
		New:        func(t testing.TB) rewards.Provider { return mixed(t, Part{"fixed", 1, scores}) },
		Groups:     groups,
		Unscorable: []int{1},
	})
}
