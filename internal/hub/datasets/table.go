// Package datasets knows the data sets of the papers and the benchmarks by name: where their official files are, what they must
// be, under which licence they stand, and how they become rows that a run reads.
package datasets

import (
	"slices"

	"github.com/rubicon-rl/rubicon/internal/suggest"
)

// Set is a data set.
type Set struct {
	Name    string
	Use     string // what for
	Size    string // of the download, for people
	Licence string
	Home    string // where its authors describe it
	Note    string // what a user must know beside that; "": nothing
	Gated   bool   // only for accounts that accepted the authors' conditions
	Sources []Source
	Outputs []Output // none: the benchmark reads the official file
}

// Source is one official file, or files of a repository of the hub, which says itself what they must be.
type Source struct {
	URL    string
	Name   string // of the file
	Size   int64  // 0: not known
	SHA256 string // "": not known

	Repo     string   // ORG/NAME of a data set on the hub; then nothing of the above
	Revision string   // "": main
	Files    []string // patterns
}

// Output is a file of rows.
type Output struct {
	File   string // its name
	From   string // pattern of the official files that it is made of
	Member string // pattern of what is meant in an archive; "": they are no archives
	Row    row
}

// row makes a row for a run of an official one. id names the row if the official one has no name.
type row func(id string, official map[string]any) (map[string]any, error)

// Find returns the set of a name, or the nearest name ("": none is near).
func Find(name string) (*Set, string) {
	list := All()
	if i := slices.IndexFunc(list, func(s Set) bool { return s.Name == name }); i >= 0 {
		return &list[i], ""
	}
	var names []string
	for _, s := range list {
		names = append(names, s.Name)
	}
	return nil, suggest.Nearest(name, names)
}

// All lists the data sets: what the papers train on, then what they are measured by. A hash stands here if it is that of a
// file that was checked, or was published by several others for the same address.
func All() []Set { return slices.Concat(training(), paragraphs(), sums(), benchmarks()) }

const github = "https://raw.githubusercontent.com/"

// training are the data sets with rubrics.
func training() []Set {
	splits := []Output{
		{File: "train.jsonl", From: "train-*.parquet", Row: rarRow},
		{File: "val.jsonl", From: "val-*.parquet", Row: rarRow},
		{File: "test.jsonl", From: "test-*.parquet", Row: rarRow},
	}
	domain := func(file, from string) Output { return Output{File: file, From: from, Row: rubricHubRow} }
	return []Set{
		{
			Name: "rar-science", Use: "AMARIS, RaR: science questions with a rubric each", Size: "40 MB", Licence: "none stated by its authors",
			Home: "https://huggingface.co/datasets/ScaleAI/RaR-Science", Sources: []Source{{Repo: "ScaleAI/RaR-Science", Files: []string{"data/*.parquet"}}}, Outputs: splits,
			Note: "Others found that most criteria with a negative weight here say what a good answer avoids, so that a judge who says \"met\" takes credit from a good answer: look at some rows before you train. Weights are kept as they are.",
		},
		{
			Name: "rar-medicine", Use: "AMARIS, RaR: medical questions with a rubric each", Size: "37 MB", Licence: "none stated by its authors",
			Home: "https://huggingface.co/datasets/ScaleAI/RaR-Medicine", Sources: []Source{{Repo: "ScaleAI/RaR-Medicine", Files: []string{"data/*.parquet"}}}, Outputs: splits,
		},
		{
			Name: "openrubrics", Use: "AMARIS: instructions with a rubric each", Size: "not known", Licence: "none stated by its authors",
			Home:    "https://huggingface.co/datasets/OpenRubrics/OpenRubric-v2",
			Note:    "The columns of its files are not verified: instruction (or prompt, question) and rubric are looked for; rows without them are left out, and if all are, the error names what is there.",
			Sources: []Source{{Repo: "OpenRubrics/OpenRubric-v2", Files: []string{"*.parquet", "*.jsonl"}}},
			Outputs: []Output{{File: "train.jsonl", From: "*", Row: openRubricsRow}},
		},
		{
			Name: "rubrichub", Use: "AMARIS: requests of five domains with a rubric each; writing.jsonl for creative writing", Size: "up to 3.6 GB", Licence: "Apache-2.0",
			Home:    "https://huggingface.co/datasets/sojuL/RubricHub_v1",
			Note:    "The columns are known from descriptions of others (prompt, Rubrics); only the half without answers (RuRL) is fetched.",
			Sources: []Source{{Repo: "sojuL/RubricHub_v1", Files: []string{"RuRL/*.parquet"}}},
			Outputs: []Output{
				domain("chat.jsonl", "*_Chat.parquet"), domain("instruction_following.jsonl", "*_Instruction_Following.parquet"),
				domain("medical.jsonl", "*_Medical.parquet"), domain("science.jsonl", "*_Science.parquet"), domain("writing.jsonl", "*_Writing.parquet"),
			},
		},
	}
}

