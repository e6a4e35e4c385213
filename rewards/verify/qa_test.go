package verify

import (
	"fmt"
	"math"
	"testing"

	"github.com/rubicon-rl/rubicon/rewards/internal/oracle"
)

// qaRow is an answer with what the official scorers say of it.
type qaRow struct {
	Prediction, Gold string
	NormPrediction   string  `json:"hotpot_norm_pred"`
	NormGold         string  `json:"hotpot_norm_gold"`
	Equal            bool    `json:"hotpot_em"`
	HotpotF1         float64 `json:"hotpot_f1"`
	SquadEM          float64 `json:"squad2_em"`
	SquadF1          float64 `json:"squad2_f1"`
	ArcoEM           float64 `json:"arco_em"`
	ArcoF1           float64 `json:"arco_f1"`
}

func qaRows(t *testing.T) []qaRow {
	t.Helper()
	rows := oracle.Rows[qaRow](t, "qa_em_f1.jsonl")
	if len(rows) != 378 {
		t.Fatalf("%d rows", len(rows))
	}
	return rows
}

// close6: the official scorers' floats are written with all digits; ours differ in the order of a product at most.
func close6(a, b float64) bool { return math.Abs(a-b) < 1e-12 }

func TestQAIsTheOfficialScorers(t *testing.T) {
	for _, r := range qaRows(t) {
		for _, want := range []struct {
			rules  QARules
			em, f1 float64
		}{{HotpotQA, yes(r.Equal), r.HotpotF1}, {MuSiQue, r.SquadEM, r.SquadF1}, {ARCO, r.ArcoEM, r.ArcoF1}} {
			em, f1 := want.rules.Score(r.Prediction, r.Gold)
			if em != want.em || !close6(f1, want.f1) {
				t.Errorf("%s: %q against %q: %v and %v, official %v and %v", want.rules, r.Prediction, r.Gold, em, f1, want.em, want.f1)
			}
			settings := fmt.Sprintf(`{"kind": "qa", "rules": %q, "metric": "f1", "column": "gold"}`, want.rules)
			if s := value(t, one(settings), map[string]any{"gold": r.Gold}, text(r.Prediction)); !close6(s.Value, want.f1) {
				t.Errorf("%s: the check gives %v, want %v", want.rules, s.Value, want.f1)
			}
		}
	}
}

// Of several right answers the best counts, for exact match and F1 each by itself.
func TestQAAliases(t *testing.T) {
	type pair struct{ EM, F1 float64 }
	rows := oracle.Rows[struct {
		Prediction string
		Golds      []string
		TwoWiki    pair
		MuSiQueEM  float64 `json:"musique_em"`
		MuSiQueF1  float64 `json:"musique_f1"`
	}](t, "qa_alias.jsonl")
	if len(rows) != 119 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, r := range rows {
		if em, f1 := HotpotQA.Score(r.Prediction, r.Golds...); em != r.TwoWiki.EM || !close6(f1, r.TwoWiki.F1) {
			t.Errorf("2Wiki: %q against %q: %v and %v, official %+v", r.Prediction, r.Golds, em, f1, r.TwoWiki)
		}
		if em, f1 := MuSiQue.Score(r.Prediction, r.Golds...); em != r.MuSiQueEM || !close6(f1, r.MuSiQueF1) {
			t.Errorf("MuSiQue: %q against %q: %v and %v, official %v and %v", r.Prediction, r.Golds, em, f1, r.MuSiQueEM, r.MuSiQueF1)
		}
	}
}
