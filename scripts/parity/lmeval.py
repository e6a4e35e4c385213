"""lmeval.py URL MODEL BASE: a loglikelihood task of lm-evaluation-harness by rubicon serve and by transformers."""
import json
import math
import os
import sys
import tempfile

import lm_eval
from lm_eval.tasks import TaskManager

url, model, base = sys.argv[1:]
folder = tempfile.mkdtemp()
rows = [
    {"q": "The capital of France is", "choices": [" Paris", " London", " a fish"], "answer": 0},
    {"q": "Two and two are", "choices": [" five", " four", " blue"], "answer": 1},
    {"q": "Water is made of hydrogen and", "choices": [" iron", " oxygen", " music"], "answer": 1},
    {"q": "The opposite of hot is", "choices": [" cold", " warm", " seven"], "answer": 0},
]
with open(os.path.join(folder, "rows.jsonl"), "w") as f:
    f.writelines(json.dumps(r) + "\n" for r in rows)
with open(os.path.join(folder, "tiny.yaml"), "w") as f:
    f.write(f"""task: rubicon_tiny
dataset_path: json
dataset_kwargs: {{data_files: {{test: {folder}/rows.jsonl}}}}
test_split: test
output_type: multiple_choice
doc_to_text: "{{{{q}}}}"
doc_to_choice: choices
doc_to_target: answer
target_delimiter: ""
metric_list: [{{metric: acc, aggregation: mean, higher_is_better: true}}]
""")
manager = TaskManager(include_path=folder)


def likelihoods(kind, args):
    out = lm_eval.simple_evaluate(model=kind, model_args=args, tasks=["rubicon_tiny"], task_manager=manager, log_samples=True, bootstrap_iters=0, device="cpu")
    samples = sorted(out["samples"]["rubicon_tiny"], key=lambda s: s["doc_id"])
    return [[(float(r[0]), bool(r[1])) for r in s["filtered_resps"]] for s in samples]


ours = likelihoods("local-completions", f"model={model},base_url={url}/completions,tokenizer={base},tokenized_requests=True,num_concurrent=2")
theirs = likelihoods("hf", f"pretrained={base},dtype=float32")
worst = 0.0
for row, (a, b) in enumerate(zip(ours, theirs)):
    for (x, greedy), (y, other) in zip(a, b):
        worst = max(worst, abs(x - y))
        assert math.isclose(x, y, abs_tol=2e-3), (row, x, y)
        assert greedy == other, (row, x, greedy, other)
print(f"lm-evaluation-harness {lm_eval.__version__}: {sum(map(len, ours))} log-likelihoods of transformers, at most {worst:.1e} apart")
