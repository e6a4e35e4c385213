package eval

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/rewards/verify"
)

// rows decodes the lines of an oracle's file.
func rows[T any](t *testing.T, path string) []T {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out []T
	for line := range strings.Lines(string(raw)) {
		var row T
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		out = append(out, row)
	}
	return out
}

// oracle is a file of the folder that RUBICON_TEST_ORACLES names, or of testdata; "": it is in neither.
func oracle(name string) string {
	for _, folder := range []string{os.Getenv("RUBICON_TEST_ORACLES"), "testdata"} {
		path := filepath.Join(folder, name)
		if _, err := os.Stat(path); err == nil && folder != "" {
			return path
		}
	}
	return ""
}

// What the official code of Creative Writing v3 made of judges' words (testdata/SOURCE.md).
func TestCreativeWritingScoresAreTheOfficialOnes(t *testing.T) {
	for i, row := range rows[struct {
		Said   string             `json:"judge_text"`
		Scores map[string]float64 `json:"scores"`
		Piece  float64            `json:"piece_score_0_20"`
	}](t, oracle("cw_v3_scoring.jsonl")) {
		scores := pieceScores(row.Said)
		if len(scores) != len(row.Scores) {
			t.Errorf("row %d: %v, want %v", i+1, scores, row.Scores)
		}
		for name, want := range row.Scores {
			if got, ok := scores[name]; !ok || got != want {
				t.Errorf("row %d: %s is %v, want %v", i+1, name, got, want)
			}
		}
		if got, _ := pieceScore(scores); math.Abs(got-row.Piece) > 1e-9 {
			t.Errorf("row %d: score %v, want %v", i+1, got, row.Piece)
		}
	}
}

// The choices' orders of simple-evals, as Python's random.Random(0) gives them.
func TestPermutationsArePythons(t *testing.T) {
	raw, err := os.ReadFile(oracle("gpqa_permutations.json"))
	if err != nil {
		t.Fatal(err)
	}
	var want struct{ Permutations [][]int }
	if err := json.Unmarshal(raw, &want); err != nil {
		t.Fatal(err)
	}
	random := newTwister(0)
	for i, order := range want.Permutations {
		if got := random.permutation(4); !slices.Equal(got, order) {
			t.Fatalf("permutation %d is %v, want %v", i, got, order)
		}
	}
}

// A hand calculation, and every row of the official scorer where its file is at hand (its licence keeps it out of the repository).
func TestHealthBenchScores(t *testing.T) {
	all := []criterion{{"a", 10, []string{"x"}}, {"b", -5, []string{"x", "y"}}, {"c", 5, nil}, {"d", -3, []string{"z"}}}
	v := healthVerdict(all, []bool{true, true, false, false}, nil)
	// score (10 - 5)/(10 + 5), x (10 - 5)/10; y and z have no positive points
	if len(v.Values) != 2 || v.Values["score"] != 1.0/3 || v.Values["x"] != 0.5 {
		t.Errorf("%v", v.Values)
	}
	path := oracle("healthbench_scores.jsonl")
	if path == "" {
		return
	}
	for i, row := range rows[struct {
		Rubrics []struct {
			Points float64
			Tags   []string
			Met    bool `json:"criteria_met"`
		}
		Score float64
		Tags  map[string]float64 `json:"rubric_tag_scores"`
	}](t, path) {
		var all []criterion
		var met []bool
		for _, r := range row.Rubrics {
			all, met = append(all, criterion{"", r.Points, r.Tags}), append(met, r.Met)
		}
		v := healthVerdict(all, met, nil)
		if math.Abs(v.Values["score"]-row.Score) > 1e-12 || len(v.Values) != len(row.Tags)+1 {
			t.Errorf("row %d: %v, want %v and %v", i+1, v.Values, row.Score, row.Tags)
		}
		for tag, want := range row.Tags {
			if math.Abs(v.Values[tag]-want) > 1e-12 {
				t.Errorf("row %d: %s is %v, want %v", i+1, tag, v.Values[tag], want)
			}
		}
	}
}

