package arco

import (
	"encoding/json"
	"math"
	"slices"
	"testing"

	"github.com/rubicon-rl/rubicon/rewards/internal/oracle"
)

// oracleRow is an input and the output of ARCO's own functions (testdata/SOURCE.md).
type oracleRow struct {
	K             int
	Reward        float64
	Input, Output [][]float64
	Text          string
	Steps         int `json:"n_steps"`
	Out           json.RawMessage
}

// rowsOf are want rows of a function.
func rowsOf(t *testing.T, name string, want int) []oracleRow {
	t.Helper()
	rows := oracle.Rows[oracleRow](t, "arco_"+name+".jsonl")
	if len(rows) != want {
		t.Fatalf("%d rows of %s", len(rows), name)
	}
	return rows
}

// near compares scores; bisection ends within 1e-12 here and there.
func near(a, b []float64) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool { return math.Abs(x-y) < 1e-9 })
}

func TestProjectionIsARCOs(t *testing.T) {
	for i, r := range rowsOf(t, "projection", 150) {
		got := Project(r.Input, r.K, r.Reward)
		if !slices.EqualFunc(got, r.Output, near) {
			t.Errorf("row %d: %v onto %v is %v, official %v", i, r.Input, r.Reward, got, r.Output)
		}
	}
}

// What the projection is for, by hand: the sum is met, nothing leaves [-1,1], and what need not move does not.
func TestProjectionMeetsTheReward(t *testing.T) {
	for _, c := range []struct {
		scores [][]float64
		reward float64
		want   [][]float64
	}{
		{[][]float64{{0.5, 0.5}, {0.5, 0.5}}, 1, [][]float64{{0.5, 0.5}, {0.5, 0.5}}},
		{[][]float64{{0.2, 0.4}, {0.6, 0.8}}, 0, [][]float64{{-0.3, -0.1}, {0.1, 0.3}}},
		{[][]float64{{1, 1}, {0, 0}}, 2, [][]float64{{1, 1}, {1, 1}}},
		{[][]float64{{0, 0}}, 7, [][]float64{{1, 1}}},
	} {
		if got := Project(c.scores, 2, c.reward); !slices.EqualFunc(got, c.want, near) {
			t.Errorf("%v onto %v is %v, want %v", c.scores, c.reward, got, c.want)
		}
	}
}

func TestRubricsAreReadAsARCOs(t *testing.T) {
	for _, r := range rowsOf(t, "parse_rubric", 22) {
		var want struct {
			Criteria []string
			Error    bool `json:"parse_error"`
		}
		if err := json.Unmarshal(r.Out, &want); err != nil {
			t.Fatal(err)
		}
		if got, ok := ParseRubric(r.Text, r.K); !slices.Equal(got, want.Criteria) || ok == want.Error {
			t.Errorf("%q: %q, ok %v, official %q, error %v", r.Text, got, ok, want.Criteria, want.Error)
		}
	}
}

func TestAnnotationsAreReadAsARCOs(t *testing.T) {
	for _, r := range rowsOf(t, "parse_trajectory", 20) {
		var want []struct {
			Criteria []string
			Scores   []float64
			Error    bool `json:"parse_error"`
		}
		if err := json.Unmarshal(r.Out, &want); err != nil {
			t.Fatal(err)
		}
		got, ok := ParseTrajectory(r.Text, r.Steps, 3, r.Reward)
		for i, w := range want {
			if !slices.Equal(got[i].Criteria, w.Criteria) || !near(got[i].Scores, w.Scores) || ok == w.Error {
				t.Errorf("%q, %d steps, reward %v: step %d is %+v, ok %v, official %+v", r.Text, r.Steps, r.Reward, i, got[i], ok, w)
			}
		}
	}
}
