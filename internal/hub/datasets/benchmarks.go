package datasets

// benchmarks are the data sets that are only measured by.
func benchmarks() []Set {
	return []Set{
		{
			Name: "ifeval", Use: "benchmark: instructions that a program checks", Size: "207 kB", Licence: "Apache-2.0", Home: "https://github.com/google-research/google-research/tree/master/instruction_following_eval",
			Sources: []Source{{URL: github + "google-research/google-research/master/instruction_following_eval/data/input_data.jsonl", Name: "input_data.jsonl", Size: 207111, SHA256: "67ffeee0fcb87c317c5b08a2de85557b4a7e96ada6178aa645b4954fe4b53d49"}},
			Outputs: []Output{{File: "test.jsonl", From: "input_data.jsonl", Row: instructionsRow}},
		},
		{
			Name: "ifbench", Use: "benchmark: further instructions that a program checks", Size: "422 kB", Licence: "ODC-BY 1.0", Home: "https://github.com/allenai/IFBench",
			Sources: []Source{{URL: github + "allenai/IFBench/db69a6f05689830b0068b8f1529ebcfd2f3b164c/data/IFBench_test.jsonl", Name: "IFBench_test.jsonl", Size: 421502, SHA256: "a2bf7b8e7ed11d39c65b4ec781da8b99663ed0121f97033d70fcecb61f8a9d85"}},
			Outputs: []Output{{File: "test.jsonl", From: "IFBench_test.jsonl", Row: instructionsRow}},
		},
		{
			Name: "infobench", Use: "benchmark: instructions cut into questions for a judge", Size: "488 kB", Licence: "MIT", Home: "https://huggingface.co/datasets/kqsong/InFoBench",
			Sources: []Source{{Repo: "kqsong/InFoBench", Revision: "cef03a2830944bfb0d201107895ddd0e0e90bf0e", Files: []string{"InfoBench.json"}}},
			Outputs: []Output{{File: "test.jsonl", From: "InfoBench.json", Row: infoBenchRow}},
		},
		{
			Name: "writingbench", Use: "benchmark: writing by five criteria each", Size: "15 MB", Licence: "Apache-2.0", Home: "https://github.com/X-PLUG/WritingBench",
			Sources: []Source{{URL: github + "X-PLUG/WritingBench/ae2d5176449b7b769815482641d35926f26793eb/benchmark_query/benchmark_all.jsonl", Name: "benchmark_all.jsonl", Size: 14726077, SHA256: "18fee37c645166eb2e206b36366b2e354265b1e4201db2c86e759e825eaddcbe"}},
			Outputs: []Output{{File: "test.jsonl", From: "benchmark_all.jsonl", Row: writingBenchRow}},
		},
		healthBench(),
		{
			Name: "gpqa", Use: "benchmark: hard multiple-choice questions of science", Size: "1.4 MB", Licence: "CC BY 4.0", Home: "https://huggingface.co/datasets/Idavidrein/gpqa", Gated: true,
			Note:    "Its authors ask that no example is ever shown in plain text in public, so that models do not learn them: keep the file to yourself.",
			Sources: []Source{{Repo: "Idavidrein/gpqa", Files: []string{"gpqa_diamond.csv"}}},
		},
		{
			Name: "creative-writing", Use: "benchmark: Creative Writing v3, 32 prompts", Size: "not known", Licence: "none: its repository has no licence file", Home: "https://github.com/EQ-bench/creative-writing-bench",
			Sources: []Source{{URL: github + "EQ-bench/creative-writing-bench/main/data/creative_writing_prompts_v3.json", Name: "creative_writing_prompts_v3.json"}},
		},
		{
			Name: "biggen", Use: "benchmark: BiGGen Bench, a rubric of five levels each", Size: "3.2 MB", Licence: "Apache-2.0", Home: "https://github.com/prometheus-eval/prometheus-eval",
			Sources: []Source{{URL: github + "prometheus-eval/prometheus-eval/dcfb44272d5d0414832f5dbb8c2a05ebc2614234/BiGGen-Bench/sample_responses.json", Name: "sample_responses.json", Size: 3163524, SHA256: "617793a8aa8009135c73b0c3ef970b0c78769917715fcdf61f246381757e71c9"}},
			Outputs: []Output{{File: "test.jsonl", From: "sample_responses.json", Row: bigGenRow}},
		},
	}
}

func healthBench() Set {
	const at = "https://openaipublic.blob.core.windows.net/simple-evals/healthbench/"
	full, hard, consensus := "2025-05-07-06-14-12_oss_eval.jsonl", "hard_2025-05-08-21-00-10.jsonl", "consensus_2025-05-09-20-00-46.jsonl"
	return Set{
		Name: "healthbench", Use: "benchmark: medical conversations with a rubric each", Size: "not known", Licence: "MIT", Home: "https://github.com/openai/simple-evals",
		Note: "Every row has a canary, by which its authors find the data where it should not be: keep it in the rows.",
		Sources: []Source{
			{URL: at + full, Name: full, SHA256: "e99dd3c6372c10d6fcc5e385c5fae69d0dd40392dae56836ef9493ae324ecd2f"},
			{URL: at + hard, Name: hard, SHA256: "b0320430e5cd974e746585594c1dd10b5a3fc2aff9c72b26106c2c4a069d74e9"},
			{URL: at + consensus, Name: consensus},
		},
		Outputs: []Output{
			{File: "test.jsonl", From: full, Row: healthBenchRow}, {File: "hard.jsonl", From: hard, Row: healthBenchRow}, {File: "consensus.jsonl", From: consensus, Row: healthBenchRow},
		},
	}
}