// The published judgements of GPT-4 come to the published DRFR.
func TestInfoBenchDRFR(t *testing.T) {
	item := func(subset string, labels []any) map[string]any {
		return map[string]any{"subset": subset, "question_label": labels}
	}
	b := &infoBench{}
	verdicts := []Verdict{
		infoVerdict(item("Easy_set", []any{[]any{"Format"}, []any{"Content", "Style"}}), []bool{true, false}),
		infoVerdict(item("Hard_set", []any{[]any{"Format"}}), []bool{true}),
	}
	got := values(b.Metrics(verdicts))
	want := map[string]float64{"drfr": 2.0 / 3, "drfr/Easy_set": 0.5, "drfr/Hard_set": 1, "drfr/label:Format": 1, "drfr/label:Content": 0, "drfr/label:Style": 0}
	for name, x := range want {
		if y, ok := got[name]; !ok || x != y {
			t.Errorf("%s is %v, want %v", name, y, x)
		}
	}
	verdicts = nil
	for _, row := range rows[map[string]any](t, filepath.Join("testdata", "infobench_gpt4.jsonl")) {
		var said []bool
		for _, e := range row["eval"].([]any) {
			said = append(said, e.(bool))
		}
		verdicts = append(verdicts, infoVerdict(row, said))
	}
	got = values(b.Metrics(verdicts))
	for name, want := range map[string][2]float64{
		"drfr": {1971, 2250}, "drfr/Easy_set": {610, 690}, "drfr/Hard_set": {1361, 1560}, "drfr/label:Format": {714, 794}, "drfr/label:Content": {1273, 1395},
		"drfr/label:Linguistic": {134, 168}, "drfr/label:Style": {168, 190}, "drfr/label:Number": {309, 419},
	} {
		if x, ok := got[name]; !ok || math.Abs(x-want[0]/want[1]) > 1e-12 {
			t.Errorf("%s is %v, want %v", name, x, want[0]/want[1])
		}
	}
}