// paragraphs are the questions whose answer takes several paragraphs.
func paragraphs() []Set {
	return []Set{
		{
			Name: "hotpotqa", Use: "ARCO: questions over ten paragraphs; a benchmark (EM, F1)", Size: "613 MB", Licence: "CC BY-SA 4.0", Home: "https://hotpotqa.github.io",
			Sources: []Source{
				{URL: "http://curtis.ml.cmu.edu/datasets/hotpot/hotpot_train_v1.1.json", Name: "hotpot_train_v1.1.json", Size: 566426227, SHA256: "26650cf50234ef5fb2e664ed70bbecdfd87815e6bffc257e068efea5cf7cd316"},
				{URL: "http://curtis.ml.cmu.edu/datasets/hotpot/hotpot_dev_distractor_v1.json", Name: "hotpot_dev_distractor_v1.json", Size: 46320117, SHA256: "4e9ecb5c8d3b719f624d66b60f8d56bf227f03914f5f0753d6fa1b359d7104ea"},
			},
			Outputs: []Output{
				{File: "train.jsonl", From: "hotpot_train_v1.1.json", Row: officialRow}, {File: "dev.jsonl", From: "hotpot_dev_distractor_v1.json", Row: officialRow},
			},
		},
		{
			Name: "2wiki", Use: "ARCO: 2WikiMultiHopQA; a benchmark (EM, F1)", Size: "not known", Licence: "Apache-2.0", Home: "https://github.com/Alab-NII/2wikimultihop",
			Note:    "id_aliases.json, by which the official scorer knows other names of answers, stays in the archive.",
			Sources: []Source{{URL: "https://www.dropbox.com/s/ms2m13252h6xubs/data_ids_april7.zip?dl=1", Name: "data_ids_april7.zip"}},
			Outputs: []Output{
				{File: "train.jsonl", From: "data_ids_april7.zip", Member: "train.json", Row: officialRow}, {File: "dev.jsonl", From: "data_ids_april7.zip", Member: "dev.json", Row: officialRow},
			},
		},
		{
			Name: "musique", Use: "ARCO: MuSiQue, answerable; a benchmark (EM, F1)", Size: "not known", Licence: "CC BY 4.0", Home: "https://github.com/StonyBrookNLP/musique",
			Sources: []Source{{URL: "https://drive.usercontent.google.com/download?id=1tGdADlNjWFaHLeZZGShh2IRcpO6Lv24h&export=download&confirm=t", Name: "musique_v1.0.zip"}},
			Outputs: []Output{
				{File: "train.jsonl", From: "musique_v1.0.zip", Member: "musique_ans_v1.0_train.jsonl", Row: officialRow}, {File: "dev.jsonl", From: "musique_v1.0.zip", Member: "musique_ans_v1.0_dev.jsonl", Row: officialRow},
			},
		},
	}
}

// sums are the problems that end in a number or a formula.
func sums() []Set {
	const gsm8k = github + "openai/grade-school-math/3101c7d5072418e28b9008a6636bde82a006892c/grade_school_math/data/"
	return []Set{
		{
			Name: "gsm8k", Use: "word problems with a number as the answer; a benchmark", Size: "4.9 MB", Licence: "MIT", Home: "https://github.com/openai/grade-school-math",
			Sources: []Source{
				{URL: gsm8k + "train.jsonl", Name: "train.jsonl", Size: 4166206, SHA256: "17f347dc51477c50d4efb83959dbb7c56297aba886e5544ee2aaed3024813465"},
				{URL: gsm8k + "test.jsonl", Name: "test.jsonl", Size: 749738, SHA256: "3730d312f6e3440559ace48831e51066acaca737f6eabec99bccb9e4b3c39d14"},
			},
			Outputs: []Output{{File: "train.jsonl", From: "train.jsonl", Row: gsm8kRow}, {File: "test.jsonl", From: "test.jsonl", Row: gsm8kRow}},
		},
		{
			Name: "math", Use: "competition problems with a boxed answer; a benchmark", Size: "not known", Licence: "MIT", Home: "https://github.com/hendrycks/math",
			Note:    "If the authors' address does not answer any more, put a MATH.tar that you have into a folder and give it with --from: its SHA-256 is checked.",
			Sources: []Source{{URL: "https://people.eecs.berkeley.edu/~hendrycks/MATH.tar", Name: "MATH.tar", SHA256: "0fbe4fad0df66942db6c221cdcc95b298cc7f4595a2f0f518360cce84e90d9ac"}},
			Outputs: []Output{
				{File: "train.jsonl", From: "MATH.tar", Member: "train/*/*.json", Row: mathRow}, {File: "test.jsonl", From: "MATH.tar", Member: "test/*/*.json", Row: mathRow},
			},
		},
	}
}
