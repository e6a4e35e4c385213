package datasets

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/hub/hubtest"
	"github.com/rubicon-rl/rubicon/rewards/criteria"
	"github.com/rubicon-rl/rubicon/trainer/data"
)

// whole counts the requests for all of a file.
func whole(s *hubtest.Server) (n int) {
	for _, r := range s.Seen() {
		if r.Host == "store" && r.Range == "" {
			n++
		}
	}
	return n
}

// From the hub: the splits become files, with criteria in our form; connections are cut on the way; a second call asks for no
// content again.
func TestGetFromTheHub(t *testing.T) {
	repo := hubtest.Repo{Dataset: true, Files: map[string][]byte{
		"README.md": []byte("x"), "data/train-00000-of-00002.parquet": parquetOf(t, rar("Why?"), rar("How?")), "data/train-00001-of-00002.parquet": parquetOf(t, rar("Who?")),
		"data/val-00000-of-00001.parquet": parquetOf(t, rar("When?")), "data/test-00000-of-00001.parquet": parquetOf(t, rar("Where?")),
	}}
	for name := range repo.Files {
		repo.LFS = append(repo.LFS, name)
	}
	s, o := standIn(t, map[string]hubtest.Repo{"ScaleAI/RaR-Science": repo})
	s.Fail(hubtest.Fault{Host: "store", Cut: 100, Times: 5}, hubtest.Fault{Host: "store", Spoil: true, Times: 1})
	for range 2 {
		_, written, err := set(t, "rar-science").Get(context.Background(), o)
		if err != nil {
			t.Fatal(err)
		}
		if len(written) != 3 || written[0].Rows != 3 || written[1].Rows != 1 || written[2].Rows != 1 || written[0].Bad != 0 {
			t.Errorf("wrote %+v", written)
		}
	}
	if n := whole(s); n > 4+1 { // one for each of four files, and for the one that was spoiled
		t.Errorf("%d files were fetched from their beginning", n)
	}
	rows := rowsOf(t, filepath.Join(o.Out, "train.jsonl"))
	first := rows[0]
	if first["id"] != "rar-science-train-1" || first["prompt"] != "Why?" || first["reference_answer"] != "Because." || first["question_source"] != "made up" || rows[2]["prompt"] != "Who?" {
		t.Errorf("row %v", first)
	}
	list, err := criteria.Parse(first["rubric"], "rubicon")
	if err != nil || len(list) != 2 || list[0].Text != "Cause: Essential Criteria: names the cause" || list[0].Weight != 5 || list[1].Weight != -1 || list[1].ID != "c2" {
		t.Errorf("criteria %+v, %v", list, err)
	}
	about, err := os.ReadFile(filepath.Join(o.Out, sourceFile))
	sum := sha256.Sum256(repo.Files["data/val-00000-of-00001.parquet"])
	if err != nil || !strings.Contains(string(about), "ScaleAI/RaR-Science") || !strings.Contains(string(about), hex.EncodeToString(sum[:])) {
		t.Errorf("%v\n%s", err, about)
	}
}

// From an address: what is not the known file is refused, and nothing is written.
func TestGetChecksWhatIsKnown(t *testing.T) {
	s, o := standIn(t, nil)
	right := []byte(`{"question": "1+1?", "answer": "So #### 2"}` + "\n")
	sum := sha256.Sum256(right)
	set := *set(t, "gsm8k")
	set.Sources = []Source{{URL: s.Plain("train.jsonl", right), Name: "train.jsonl", Size: int64(len(right)), SHA256: hex.EncodeToString(sum[:])}}
	set.Outputs = set.Outputs[:1]
	s.Fail(hubtest.Fault{Spoil: true})
	if _, _, err := set.Get(context.Background(), o); err == nil || !strings.Contains(err.Error(), "is not the file") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(filepath.Join(o.Out, "train.jsonl")); err == nil {
		t.Error("rows of a spoiled file were written")
	}
	s.Heal()
	if _, written, err := set.Get(context.Background(), o); err != nil || written[0].Rows != 1 {
		t.Errorf("%+v, %v", written, err)
	}
	if row := rowsOf(t, filepath.Join(o.Out, "train.jsonl"))[0]; row["prompt"] != "1+1?" || row["answer"] != "So #### 2" {
		t.Errorf("%v", row)
	}
	o.From = folder(t, map[string][]byte{"train.jsonl": []byte(`{"question": "other", "answer": "other"}`)})
	if _, _, err := set.Get(context.Background(), o); err == nil || !strings.Contains(err.Error(), "--any-version takes it") {
		t.Errorf("another file in the folder: %v", err)
	}
	o.AnyBytes = true
	if _, written, err := set.Get(context.Background(), o); err != nil || written[0].Rows != 1 {
		t.Errorf("%+v, %v", written, err)
	}
}

// GPQA is not asked for without a token, and needs none from a folder.
func TestGatedSetNeedsTheUsersToken(t *testing.T) {
	csv := []byte("Question,Correct Answer,Incorrect Answer 1,Incorrect Answer 2,Incorrect Answer 3\nMade up?,a,b,c,d\n")
	s, o := standIn(t, map[string]hubtest.Repo{"Idavidrein/gpqa": {Dataset: true, Gated: true, Files: map[string][]byte{"gpqa_diamond.csv": csv}}})
	if _, _, err := set(t, "gpqa").Get(context.Background(), o); err == nil || !strings.Contains(err.Error(), "set HF_TOKEN") {
		t.Errorf("%v", err)
	}
	if n := len(s.Seen()); n > 0 {
		t.Errorf("%d requests without a token", n)
	}
	o.From = folder(t, map[string][]byte{"downloads/gpqa_diamond.csv": csv})
	files, rows, err := set(t, "gpqa").Get(context.Background(), o)
	if err != nil || len(files) != 1 || len(rows) != 0 {
		t.Errorf("%v, %v, %v", files, rows, err)
	}
}