// Answers to rows of each official form, scored by hand.
func TestQuestionsAndVerdicts(t *testing.T) {
	for _, c := range []struct {
		name, file string
		open       func(Source) (Benchmark, error)
		key, asked string // of the first item; the beginning of its last message
		answer     string
		want       map[string]float64
	}{
		{"ifeval", `{"key": 1000, "prompt": "Write two bullet points.", "instruction_id_list": ["detectable_format:number_bullet_lists", "punctuation:no_comma"], "kwargs": [{"num_bullets": 2}, {}]}`,
			IFEval, "1000", "Write two bullet points.", "Here:\n* a\n* b, c", map[string]float64{"prompt_strict": 0, "prompt_loose": 1, "strict": 1, "loose": 2, "instructions": 2}},
		{"gsm8k", `{"question": "What is 2+3?", "answer": "It is 5.\n#### 5"}`, GSM8K, "test.jsonl:1", "What is 2+3?", "It is 6, no:\n#### 5\n(not 7)", map[string]float64{"accuracy": 1, "flexible_accuracy": 0}},
		{"gsm8k", `{"question": "What is 2+3?", "answer": "#### 1,005"}`, GSM8K, "test.jsonl:1", "What is 2+3?", "#### 1005.0", map[string]float64{"accuracy": 0, "flexible_accuracy": 1}},
		{"math", `{"problem": "Half?", "solution": "So \\boxed{\\frac{1}{2}}."}`, MATH, "test.jsonl:1", "Half?", `\boxed{\frac{1}{2}}`, map[string]float64{"accuracy": 1}},
		{"mawps", `{"input": "How many ?", "target": 43.0}`, Arithmetic, "test.jsonl:1", "How many ?", "43", map[string]float64{"accuracy": 1}},
		{"svamp", `{"Body": "There are 3 cats.", "Question": "How many?", "Answer": 3.0}`, Arithmetic, "test.jsonl:1", "There are 3 cats. How many?", "4", map[string]float64{"accuracy": 0}},
		{"hotpotqa", `{"_id": "a", "question": "Is it?", "answer": "yes", "context": [["T", ["One. ", "Two."]]]}`, HotpotQA, "a", "T: One. Two.\n\nQuestion: Is it?", "yes indeed", map[string]float64{"em": 0, "f1": 0, "arco_em": 1}},
		{"musique", `{"id": "b", "question": "Who?", "answer": "Ann Lee", "answer_aliases": ["A. Lee"], "paragraphs": [{"idx": 0, "title": "T", "paragraph_text": "P", "is_supporting": true}]}`,
			MuSiQue, "b", "T: P\n\nQuestion: Who?", "Ann", map[string]float64{"em": 0, "f1": 2.0 / 3, "arco_em": 0}},
	} {
		file := filepath.Join(t.TempDir(), "test.jsonl")
		if err := os.WriteFile(file, []byte(c.file+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		b, err := c.open(Source{File: file})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		it := b.Items()[0]
		if it.Key != c.key || !strings.HasPrefix(it.Messages[len(it.Messages)-1].Content, c.asked) {
			t.Errorf("%s: item %q asks %q", c.name, it.Key, it.Messages)
		}
		v, err := b.Score(context.Background(), &it, c.answer)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		for name, x := range c.want {
			if math.Abs(v.Values[name]-x) > 1e-12 {
				t.Errorf("%s: %s is %v, want %v", c.name, name, v.Values[name], x)
			}
		}
		if len(b.Metrics([]Verdict{v})) == 0 {
			t.Errorf("%s has no metrics", c.name)
		}
	}
}

// Other names of an answer count in 2WikiMultiHopQA, by the official id_aliases.json beside the file.
func TestAliasesOf2Wiki(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("id_aliases.json", `{"Q_id": "Q30", "aliases": ["USA", "US"], "demonyms": ["American"]}`+"\n")
	b, err := TwoWiki(Source{File: write("dev.json", `[{"_id": "a", "question": "Which?", "answer": "United States", "answer_id": "Q30", "context": [["T", ["S."]]]}]`)})
	if err != nil {
		t.Fatal(err)
	}
	for answer, em := range map[string]float64{"the united states": 1, "USA": 1, "american": 1, "Canada": 0} {
		v, err := b.Score(context.Background(), &b.Items()[0], answer)
		if err != nil || v.Values["em"] != em {
			t.Errorf("%s: %v, %v", answer, v.Values, err)
		}
	}
	if em, _ := verify.HotpotQA.Score("USA", "United States"); em != 0 {
		t.Error("the alias is no alias")
	}
}

// GPQA's letter is where the right choice has come to lie: with the first permutation of Random(0), [3 1 0 2], it is C.
func TestGPQA(t *testing.T) {
	file := filepath.Join(t.TempDir(), "gpqa.csv")
	text := "Question,Correct Answer,Incorrect Answer 1,Incorrect Answer 2,Incorrect Answer 3,Other\n\"What, then?\",right,w1,w2,\"w\"\"3\",x\nNext?,r,a,b,c,y\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	b, err := GPQA(Source{File: file})
	if err != nil {
		t.Fatal(err)
	}
	it := &b.Items()[0]
	if !strings.HasSuffix(it.Messages[0].Content, "What, then?\n\nA) w\"3\nB) w1\nC) right\nD) w2") {
		t.Error(it.Messages[0].Content)
	}
	for answer, right := range map[string]float64{"So.\nAnswer: C": 1, "Answer: $C$": 1, "Answer: c": 0, "Answer: A\nAnswer: C": 0, "C": 0} {
		v, err := b.Score(context.Background(), it, answer)
		if err != nil || v.Values["right"] != right {
			t.Errorf("%q: %v, %v", answer, v.Values, err)
		}
	}
	// Where a wrong choice has the text of the right one, the first of the two is right, as Python's list.index finds it: here B, not C.
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, "w1", "right")), 0o644); err != nil {
		t.Fatal(err)
	}
	twice, err := GPQA(Source{File: file})
	if err != nil {
		t.Fatal(err)
	}
	if v, err := twice.Score(t.Context(), &twice.Items()[0], "Answer: B"); err != nil || v.Values["right"] != 1 {
		t.Errorf("%v, %v", v, err)
	}
	again := b.(Repeated).Repeat(1)
	if b.(Repeated).Repeats() != 10 || again[0].Key != it.Key || again[0].Messages[0].Content == it.Messages[0].Content {
		t.Errorf("repeat 1 asks %q", again[0].Messages)
	}
}