// Archives are read in place, or already unpacked; what a Mac adds to them is not data.
func TestArchives(t *testing.T) {
	question := `{"_id": "q1", "question": "Who?", "answer": "She", "context": [["T", ["s"]]], "supporting_facts": []}`
	whole := zipOf(t, "__MACOSX/._train.json", "junk", "data/train.json", "["+question+"]", "data/dev.json", "["+question+", "+question+"]")
	for name, files := range map[string]map[string][]byte{
		"archive": {"data_ids_april7.zip": whole}, "unpacked": {"data/train.json": []byte("[" + question + "]"), "data/dev.json": []byte("[" + question + "," + question + "]")},
	} {
		_, o := standIn(t, nil)
		o.From = folder(t, files)
		_, written, err := set(t, "2wiki").Get(context.Background(), o)
		if err != nil || len(written) != 2 || written[0].Rows != 1 || written[1].Rows != 2 {
			t.Errorf("%s: %+v, %v", name, written, err)
		}
		if row := rowsOf(t, filepath.Join(o.Out, "train.jsonl"))[0]; row["_id"] != "q1" || row["context"] == nil {
			t.Errorf("%s: %v", name, row)
		}
	}
	_, o := standIn(t, nil)
	o.AnyBytes = true
	o.From = folder(t, map[string][]byte{"MATH.tar": tarOf(t,
		"MATH/train/algebra/17.json", `{"problem": "2+2?", "solution": "It is \\boxed{4}.", "level": "Level 1", "type": "Algebra"}`,
		"MATH/test/geometry/3.json", `{"problem": "3?", "solution": "\\boxed{3}"}`, "MATH/train/._x/1.txt", "junk")})
	if _, _, err := set(t, "math").Get(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	row := rowsOf(t, filepath.Join(o.Out, "train.jsonl"))[0]
	if fmt.Sprintln(row["id"], row["prompt"], row["answer"], row["level"]) != `train/algebra/17 2+2? It is \boxed{4}. Level 1`+"\n" {
		t.Errorf("%v", row)
	}
}

// Rows that cannot be used are counted; if none can be, that is an error that names what is there.
func TestBadRows(t *testing.T) {
	type record struct {
		Instruction string `parquet:"instruction"`
		Rubric      string `parquet:"rubric"`
	}
	_, o := standIn(t, nil)
	o.From = folder(t, map[string][]byte{"train.parquet": parquetOf(t,
		record{"Write.", "1. Is short. [Hard Rule]\n2. Is kind. [Principle]"}, record{"Write.", ""}, record{"", "1. x"})})
	_, written, err := set(t, "openrubrics").Get(context.Background(), o)
	if err != nil || written[0].Rows != 1 || written[0].Bad != 2 || written[0].Why == nil {
		t.Fatalf("%+v, %v", written, err)
	}
	list, err := criteria.Parse(rowsOf(t, filepath.Join(o.Out, "train.jsonl"))[0]["rubric"], "rubicon")
	if err != nil || len(list) != 2 || list[0].Category != "instruction_following" || list[1].Text != "Is kind." {
		t.Errorf("%+v, %v", list, err)
	}
	type strange struct {
		Task string `parquet:"task"`
	}
	o.From = folder(t, map[string][]byte{"train.parquet": parquetOf(t, strange{"x"})})
	if _, _, err := set(t, "openrubrics").Get(context.Background(), o); err == nil || !strings.Contains(err.Error(), "its columns are task") {
		t.Errorf("%v", err)
	}
}

// A name below a name: files of one kind never pass for another.
func TestRubricHub(t *testing.T) {
	type message struct {
		Role    string `parquet:"role"`
		Content string `parquet:"content"`
	}
	type criterion struct {
		Criterion string  `parquet:"criterion"`
		Points    float64 `parquet:"points"`
	}
	type record struct {
		Prompt  []message   `parquet:"prompt,list"`
		Rubrics []criterion `parquet:"Rubrics,list"`
	}
	files := map[string][]byte{}
	for _, domain := range []string{"Chat", "Instruction_Following", "Medical", "Science", "Writing"} {
		files["RuRL/rurbichub_v1_"+domain+".parquet"] = parquetOf(t, record{[]message{{"user", "Write about " + domain}}, []criterion{{"Is good", 7}}})
	}
	_, o := standIn(t, nil)
	o.From = folder(t, files)
	if _, _, err := set(t, "rubrichub").Get(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	prompts, _, err := data.Prompts([]string{filepath.Join(o.Out, "writing.jsonl")}, data.Options{Format: "auto", PromptColumn: "prompt", IDColumn: "id"})
	if err != nil || len(prompts) != 1 || prompts[0].ID != "rubrichub-writing-1" || prompts[0].Messages[0].Content != "Write about Writing" {
		t.Fatalf("%+v, %v", prompts, err)
	}
	if list, err := criteria.Parse(prompts[0].Columns["rubric"], "auto"); err != nil || list[0].Weight != 7 || list[0].Text != "Is good" {
		t.Errorf("%+v, %v", list, err)
	}
}
